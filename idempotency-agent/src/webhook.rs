//! Webhooks: one effect for each event, however often it is sent.

use std::{fmt, time::Duration};

use idempotency_core::LedgerStore;

use crate::{EffectBuilder, Ledger, NameError, Outcome};

/// When an event is worth another try while it is being worked on.
const LATER: Duration = Duration::from_secs(5);

/// The intent of events.
const INTENT: &str = "webhook";

/// What to answer to whoever sent an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl<S: LedgerStore> Ledger<S> {
    /// Asks for the effect of an event that was sent to `scope`: an endpoint, and whose events they are. `event_id` is the
    /// id that its sender gives it and keeps when it sends it again: an empty one is refused when it is executed. The event
    /// is verified before this is called.
    pub fn webhook(&self, scope: impl Into<String>, event_id: impl fmt::Display) -> EffectBuilder<S> {
        let event_id = event_id.to_string();
        if event_id.is_empty() {
            return EffectBuilder::new(self.clone(), Err(NameError::EmptyId));
        }
        let event = serde_json::json!({"eventId": event_id});
        self.effect(scope, INTENT).identity(&event)
    }
}

impl<T> Outcome<T> {
    /// What to answer to whoever sent the event that this came of.
    ///
    /// 200 says that it need not be sent again: it is done, or sending it again would not do it. That is so as well where
    /// nobody knows whether it is done, and *any error is that unless it says that nothing happened*: have such events
    /// looked for, by the ledger's observer or its history, or find out by a reconciler. 503 asks to be sent it again in
    /// 5 s, while it is being worked on; 500 when it failed and may be tried again.
    pub const fn webhook_answer(&self) -> WebhookAnswer {
        let (status, retry_after) = match self {
            Self::InFlight(_) => (503, Some(LATER)),
            Self::Failed { retryable: true, .. } => (500, None),
            Self::Executed { .. }
            | Self::Replayed(_)
            | Self::Failed { retryable: false, .. }
            | Self::Ambiguous { .. }
            | Self::Refused(_) => (200, None),
        };
        WebhookAnswer { status, retry_after }
    }
}
