//! The guest book, and the layer around it.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{
    BoxError, Drained, Ending, IdempotencyLayer, Policy, PolicyError, RequestBody, ResponseBody,
};
use tower::{Layer, Service, service_fn};

/// The guests, in the order in which they signed.
#[derive(Debug, Clone)]
pub struct GuestBook {
    guests: Arc<Mutex<Vec<String>>>,
    idempotency: IdempotencyLayer<MemoryStore>,
}

impl GuestBook {
    /// An empty book, whose `POST /guests` requires a key: nobody signs twice because an answer was lost.
    ///
    /// # Errors
    /// None with the policy written here; [`PolicyError`] names the rule that another one breaks.
    pub fn open() -> Result<Self, PolicyError> {
        let policy = Policy::builder().required().build()?;
        Ok(Self {
            guests: Arc::default(),
            idempotency: IdempotencyLayer::with_policy(MemoryStore::new(), policy),
        })
    }

    /// The service, for any server that speaks `http`.
    pub fn service<B>(
        &self,
    ) -> impl Service<
        Request<B>,
        Response = Response<ResponseBody<Full<Bytes>>>,
        Error = Infallible,
        Future: Send + 'static,
    >
    + Clone
    + Send
    + 'static
    + use<B>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let guests = Arc::clone(&self.guests);
        self.idempotency.layer(service_fn(move |request| answer(Arc::clone(&guests), request)))
    }

    /// How many have signed.
    pub fn len(&self) -> usize {
        lock(&self.guests).len()
    }

    /// Whether nobody has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for those who are signing, their connections gone or not: after the server has closed, before the runtime
    /// ends.
    pub async fn close(&self, limit: Duration) -> Drained {
        self.idempotency.drain(limit).await
    }
}

async fn answer<B>(
    guests: Arc<Mutex<Vec<String>>>,
    request: Request<RequestBody<B>>,
) -> Result<Response<Full<Bytes>>, Infallible>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    Ok(match (request.method(), request.uri().path()) {
        (&Method::POST, "/guests") => sign(&guests, request).await,
        (&Method::GET, "/guests") => text(StatusCode::OK, lock(&guests).join("\n")),
        // 404 would be kept: a mistyped path would hold the key of the mended request.
        _ => not_executed(text(StatusCode::NOT_FOUND, "there is a guest book at /guests")),
    })
}

async fn sign<B>(guests: &Mutex<Vec<String>>, request: Request<RequestBody<B>>) -> Response<Full<Bytes>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let name = match request.into_body().collect().await {
        Ok(body) => String::from_utf8(body.to_bytes().to_vec()).unwrap_or_default(),
        Err(_) => String::new(),
    };
    if name.trim().is_empty() {
        // Nothing happened: the guest may mend the request and keep the key.
        return not_executed(text(StatusCode::BAD_REQUEST, "who are you?"));
    }
    let mut guests = lock(guests);
    guests.push(name.clone());
    text(StatusCode::CREATED, format!("hello, {name}, you are guest {}", guests.len()))
}

fn not_executed(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    response.extensions_mut().insert(Ending::NotExecuted);
    response
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}

/// A name is pushed whole or not at all, so a panic elsewhere breaks nothing here.
fn lock(guests: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    guests.lock().unwrap_or_else(PoisonError::into_inner)
}
