//! Decides which key a request goes with.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use http::Request;
use http_body::Body;
use tower_service::Service;

use super::{KeyFuture, future::Binding, rules::Rules};
use crate::{
    BoxError,
    client::{Misuse, OperationKey},
};

/// The service a [`KeyLayer`](super::KeyLayer) makes.
///
/// Request bodies are [`Clone`], as for every layer that may send them twice. The error of a request that is not sent
/// downcasts to [`Misuse`]; every other error is the inner service's.
#[derive(Debug, Clone)]
pub struct KeyService<I> {
    inner: I,
    rules: Arc<Rules>,
}

impl<I> KeyService<I> {
    pub(super) const fn new(inner: I, rules: Arc<Rules>) -> Self {
        Self { inner, rules }
    }
}

impl<I: Clone> KeyService<I> {
    /// The instance that is ready; the one left in its place must become ready itself.
    fn take_ready(&mut self) -> I {
        let next = self.inner.clone();
        std::mem::replace(&mut self.inner, next)
    }
}

impl<I, B> Service<Request<B>> for KeyService<I>
where
    I: Service<Request<B>> + Clone,
    I::Error: Into<BoxError>,
    B: Body + Clone,
    B::Error: Into<BoxError>,
{
    type Response = I::Response;
    type Error = BoxError;
    type Future = KeyFuture<I, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> KeyFuture<I, B> {
        let operation = request.extensions_mut().remove::<OperationKey>();
        let is_keyed = request.headers().contains_key(&self.rules.header);
        let written = match operation {
            Some(_) if is_keyed => Err(Misuse::TwoKeys),
            Some(operation) => {
                let inner = self.take_ready();
                let rules = Arc::clone(&self.rules);
                return KeyFuture::binding(Binding { inner, rules, operation, request });
            }
            None if self.rules.methods.contains(request.method()) => self.rules.keep_or_write(&mut request),
            None => Ok(()),
        };
        match written {
            Ok(()) => KeyFuture::sent(self.inner.call(request)),
            Err(misuse) => {
                drop(self.take_ready()); // what was reserved for this request is given back
                KeyFuture::refused(misuse)
            }
        }
    }
}
