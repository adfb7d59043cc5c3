//! Tells a request that is guarded from one that passes.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body::Body;
use idempotency_core::{
    Key, Store,
    profile::http::{Code, Refusal},
};
use tower_service::Service;
use tracing::Instrument;

use crate::{
    Attempt, Pass, ResponseFuture,
    body::{RequestBody, ResponseBody},
    caller::{Exchange, Presence},
    error::BoxError,
    exchange::exchange,
    layer::DoorState,
    observability::{RequestSpan, log},
    policy::Force,
    refusal::{refuse, tell_outward},
    shadow::shadow,
};

/// The service an [`IdempotencyLayer`](crate::IdempotencyLayer) makes.
#[derive(Debug)]
pub struct IdempotencyService<I, S: Store> {
    inner: I,
    door: Arc<DoorState<S>>,
}

impl<I, S: Store> IdempotencyService<I, S> {
    pub(crate) const fn new(inner: I, door: Arc<DoorState<S>>) -> Self {
        Self { inner, door }
    }

    /// The key of a request that is to be guarded; `None` lets it pass.
    fn key<B>(&self, request: &Request<B>) -> Result<Option<Key>, Refusal> {
        let policy = &self.door.policy;
        if !policy.covers(request.method()) || request.extensions().get::<Pass>().is_some() {
            return Ok(None);
        }
        let lines = request.headers().get_all(&policy.header);
        match policy.syntax.read(lines.iter().map(HeaderValue::as_bytes)) {
            Ok(None) if policy.required => Err(Refusal::missing_key(policy.header.as_str())),
            Ok(key) => Ok(key),
            Err(rule) => Err(Refusal::invalid_key(rule)),
        }
    }
}

impl<I: Clone, S: Store> IdempotencyService<I, S> {
    /// The instance that is ready; the one left in its place must become ready itself.
    fn take_ready(&mut self) -> I {
        let next = self.inner.clone();
        std::mem::replace(&mut self.inner, next)
    }
}

impl<I: Clone, S: Store> Clone for IdempotencyService<I, S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), door: Arc::clone(&self.door) }
    }
}

impl<I, S, Q, P> Service<Request<Q>> for IdempotencyService<I, S>
where
    I: Service<Request<RequestBody<Q>>, Response = Response<P>> + Clone + Send + 'static,
    I::Future: Send + 'static,
    I::Error: Send + 'static,
    Q: Body<Data = Bytes> + Send + 'static,
    Q::Error: Into<BoxError>,
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    type Response = Response<ResponseBody<P>>;
    type Error = I::Error;
    type Future = ResponseFuture<I::Future, P, I::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let shadowed = self.door.policy.force == Force::Shadow;
        let is_inside = request.extensions().get::<Attempt>().is_some();
        let key = match self.key(&request) {
            Ok(Some(key)) => key,
            Ok(None) => return ResponseFuture::unguarded(self.inner.call(request.map(RequestBody::unread))),
            Err(_) if shadowed => {
                return ResponseFuture::unguarded(self.inner.call(request.map(RequestBody::unread)));
            }
            Err(refusal) => {
                log::turned_away(&refusal);
                drop(self.take_ready()); // what was reserved for this request is given back
                let response = refuse(&self.door.policy, &refusal);
                return ResponseFuture::refused(if is_inside { tell_outward(response) } else { response });
            }
        };
        let ready = self.take_ready();
        let presence = Arc::new(Presence::default());
        let span = RequestSpan::open();
        if shadowed {
            let passing = shadow(ready, Arc::clone(&self.door), key, request, span.clone());
            let passing = Exchange::new(Box::pin(passing), presence).within(span.into_inner());
            return ResponseFuture::guarded(passing);
        }
        let door = Arc::clone(&self.door);
        let run = exchange(ready, door, key, request, Arc::clone(&presence), span.clone());
        let exchange = match &self.door.policy.carry {
            None => Exchange::new(Box::pin(run), presence).within(span.into_inner()),
            Some(carry) => {
                let door = Arc::clone(&self.door);
                let run = run.instrument(span.into_inner());
                let run = carried(carry.as_ref(), run, move || Ok(refuse(&door.policy, &dropped())));
                Exchange::new(run, presence)
            }
        };
        let exchange = if is_inside { exchange.telling(|told| told.map(tell_outward)) } else { exchange };
        ResponseFuture::guarded(exchange)
    }
}

fn dropped() -> Refusal {
    Refusal::new(Code::Internal, "the service gave the request up before it was answered")
}

/// Runs `run` inside what `carry` wraps around it, which hands no output through; the output is `lost` where the wrapper
/// drops the run. Its permit lapsed with it then.
fn carried<T: Send + 'static>(
    carry: &(dyn Fn(crate::RunFuture) -> crate::RunFuture + Send + Sync),
    run: impl Future<Output = T> + Send + 'static,
    lost: impl FnOnce() -> T + Send + 'static,
) -> std::pin::Pin<Box<dyn Future<Output = T> + Send>> {
    let (give, take) = tokio::sync::oneshot::channel();
    let wrapped = carry(Box::pin(async move {
        // The receiver lives in the same future.
        let _ = give.send(run.await);
    }));
    Box::pin(async move {
        wrapped.await;
        take.await.unwrap_or_else(|_| lost())
    })
}
