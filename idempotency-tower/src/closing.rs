//! How a run ends, once it is known what became of its response body.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::future::poll_immediate;
use idempotency_core::{
    Address, Claim, Completion, Permit, Release, Store, Vacant,
    profile::http::{Ending, OnServerError},
};
use tokio::time::timeout;
use tracing::{Instrument, instrument::WithSubscriber};

use crate::{
    body::Held,
    convert::{Draft, strip_markers},
    layer::DoorState,
};

/// A run whose ending is decided and whose body is still on its way.
#[derive(Debug)]
pub(crate) struct Closing<S: Store> {
    permit: Permit<S>,
    /// None where the trailers say it, once they are there, in the words of the policy's protocol.
    ending: Option<Ending>,
    draft: Draft,
    door: Arc<DoorState<S>>,
}

/// What became of the body.
#[derive(Debug)]
pub(crate) enum Captured {
    /// It is all here, its trailers as they came: a word to the layer in them is read, and not kept.
    Whole(Held),
    /// It is not kept: too large, or there is none.
    TooLarge,
    /// It is not kept: its client left, and nobody waited for its end.
    Abandoned,
    /// It ended half way.
    Broken,
}

/// What became of the run.
#[derive(Debug)]
#[must_use]
pub(crate) enum Closed {
    /// Its ending counts, or is still tried while its caller gets the real answer.
    Settled,
    /// Another run took its place; what stands there, if the store says.
    TakenOver(Option<Claim<Vacant>>),
}

impl<S: Store> Closing<S> {
    pub(crate) const fn new(
        permit: Permit<S>,
        ending: Option<Ending>,
        draft: Draft,
        door: Arc<DoorState<S>>,
    ) -> Self {
        Self { permit, ending, draft, door }
    }

    pub(crate) fn with_ending(self, ending: Ending) -> Self {
        Self { ending: Some(ending), ..self }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.permit.lease().address
    }

    pub(crate) const fn door(&self) -> &Arc<DoorState<S>> {
        &self.door
    }

    /// The longest body that is held in memory, in bytes: what the policy and the store can keep.
    pub(crate) fn cap(&self) -> usize {
        let room = self.draft.body_room(self.door.engine.store().max_outcome_bytes());
        self.door.policy.max_response_bytes.min(room)
    }

    pub(crate) fn keeps_body(&self) -> bool {
        matches!(self.ending, None | Some(Ending::Keep))
    }

    pub(crate) fn keeps_head_only(&self) -> bool {
        self.ending == Some(Ending::KeepHead)
    }

    /// Ends the run. The caller waits at most `settle_wait`; after that the ending is tried on in a task.
    pub(crate) fn close(self, captured: Captured) -> impl Future<Output = Closed> {
        let wait = self.door.policy.settle_wait;
        let mut settling = Box::pin(self.settle(captured));
        async move {
            // A store that answers at once, as one in memory does, needs no timer.
            match poll_immediate(&mut settling).await {
                Some(closed) => closed,
                None => Box::pin(settled_within(wait, settling)).await,
            }
        }
    }

    /// Decides how the run ends; the future tells the store.
    fn settle(mut self, mut captured: Captured) -> impl Future<Output = Closed> {
        let ending = self.ending_after(&captured);
        let policy = &self.door.policy;
        if let Captured::Whole(Held { trailers: Some(trailers), .. }) = &mut captured {
            strip_markers(trailers, &policy.replayed_header);
        }
        let whole = match captured {
            Captured::Whole(held) if ending == Ending::Keep => Some(self.draft.whole(policy, held)),
            _ => None,
        };
        let max_outcome_bytes = self.door.engine.store().max_outcome_bytes();
        let Self { permit, draft, .. } = self;
        async move {
            let release = match ending {
                Ending::Keep | Ending::KeepHead => {
                    let tombstone = || draft.tombstone(max_outcome_bytes);
                    return completed(permit.complete(whole.unwrap_or_else(tombstone), tombstone).await);
                }
                Ending::NotExecuted => Release::NotApplied,
                Ending::Unknown => Release::Unknown,
            };
            // An ending that is not kept takes no answer from anybody: fenced off or lost, its caller gets its own.
            drop(permit.release(release).await);
            Closed::Settled
        }
    }

    fn ending_after(&self, captured: &Captured) -> Ending {
        let policy = &self.door.policy;
        let on_server_error = policy.on_server_error;
        let ending = match (self.ending, captured) {
            (Some(ending), _) => ending,
            (None, Captured::Whole(held)) => {
                let said = policy.protocol.zip(held.trailers.as_deref());
                let said = said.and_then(|(protocol, trailers)| (protocol.ending)(trailers, on_server_error));
                said.unwrap_or(on_server_error.ending())
            }
            // How it would have ended nobody knows. It is not run again in any case: under this policy somebody looks.
            (None, Captured::Abandoned) if on_server_error == OnServerError::Hold => Ending::Unknown,
            (None, _) => Ending::Keep,
        };
        match (ending, captured) {
            // A server error half way through an answer, whose head says otherwise.
            (Ending::Keep, Captured::Broken) => match on_server_error {
                OnServerError::Keep => Ending::KeepHead,
                other => other.ending(),
            },
            (Ending::Keep, Captured::TooLarge | Captured::Abandoned) => Ending::KeepHead,
            (ending, _) => ending,
        }
    }
}

/// What became of an ending that is on its way, and goes on in a task when that takes longer than `wait`.
async fn settled_within(
    wait: Duration,
    mut settling: Pin<Box<impl Future<Output = Closed> + Send + 'static>>,
) -> Closed {
    match timeout(wait, &mut settling).await {
        Ok(closed) => closed,
        Err(_) => {
            tokio::spawn(settling.in_current_span().with_current_subscriber());
            Closed::Settled
        }
    }
}

fn completed(completion: Completion) -> Closed {
    match completion {
        Completion::Stored | Completion::Lost(_) => Closed::Settled,
        Completion::Fenced(standing) => Closed::TakenOver(standing),
    }
}
