//! What a store answers: verdicts to a claim, and whether an ending counted.

use std::time::Duration;

use crate::{Fence, Outcome, Parts, PhaseName};

/// The verdict of a claim, generic in what is granted: a store grants a [`Lease`](crate::Lease), the engine a
/// [`Permit`](crate::Permit), and a look grants [`Vacant`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Claim<G> {
    /// The right to run.
    Granted(G),
    /// The operation ended before; here is its outcome.
    Completed(Outcome),
    /// The operation ended before, its outcome no longer answers, and its key is not new yet.
    Expired,
    /// Somebody runs it now; the lease has this long to go.
    InFlight {
        /// The lease left, on the store's clock.
        left: Duration,
    },
    /// The key belongs to another payload.
    Mismatch(Parts),
    /// Somebody ran it and never said how it ended.
    InDoubt {
        /// The fence a resolution must name.
        fence: Fence,
    },
    /// This very claim was granted and released before: a delayed copy of it, which must not run.
    Ended,
}

impl<G> Claim<G> {
    /// The verdict's name in logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Granted(_) => "granted",
            Self::Completed(_) => "completed",
            Self::Expired => "expired",
            Self::InFlight { .. } => "in_flight",
            Self::Mismatch(_) => "mismatch",
            Self::InDoubt { .. } => "in_doubt",
            Self::Ended => "ended",
        }
    }

    /// The same verdict with what is granted made something else.
    pub fn map<H>(self, grant: impl FnOnce(G) -> H) -> Claim<H> {
        match self {
            Self::Granted(granted) => Claim::Granted(grant(granted)),
            Self::Completed(outcome) => Claim::Completed(outcome),
            Self::Expired => Claim::Expired,
            Self::InFlight { left } => Claim::InFlight { left },
            Self::Mismatch(parts) => Claim::Mismatch(parts),
            Self::InDoubt { fence } => Claim::InDoubt { fence },
            Self::Ended => Claim::Ended,
        }
    }
}

/// What a look "grants": a claim sent now would get the right to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vacant;

/// Whether an ending or a renewal counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Settled {
    /// It counted, now or when it was sent before.
    Applied,
    /// It did not: the record is somebody else's or gone. What stands there now, if anything does.
    Fenced(Option<Standing>),
}

/// What stands at an address, for the one who was fenced off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The record's phase.
    pub phase: PhaseName,
    /// Its fence.
    pub fence: Fence,
}

/// Why a lease is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Nothing happened: the key is free at once, for any payload.
    NotApplied,
    /// Nobody knows whether it happened: the record is in doubt.
    Unknown,
}

/// How an operation in doubt ended, as found out by a reconciler or an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// It happened; this outcome answers replays.
    Applied(Outcome, crate::Keep),
    /// It did not happen: the key is free.
    NotApplied,
}
