//! Tells a request that may be guarded from one that passes, and hands the former to tower's door.
//!
//! # Why tower's door
//!
//! Actix's requests, bodies and handlers stay on the thread of their worker, and tower's door wants what may go
//! anywhere. So either the door had to be written twice, or its halves to meet somewhere. Here they meet at two
//! channels: the exchange is tower's own, to the last line, and sees a service whose call is an order to this thread
//! and whose bodies are fed from it. Every rule, every order of steps and every bound is therefore the same as behind
//! axum, and this crate only translates.

use std::{cell::RefCell, fmt, rc::Rc, sync::Arc};

use actix_web::{
    Error, HttpRequest,
    body::{EitherBody, MessageBody},
    dev::{Payload, Service, ServiceRequest, ServiceResponse, forward_ready},
    error::ErrorBadRequest,
    http::header,
};
use idempotency_tower::{IdempotencyLayer, Store};
use tower_layer::Layer;
use tracing::instrument::WithSubscriber;

use crate::{
    GuardedBody, IdempotencyFuture,
    body::arriving,
    convert,
    future::{Guarded, Local},
    handler::{Returned, desk, errand},
    layer::Show,
};

/// The service an [`Idempotency`](crate::Idempotency) makes.
pub struct IdempotencyMiddleware<I, S: Store> {
    inner: Rc<I>,
    layer: IdempotencyLayer<S>,
    shown: Arc<[Show]>,
}

impl<I, S: Store> IdempotencyMiddleware<I, S> {
    pub(crate) const fn new(inner: Rc<I>, layer: IdempotencyLayer<S>, shown: Arc<[Show]>) -> Self {
        Self { inner, layer, shown }
    }
}

impl<I, B, S> Service<ServiceRequest> for IdempotencyMiddleware<I, S>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
    S: Store,
{
    type Response = ServiceResponse<EitherBody<B, GuardedBody>>;
    type Error = Error;
    type Future = IdempotencyFuture<I::Future>;

    forward_ready!(inner);

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let method = match convert::method(request.request()) {
            Ok(method) => method,
            Err(error) => return IdempotencyFuture::unreadable(ErrorBadRequest(error)),
        };
        if !self.layer.policy().looks_at(&method, |name| convert::has_header(request.request(), name)) {
            return IdempotencyFuture::passing(self.inner.call(request));
        }
        let (request, payload) = request.into_parts();
        let (connection, payload) =
            if is_connection(&request, &payload) { (Some(payload), Payload::None) } else { (None, payload) };
        let declared = declared_length(request.headers());
        let end = declared.filter(|_| is_websocket(&request));
        let (body, arriving) = arriving(payload, declared, end);
        let asked = match convert::request(&request, method, &self.shown, body) {
            Ok(asked) => asked,
            Err(error) => return IdempotencyFuture::unreadable(ErrorBadRequest(error)),
        };
        let (desk, ordered) = desk();
        // Called at once: a desk is always ready.
        let exchange = tower_service::Service::call(&mut self.layer.layer(desk), asked);
        let returned = Rc::<RefCell<Returned>>::default();
        let errand = errand(Rc::clone(&self.inner), request, connection, ordered, Rc::clone(&returned));
        IdempotencyFuture::guarded(Guarded::new(
            exchange,
            arriving.map(|arriving| Box::pin(arriving) as Local),
            Box::pin(errand.with_current_subscriber()),
            returned,
        ))
    }
}

/// Whether what actix gives as the payload is the connection itself: of a request that asks for another protocol and has
/// no body. It would never end.
fn is_connection(request: &HttpRequest, payload: &Payload) -> bool {
    let has = |name| request.headers().contains_key(name);
    (request.head().upgrade() || is_websocket(request))
        && matches!(payload, Payload::H1 { .. })
        && !has(header::CONTENT_LENGTH)
        && !has(header::TRANSFER_ENCODING)
}

/// Whether actix reads the request as a WebSocket's, to the end of the connection: by this one field, whatever others say.
fn is_websocket(request: &HttpRequest) -> bool {
    let mut asked = request.headers().get_all(header::UPGRADE);
    asked.any(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

fn declared_length(headers: &header::HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

impl<I, S: Store> fmt::Debug for IdempotencyMiddleware<I, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyMiddleware").field("policy", self.layer.policy()).finish_non_exhaustive()
    }
}
