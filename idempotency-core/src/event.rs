//! What the engine tells an observer. Never a key, a scope or a byte of a payload: the address's digest only.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use crate::{Address, Claim, Fence, Form, Parts, Release, StoreError};

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
    Completed {
        /// Whether the outcome answers the copy, or only says that the operation is done.
        form: Form,
    },
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
    /// A store call ended, well or not. Told only to observers that
    /// [want to know how long](Observer::times_store_calls).
    StoreCalled {
        /// Which one.
        call: StoreCall,
        /// From its sending to its answer, or to where it was given up.
        took: Duration,
    },
    /// A store call failed; it may be tried again.
    StoreFailed {
        /// Which one.
        call: StoreCall,
        /// Its error. The error's source is the backend's own, and its text may say what the backend was given.
        error: &'a StoreError,
    },
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
            Claim::Completed(outcome) => Self::Completed { form: outcome.form },
            Claim::Expired => Self::Expired,
            Claim::InFlight { left } => Self::InFlight { left: *left },
            Claim::Mismatch(parts) => Self::Mismatch(*parts),
            Claim::InDoubt { fence } => Self::InDoubt { fence: *fence },
            Claim::Ended => Self::Ended,
        }
    }
}

/// A call of the store, as the engine makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreCall {
    /// [`Store::claim`](crate::Store::claim). A claim that is sent again after its reply was lost counts as one.
    Claim,
    /// [`Store::look`](crate::Store::look).
    Look,
    /// [`Store::renew`](crate::Store::renew).
    Renew,
    /// [`Store::complete`](crate::Store::complete).
    Complete,
    /// [`Store::release`](crate::Store::release).
    Release,
}

impl StoreCall {
    /// Its name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Look => "look",
            Self::Renew => "renew",
            Self::Complete => "complete",
            Self::Release => "release",
        }
    }
}

/// Sees every event. It cannot change an outcome: its panics are caught.
///
/// Several observers are one: `(a, b)` tells both, a `Vec` all of its own in their order.
pub trait Observer: Send + Sync + 'static {
    /// Called on the path of the request or of the run: be quick.
    fn observe(&self, address: &Address, event: &Event<'_>);

    /// Whether store calls are timed, for [`Event::StoreCalled`]. Asked once, when the engine is made. No unless an
    /// observer says yes: it costs two readings of the clock a call. The others of the engine then see them too.
    fn times_store_calls(&self) -> bool {
        false
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn observe(&self, address: &Address, event: &Event<'_>) {
        (**self).observe(address, event);
    }

    fn times_store_calls(&self) -> bool {
        (**self).times_store_calls()
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn observe(&self, address: &Address, event: &Event<'_>) {
        show(&self.0, address, event);
        show(&self.1, address, event);
    }

    fn times_store_calls(&self) -> bool {
        self.0.times_store_calls() || self.1.times_store_calls()
    }
}

impl<O: Observer> Observer for Vec<O> {
    fn observe(&self, address: &Address, event: &Event<'_>) {
        for observer in self {
            show(observer, address, event);
        }
    }

    fn times_store_calls(&self) -> bool {
        self.iter().any(Observer::times_store_calls)
    }
}

/// An observer's panic must not end a run, lose an outcome, or keep another observer from seeing.
fn show(observer: &(impl Observer + ?Sized), address: &Address, event: &Event<'_>) {
    // The panic is reported by the process's own hook.
    let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(address, event)));
}

/// The observer of an engine, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    observer: Option<Arc<dyn Observer>>,
    time_store_calls: bool,
}

impl Observers {
    pub(crate) fn one(observer: impl Observer) -> Self {
        let time_store_calls = observer.times_store_calls();
        Self { observer: Some(Arc::new(observer)), time_store_calls }
    }

    pub(crate) const fn time_store_calls(&self) -> bool {
        self.time_store_calls
    }

    pub(crate) fn tell(&self, address: &Address, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            show(&**observer, address, event);
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.observer.is_some() { "Observers(1)" } else { "Observers(0)" })
    }
}
