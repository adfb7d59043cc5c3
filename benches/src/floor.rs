//! The least that could be called a layer, to see what of a request's price is anybody's: it reads a header and a body,
//! digests both, asks a map, and keeps or repeats an answer. It has no lease, no scope, no expiry and no store but the map;
//! a caller that leaves takes the run with it, and the key stays taken. Nobody should use it.

use std::{
    collections::{HashMap, hash_map::Entry},
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use axum::body::Body;
use blake3::Hash;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE, request::Parts};
use http_body_util::{BodyExt, Collected};
use tower_service::Service;

use crate::route::KEY;

type Records = Arc<Mutex<HashMap<Hash, Record>>>;

/// A service behind the least of layers.
#[derive(Debug, Clone)]
pub(crate) struct Floor<I> {
    inner: I,
    records: Records,
}

impl<I> Floor<I> {
    pub(crate) fn new(inner: I) -> Self {
        Self { inner, records: Records::default() }
    }
}

impl<I> Service<Request<Body>> for Floor<I>
where
    I: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    I::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let address = request.headers().get(KEY).map(|key| blake3::hash(key.as_bytes()));
        let Some(address) = address else {
            return Box::pin(self.inner.call(request));
        };
        Box::pin(guarded(self.inner.clone(), Arc::clone(&self.records), address, request))
    }
}

#[derive(Debug)]
struct Record {
    fingerprint: Hash,
    answer: Option<Answer>,
}

#[derive(Debug, Clone)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

async fn guarded<I>(
    mut inner: I,
    records: Records,
    address: Hash,
    request: Request<Body>,
) -> Result<Response<Body>, Infallible>
where
    I: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let (parts, body) = request.into_parts();
    let body = gather(body).await;
    let fingerprint = fingerprint(&parts, &body);
    if let Some(response) = ask(&records, address, fingerprint) {
        return Ok(response);
    }
    let (parts, body) = inner.call(Request::from_parts(parts, body.into())).await?.into_parts();
    let body = gather(body).await;
    let answer = Answer { status: parts.status, headers: parts.headers.clone(), body: body.clone() };
    let record = Record { fingerprint, answer: Some(answer) };
    records.lock().unwrap_or_else(PoisonError::into_inner).insert(address, record);
    Ok(Response::from_parts(parts, body.into()))
}

/// The answer to a copy; `None` where the request is the first, which is noted.
fn ask(records: &Records, address: Hash, fingerprint: Hash) -> Option<Response<Body>> {
    match records.lock().unwrap_or_else(PoisonError::into_inner).entry(address) {
        Entry::Vacant(free) => {
            free.insert(Record { fingerprint, answer: None });
            None
        }
        Entry::Occupied(taken) => Some(match taken.get() {
            record if record.fingerprint != fingerprint => bare(StatusCode::UNPROCESSABLE_ENTITY),
            Record { answer: None, .. } => bare(StatusCode::CONFLICT),
            Record { answer: Some(answer), .. } => replay(answer.clone()),
        }),
    }
}

fn replay(answer: Answer) -> Response<Body> {
    let mut response = Response::new(answer.body.into());
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    response
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn fingerprint(parts: &Parts, body: &[u8]) -> Hash {
    let mut digest = blake3::Hasher::new();
    for part in [
        parts.method.as_str().as_bytes(),
        parts.uri.path().as_bytes(),
        parts.headers.get(CONTENT_TYPE).map_or(b"", HeaderValue::as_bytes),
        body,
    ] {
        digest.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    digest.finalize()
}

async fn gather(body: Body) -> Bytes {
    body.collect().await.map_or_else(|_| Bytes::new(), Collected::to_bytes)
}
