//! The layer.

use std::sync::Arc;

use tower_layer::Layer;

use super::{RetryService, RetryTerms};

/// Tries keyed requests again while the guard asks for it, or while nobody knows whether they arrived.
///
/// It stands inside a [`KeyLayer`](super::super::KeyLayer), which says which requests are keyed; all others pass
/// untouched. Refusals are told by their documents, read up to 16 KiB and given on unread, as far as the caller can
/// tell. Errors are not told apart: one that will not pass is met as often as the [`RetryTerms`] allow. An inner service
/// that fails to become ready ends the tries with its error.
///
/// An answer whose head has arrived is given on: a body that breaks off later is the caller's to see, who may send the
/// request again with its [`OperationKey`](super::super::OperationKey).
#[derive(Debug, Clone, Default)]
pub struct RetryLayer {
    terms: Arc<RetryTerms>,
}

impl RetryLayer {
    /// A layer that tries as often and waits as long as `terms` say.
    pub fn new(terms: RetryTerms) -> Self {
        Self { terms: Arc::new(terms) }
    }
}

impl<I> Layer<I> for RetryLayer {
    type Service = RetryService<I>;

    fn layer(&self, inner: I) -> RetryService<I> {
        RetryService::new(inner, Arc::clone(&self.terms))
    }
}
