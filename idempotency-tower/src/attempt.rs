//! What the layer tells the handler, and what it tells the layers around it.

use idempotency_core::{Fence, Key, LeaseLost, profile::http::Code};

/// What a handler may know of the attempt it is: in the request's extensions of every guarded run.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub(crate) key: Key,
    pub(crate) fence: Fence,
    pub(crate) number: u32,
    pub(crate) lease_lost: LeaseLost,
}

impl Attempt {
    /// The caller's key. Give it to a unique column of your own, or to a provider that takes keys; do not log it.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// The fence: it rises with every run of this key. A system that remembers the highest fence it saw can refuse a
    /// run that was taken over.
    pub const fn fence(&self) -> Fence {
        self.fence
    }

    /// 1 for the first run; one more each time a run took over from one that never said how it ended.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether an earlier run never said how it ended: its effect may have happened.
    pub const fn is_takeover(&self) -> bool {
        self.number > 1
    }

    /// Tells when this run's lease is lost: another run may have begun.
    pub const fn lease_lost(&self) -> &LeaseLost {
        &self.lease_lost
    }
}

/// What the layer made of a request: in the response's extensions, for the layers around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The handler ran; this is its answer.
    Ran {
        /// See [`Attempt::fence`].
        fence: Fence,
        /// See [`Attempt::number`].
        attempt: u32,
    },
    /// The handler ran without a record, since the store did not answer and the policy lets it.
    RanUnrecorded,
    /// The handler did not run; this is an earlier run's answer.
    Replayed,
    /// The handler did not run, or its answer did not count; this is a problem document.
    Refused(Code),
}
