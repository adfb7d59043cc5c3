//! What is logged, and how loudly. Of an error only its kind: its text, and its source's, is not the layer's to vouch
//! for.

use idempotency_core::{
    Address, Form, Part, Parts, Release,
    event::{Event, Observer},
    profile::http::Refusal,
};
use tracing::{debug, error, info, trace, warn};

/// Tells every event of an engine to `tracing`: inside the span of the request that it happens to, where there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log;

impl Observer for Log {
    fn observe(&self, address: &Address, event: &Event<'_>) {
        let operation = address;
        match event {
            Event::Granted { fence, attempt: 1 } => {
                trace!(%operation, fence = fence.as_u64(), "a run begins");
            }
            Event::Granted { fence, attempt } => {
                warn!(%operation, fence = fence.as_u64(), attempt, "a run takes over from one that never said how it ended");
            }
            Event::Completed { form: Form::Whole } => {
                debug!(%operation, "a copy is answered with the outcome");
            }
            Event::Completed { form: Form::Tombstone } => {
                debug!(%operation, "a copy finds the operation done, and its answer not kept");
            }
            Event::Expired => debug!(%operation, "a copy is refused: its key expired"),
            Event::InFlight { left } => debug!(%operation, ?left, "a copy is refused: the operation runs"),
            Event::Mismatch(parts) => {
                info!(%operation, differing = ?names(*parts), "a key came with another payload");
            }
            Event::InDoubt { fence } => {
                warn!(%operation, fence = fence.as_u64(), "a copy is refused: nobody knows how the operation ended");
            }
            Event::Ended => debug!(%operation, "a delayed copy of a claim that is over"),
            Event::Stored => trace!(%operation, "an outcome is stored"),
            Event::Released(Release::NotApplied) => debug!(%operation, "a run gave its key back"),
            Event::Released(Release::Unknown) => warn!(%operation, "a run left its operation in doubt"),
            Event::Fenced => {
                warn!(%operation, "a run ended after another one took its place; its answer does not count");
            }
            Event::LeaseLost => warn!(%operation, "a run lost its lease, or may have"),
            Event::LeftToLapse => warn!(%operation, "a run ends without an ending; its lease lapses"),
            Event::OutcomeLost(error) => {
                let kind = error.kind.name();
                error!(%operation, kind, "a run's ending could not be stored; its operation may run again");
            }
            Event::StoreFailed { call, error } => {
                let (call, kind) = (call.name(), error.kind.name());
                warn!(%operation, call, kind, fate = ?error.fate, "a store call failed");
            }
            Event::RanUnrecorded => warn!(%operation, "a run leaves no record: the store does not answer"),
            Event::Overloaded => warn!(%operation, "a claim is refused: too many runs are live"),
            _ => {}
        }
    }
}

fn names(parts: Parts) -> Vec<&'static str> {
    parts.iter().map(Part::name).collect()
}

/// A request that is refused before anything is claimed has no operation yet, and no event.
pub(crate) fn turned_away(refusal: &Refusal) {
    debug!(code = refusal.code.name(), "a request is refused before its claim");
}

/// A panic's message is whatever the handler put into it. The process's own panic hook has seen it, with its place.
pub(crate) fn panicked(address: &Address) {
    error!(operation = %address, "a handler panicked");
}

/// See [`panicked`]. `function` is the option's name.
pub(crate) fn policy_panicked(function: &'static str) {
    error!(function, "a function of the policy panicked");
}

/// As with a panic: what a handler's error says may be what its caller said.
pub(crate) fn inner_failed(address: &Address) {
    error!(operation = %address, "the inner service failed");
}

/// See [`inner_failed`].
pub(crate) fn broke_off(address: &Address) {
    warn!(operation = %address, "a response body broke off, or has not the length it announced");
}
