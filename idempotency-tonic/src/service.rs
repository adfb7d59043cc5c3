//! The service: tells the calls that are guarded from those that pass, and stands between tonic's bodies.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body::Body as HttpBody;
use idempotency_tower::{BoxError, IdempotencyLayer, IdempotencyService, Pass, Refusal, RequestBody, Store};
use tonic::body::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    GrpcIdempotencyFuture,
    body::{OneMessage, streaming_refusal},
    methods::{Methods, Treatment},
    refusal::refusal_response,
};

/// The service a [`GrpcIdempotencyLayer`](crate::GrpcIdempotencyLayer) makes.
#[derive(Debug)]
pub struct GrpcIdempotencyService<I, S: Store> {
    guarded: IdempotencyService<Inside<I>, S>,
    methods: Methods,
    key: http::HeaderName,
}

impl<I, S: Store> GrpcIdempotencyService<I, S> {
    pub(crate) fn new(layer: &IdempotencyLayer<S>, inner: I, methods: Methods) -> Self {
        Self { guarded: layer.layer(Inside(inner)), methods, key: layer.policy().key_header().clone() }
    }

    fn treatment<Q>(&self, request: &Request<Q>) -> Treatment {
        match Framing::of(request) {
            Framing::Grpc => self.methods.treatment(request.uri().path()),
            // What a page of another kind does is not gRPC's to guard.
            Framing::None => Treatment::Pass,
            // Its status is somewhere in its body: only what translates it can say how the call ended.
            Framing::GrpcWeb => Treatment::Refuse,
        }
    }
}

enum Framing {
    Grpc,
    GrpcWeb,
    None,
}

impl Framing {
    fn of<Q>(request: &Request<Q>) -> Self {
        match request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes) {
            Some(kind) if kind.starts_with(b"application/grpc-web") => Self::GrpcWeb,
            Some(kind) if kind.starts_with(b"application/grpc") => Self::Grpc,
            _ => Self::None,
        }
    }
}

impl<I: Clone, S: Store> Clone for GrpcIdempotencyService<I, S> {
    fn clone(&self) -> Self {
        Self { guarded: self.guarded.clone(), methods: self.methods.clone(), key: self.key.clone() }
    }
}

impl<I, S, Q, P> Service<Request<Q>> for GrpcIdempotencyService<I, S>
where
    I: Service<Request<Body>, Response = Response<P>> + Clone + Send + 'static,
    I::Future: Send + 'static,
    I::Error: Send + 'static,
    Q: HttpBody<Data = Bytes> + Send + 'static,
    Q::Error: Into<BoxError>,
    P: HttpBody<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    type Response = Response<Body>;
    type Error = I::Error;
    type Future = GrpcIdempotencyFuture<I::Future, P, I::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        Service::<Request<Body>>::poll_ready(&mut self.guarded, cx)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        let has_key = request.headers().contains_key(&self.key);
        match self.treatment(&request) {
            Treatment::Guard if has_key => {
                let request = request.map(|body| Body::new(OneMessage::new(body)));
                return GrpcIdempotencyFuture::new(self.guarded.call(request));
            }
            Treatment::Guard => {}
            Treatment::Refuse if has_key => {
                let refusal = match Framing::of(&request) {
                    Framing::GrpcWeb => untranslated(),
                    Framing::Grpc | Framing::None => streaming_refusal(),
                };
                // What was reserved for this call is given back.
                let next = self.guarded.clone();
                drop(std::mem::replace(&mut self.guarded, next));
                return GrpcIdempotencyFuture::refused(refusal_response(&refusal).map(|_| Body::empty()));
            }
            Treatment::Pass | Treatment::Refuse => {
                request.extensions_mut().insert(Pass);
            }
        }
        GrpcIdempotencyFuture::new(self.guarded.call(request.map(Body::new)))
    }
}

fn untranslated() -> Refusal {
    Refusal::new(
        idempotency_tower::Code::ConfigurationError,
        "a gRPC-Web call came to the idempotency layer untranslated: GrpcWebLayer belongs outside it; nothing was run",
    )
}

/// The wrapped service, to which a request comes with tonic's body.
#[derive(Debug, Clone)]
struct Inside<I>(I);

impl<I> Service<Request<RequestBody<Body>>> for Inside<I>
where
    I: Service<Request<Body>>,
{
    type Response = I::Response;
    type Error = I::Error;
    type Future = I::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody<Body>>) -> I::Future {
        self.0.call(request.map(|body| body.fold(|own| own, Body::new)))
    }
}
