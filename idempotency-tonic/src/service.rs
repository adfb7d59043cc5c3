//! The service: tells the calls that are guarded from those that pass, and stands between tonic's bodies.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
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
    key: HeaderName,
    /// Calls without a key are refused as well.
    is_required: bool,
}

impl<I, S: Store> GrpcIdempotencyService<I, S> {
    pub(crate) fn new(layer: &IdempotencyLayer<S>, inner: I, methods: Methods) -> Self {
        let policy = layer.policy();
        let (key, is_required) = (policy.key_header().clone(), policy.looks_at(&Method::POST, |_| false));
        Self { guarded: layer.layer(Inside(inner)), methods, key, is_required }
    }

    fn treatment<Q>(&self, request: &Request<Q>) -> Treatment {
        let has_key = request.headers().contains_key(&self.key);
        match Framing::of(request) {
            Framing::Grpc => match self.methods.treatment(request.uri().path()) {
                Treatment::Guard if !has_key && !self.is_required => Treatment::Pass,
                Treatment::Refuse if !has_key => Treatment::Pass,
                treatment => treatment,
            },
            // tonic runs a call whatever its content type says: a caller must not choose by it to be unguarded.
            Framing::GrpcWeb | Framing::Other if has_key || self.is_required => Treatment::Refuse,
            Framing::GrpcWeb | Framing::Other => Treatment::Pass,
        }
    }
}

#[derive(Clone, Copy)]
enum Framing {
    Grpc,
    /// Its status is somewhere in its body: only what translates it can say how the call ended.
    GrpcWeb,
    Other,
}

impl Framing {
    fn of<Q>(request: &Request<Q>) -> Self {
        let kind = request.headers().get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let is = |name: &[u8]| kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        match () {
            () if is(b"application/grpc-web") => Self::GrpcWeb,
            () if is(b"application/grpc") => Self::Grpc,
            () => Self::Other,
        }
    }

    /// What a call that cannot be guarded is answered with.
    fn refusal(self) -> Response<Body> {
        match self {
            Self::Grpc => refusal_response(&streaming_refusal()).map(|_| Body::empty()),
            Self::GrpcWeb => refusal_response(&untranslated()).map(|_| Body::empty()),
            Self::Other => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                response
            }
        }
    }
}

impl<I: Clone, S: Store> Clone for GrpcIdempotencyService<I, S> {
    fn clone(&self) -> Self {
        Self {
            guarded: self.guarded.clone(),
            methods: self.methods.clone(),
            key: self.key.clone(),
            is_required: self.is_required,
        }
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
        match self.treatment(&request) {
            Treatment::Guard => {
                let request = request.map(|body| Body::new(OneMessage::new(body)));
                GrpcIdempotencyFuture::new(self.guarded.call(request))
            }
            Treatment::Refuse => {
                // What was reserved for this call is given back.
                let next = self.guarded.clone();
                drop(std::mem::replace(&mut self.guarded, next));
                GrpcIdempotencyFuture::refused(Framing::of(&request).refusal())
            }
            Treatment::Pass => {
                request.extensions_mut().insert(Pass);
                GrpcIdempotencyFuture::new(self.guarded.call(request.map(Body::new)))
            }
        }
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
        let mut request = request.map(|body| body.fold(|own| own, Body::new));
        // It was said to the layer here, and to none further in.
        request.extensions_mut().remove::<Pass>();
        self.0.call(request)
    }
}
