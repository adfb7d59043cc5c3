//! The service, between axum's bodies.
//!
//! Axum puts every body that is not its own in a box. Those that pass untouched are handed on as they came, so that a
//! request without a key pays for no box.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    response::Response,
};
use idempotency_tower::{BoxError, RequestBody, ResponseBody, ResponseFuture, Store};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

/// The service an [`IdempotencyLayer`](crate::IdempotencyLayer) makes.
#[derive(Debug)]
pub struct IdempotencyService<I, S: Store>(idempotency_tower::IdempotencyService<Inside<I>, S>);

impl<I, S: Store> IdempotencyService<I, S> {
    pub(crate) fn new(layer: &idempotency_tower::IdempotencyLayer<S>, inner: I) -> Self {
        Self(layer.layer(Inside(inner)))
    }
}

impl<I: Clone, S: Store> Clone for IdempotencyService<I, S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<I, S, Q, P> Service<Request<Q>> for IdempotencyService<I, S>
where
    I: Service<Request, Response = Response<P>> + Clone + Send + 'static,
    I::Future: Send + 'static,
    I::Error: Send + 'static,
    Q: HttpBody<Data = Bytes> + Send + 'static,
    Q::Error: Into<BoxError>,
    P: HttpBody<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    type Response = Response;
    type Error = I::Error;
    type Future = IdempotencyFuture<I::Future, P, I::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        Service::<Request<Q>>::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        IdempotencyFuture { response: self.0.call(request) }
    }
}

/// The wrapped service, to which a request comes with axum's body.
#[derive(Debug, Clone)]
struct Inside<I>(I);

impl<I, Q> Service<Request<RequestBody<Q>>> for Inside<I>
where
    I: Service<Request>,
    Q: HttpBody<Data = Bytes> + Send + 'static,
    Q::Error: Into<BoxError>,
{
    type Response = I::Response;
    type Error = I::Error;
    type Future = I::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody<Q>>) -> I::Future {
        self.0.call(request.map(|body| body.fold(Body::new, Body::new)))
    }
}

pin_project! {
    /// The response to come, with axum's body. Dropped after its claim was sent, the run goes on without it.
    pub struct IdempotencyFuture<F, P, E>
    where
        P: Send,
        P: 'static,
        E: Send,
        E: 'static,
    {
        #[pin]
        response: ResponseFuture<F, P, E>,
    }
}

impl<F, P, E> Future for IdempotencyFuture<F, P, E>
where
    F: Future<Output = Result<Response<P>, E>>,
    P: HttpBody<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    E: Send + 'static,
{
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.project().response.poll(cx));
        let outside = |body: ResponseBody<P>| body.fold(Body::new, Body::new);
        Poll::Ready(response.map(|response| response.map(outside)))
    }
}

impl<F, P: Send + 'static, E: Send + 'static> fmt::Debug for IdempotencyFuture<F, P, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdempotencyFuture").field(&self.response).finish()
    }
}
