//! What the engine tells an observer. Never a key, a scope or a byte of a payload: the address's digest only.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use crate::{Address, Claim, Fence, Parts, Release, StoreError};

/// Something that happened to one operation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A claim was granted.
    Granted {
        /// Its fence.
        fence: Fence,
        /// 1 for a first run, more after takeovers.
        attempt: u32,
    },
    /// A copy found the operation completed.
    Completed,
    /// A copy came after the outcome stopped answering and before the key is new.
    Expired,
    /// A copy came while the operation runs.
    InFlight {
        /// The lease left.
        left: Duration,
    },
    /// A copy with another payload came.
    Mismatch(Parts),
    /// A copy found the operation in doubt.
    InDoubt {
        /// The fence a resolution must name.
        fence: Fence,
    },
    /// A delayed copy of a claim that was released came.
    Ended,
    /// A run's outcome was stored.
    Stored,
    /// A run's lease was given back.
    Released(Release),
    /// A run's ending did not count: its record is somebody else's.
    Fenced,
    /// A run was told that it lost its lease, or may have.
    LeaseLost,
    /// A permit was dropped without an ending: its lease lapses.
    LeftToLapse,
    /// A run's ending could not be stored for as long as it is tried. The operation may run again.
    OutcomeLost(&'a StoreError),
    /// A store call failed; it may be tried again.
    StoreFailed(&'a StoreError),
    /// A door ran the operation without a record, since the store did not answer and its policy lets it.
    RanUnrecorded,
    /// A claim was refused because too many runs are live.
    Overloaded,
}

impl Event<'_> {
    /// What a claim came to; `granted` says it of a grant.
    pub(crate) fn of<G>(claim: &Claim<G>, granted: impl FnOnce(&G) -> Self) -> Self {
        match claim {
            Claim::Granted(grant) => granted(grant),
            Claim::Completed(_) => Self::Completed,
            Claim::Expired => Self::Expired,
            Claim::InFlight { left } => Self::InFlight { left: *left },
            Claim::Mismatch(parts) => Self::Mismatch(*parts),
            Claim::InDoubt { fence } => Self::InDoubt { fence: *fence },
            Claim::Ended => Self::Ended,
        }
    }
}

/// Sees every event. It cannot change an outcome: its panics are caught.
pub trait Observer: Send + Sync + 'static {
    /// Called on the path of the request or of the run: be quick.
    fn observe(&self, address: &Address, event: &Event<'_>);
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn observe(&self, address: &Address, event: &Event<'_>) {
        (**self).observe(address, event);
    }
}

/// The observer of an engine, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Observers(Option<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn one(observer: impl Observer) -> Self {
        Self(Some(Arc::new(observer)))
    }

    pub(crate) fn tell(&self, address: &Address, event: &Event<'_>) {
        if let Some(observer) = &self.0 {
            // An observer's panic must not end a run or lose an outcome.
            let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(address, event)));
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observers(1)" } else { "Observers(0)" })
    }
}
