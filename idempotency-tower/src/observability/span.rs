//! The span of one guarded request.

use idempotency_core::{Address, Lease};
use tracing::{Span, Value, field};

/// Its fields are recorded when they are known; while nobody listens, opening and recording cost a branch each.
#[derive(Debug, Clone)]
pub(crate) struct RequestSpan(Span);

impl RequestSpan {
    pub(crate) fn open() -> Self {
        let span = tracing::info_span!(
            "idempotency",
            operation = field::Empty,
            verdict = field::Empty,
            fence = field::Empty,
            attempt = field::Empty,
        );
        // One that nobody listens to still knows its name, and is slower to clone and to drop.
        Self(if span.is_disabled() { Span::none() } else { span })
    }

    pub(crate) fn operation(&self, address: &Address) {
        self.record("operation", field::display(address));
    }

    pub(crate) fn verdict(&self, verdict: &'static str) {
        self.record("verdict", verdict);
    }

    pub(crate) fn granted(&self, lease: &Lease) {
        self.record("fence", lease.fence.as_u64());
        self.record("attempt", lease.attempt);
    }

    fn record(&self, field: &str, value: impl Value) {
        // A span that nobody listens to would look the field up all the same.
        if !self.0.is_disabled() {
            self.0.record(field, value);
        }
    }

    /// What is polled inside it.
    pub(crate) fn into_inner(self) -> Span {
        self.0
    }
}
