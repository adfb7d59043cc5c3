//! The span of one guarded request.

use idempotency_core::{Address, Lease};
use tracing::{Span, field};

/// Its fields are recorded when they are known; while nobody listens, opening and recording cost a branch each.
#[derive(Debug, Clone)]
pub(crate) struct RequestSpan(Span);

impl RequestSpan {
    pub(crate) fn open() -> Self {
        Self(tracing::info_span!(
            "idempotency",
            operation = field::Empty,
            verdict = field::Empty,
            fence = field::Empty,
            attempt = field::Empty,
        ))
    }

    pub(crate) fn operation(&self, address: &Address) {
        self.0.record("operation", field::display(address));
    }

    pub(crate) fn verdict(&self, verdict: &'static str) {
        self.0.record("verdict", verdict);
    }

    pub(crate) fn granted(&self, lease: &Lease) {
        self.0.record("fence", lease.fence.as_u64());
        self.0.record("attempt", lease.attempt);
    }

    /// What is polled inside it.
    pub(crate) fn into_inner(self) -> Span {
        self.0
    }
}
