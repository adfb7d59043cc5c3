//! What the layer tells the handler, and what it tells the layers around it.

use std::{iter::successors, sync::Arc};

use idempotency_core::{Address, Fence, Key, Lease, LeaseLost, profile::http::Code};

/// What a handler may know of the attempt it is: in the request's extensions of every guarded run.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub(crate) key: Key,
    pub(crate) lease: Lease,
    pub(crate) lease_lost: LeaseLost,
    /// The attempt of the layer around this one, if there are two.
    pub(crate) outer: Option<Arc<Self>>,
}

impl Attempt {
    /// The caller's key. Two principals may use the same: a unique column of your own takes both, principal and key, and
    /// a provider gets [`provider_key`](Self::provider_key). Do not log it.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// Where the operation's record stands: the digest of door, scope and key.
    pub const fn address(&self) -> &Address {
        &self.lease.address
    }

    /// A key for a provider that takes idempotency keys itself: the whole of the [`address`](Self::address), 64 hex
    /// digits. Every run of the operation has the same, and no other operation has it, whatever key another principal
    /// chose.
    pub fn provider_key(&self) -> String {
        self.lease.address.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The fence: it rises with every run of this key. A system that remembers the highest fence it saw can refuse a
    /// run that was taken over.
    pub const fn fence(&self) -> Fence {
        self.lease.fence
    }

    /// 1 for the first run; one more each time a run took over from one that never said how it ended.
    pub const fn number(&self) -> u32 {
        self.lease.attempt
    }

    /// Whether an earlier run never said how it ended: its effect may have happened.
    pub const fn is_takeover(&self) -> bool {
        self.lease.is_takeover()
    }

    /// Tells when this run's lease is lost: another run may have begun.
    pub const fn lease_lost(&self) -> &LeaseLost {
        &self.lease_lost
    }

    /// The leases under which the request runs, this layer's first.
    pub(crate) fn leases(&self) -> impl Iterator<Item = &Lease> {
        successors(Some(self), |attempt| attempt.outer.as_deref()).map(|attempt| &attempt.lease)
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
