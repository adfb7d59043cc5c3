//! The layer.

use std::sync::Arc;

use http::{HeaderName, Method};
use tower_layer::Layer;

use super::{KeyService, rules::Rules};
use crate::client::Spelling;

/// Gives every request of a covered method one key, unless its caller set one.
///
/// Put it outside the layer that retries: what it sees once is one logical request. A key header that the caller set is
/// kept as it is, and an [`OperationKey`](super::super::OperationKey) in the request's extensions is used and checked.
#[derive(Debug, Clone, Default)]
pub struct KeyLayer {
    rules: Arc<Rules>,
}

impl KeyLayer {
    /// A layer that covers POST and PATCH and writes quoted keys into `Idempotency-Key`.
    pub fn new() -> Self {
        Self { rules: Arc::default() }
    }

    /// The methods whose requests get a key. POST and PATCH, since the others can be repeated without one.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        Arc::make_mut(&mut self.rules).methods = methods.into_iter().collect();
        self
    }

    /// The header that carries the key. `Idempotency-Key`.
    #[must_use]
    pub fn header(mut self, name: HeaderName) -> Self {
        Arc::make_mut(&mut self.rules).header = name;
        self
    }

    /// How keys are written. [`Spelling::Quoted`], as the draft says.
    #[must_use]
    pub fn spelling(mut self, spelling: Spelling) -> Self {
        Arc::make_mut(&mut self.rules).spelling = spelling;
        self
    }
}

impl<I> Layer<I> for KeyLayer {
    type Service = KeyService<I>;

    fn layer(&self, inner: I) -> KeyService<I> {
        KeyService::new(inner, Arc::clone(&self.rules))
    }
}
