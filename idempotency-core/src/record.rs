//! What a store keeps of an operation.

use std::time::Duration;

use crate::{Fence, Fingerprint, Holder, OnLapse, Outcome, clock::Timestamp};

/// Where a record stands. A phase carries what only it has, so a record cannot contradict itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// A holder has the right to run until `until`.
    InFlight {
        /// What was asked.
        fingerprint: Fingerprint,
        /// When the lease lapses.
        until: Timestamp,
    },
    /// The operation ended; the outcome answers until `until`, and the key is refused as expired until `gone`.
    Completed {
        /// What was asked.
        fingerprint: Fingerprint,
        /// The answer of every replay.
        outcome: Outcome,
        /// When the outcome stops answering.
        until: Timestamp,
        /// When the key is new again.
        gone: Timestamp,
    },
    /// The run said that nothing happened: the key is free. Kept until `until`, so that a delayed copy of the
    /// released claim is known and the fence goes on.
    Released {
        /// When the record may be removed.
        until: Timestamp,
    },
    /// Somebody ran and could not say how it ended. Only an ending or a resolution leaves this phase.
    InDoubt {
        /// What was asked.
        fingerprint: Fingerprint,
    },
}

/// The name of a [`Phase`], without what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhaseName {
    /// See [`Phase::InFlight`].
    InFlight,
    /// See [`Phase::Completed`].
    Completed,
    /// See [`Phase::Released`].
    Released,
    /// See [`Phase::InDoubt`].
    InDoubt,
}

impl Phase {
    /// Which phase this is.
    pub const fn name(&self) -> PhaseName {
        match self {
            Self::InFlight { .. } => PhaseName::InFlight,
            Self::Completed { .. } => PhaseName::Completed,
            Self::Released { .. } => PhaseName::Released,
            Self::InDoubt { .. } => PhaseName::InDoubt,
        }
    }
}

/// What a store keeps of an operation, at its [`Address`](crate::Address).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it stands.
    pub phase: Phase,
    /// Who was granted it last.
    pub holder: Holder,
    /// The fence of that grant.
    pub fence: Fence,
    /// See [`Lease::attempt`](crate::Lease::attempt).
    pub attempt: u32,
    /// What a lapse of that grant means.
    pub on_lapse: OnLapse,
    /// How long the record outlives a release or a lapse: the bid's, in whole microseconds.
    pub retention: Duration,
}
