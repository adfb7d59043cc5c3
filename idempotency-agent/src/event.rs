//! What a ledger tells an observer.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use crate::ledger::{RefusalReason, Resolution};

/// Something that happened to an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Its scope.
    pub scope: String,
    /// Its key.
    pub key: String,
    /// What happened.
    pub kind: EventKind,
}

/// What happened to an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// An attempt begins.
    Claimed {
        /// Which.
        attempt: u64,
        /// Of which run.
        run_id: Option<String>,
    },
    /// It happened, and that is recorded.
    Committed {
        /// At which attempt.
        attempt: u64,
        /// Of which run.
        run_id: Option<String>,
    },
    /// It had happened; its result was answered.
    Replayed,
    /// Another attempt runs.
    InFlight,
    /// It may not be attempted.
    Refused {
        /// Why; none when the scope is busy.
        reason: Option<RefusalReason>,
        /// Of which run.
        run_id: Option<String>,
    },
    /// Nobody knows whether it happened.
    Ambiguous {
        /// What its attempt said, where it was one of this call.
        error: Option<String>,
    },
    /// It did not happen.
    Failed {
        /// At which attempt.
        attempt: u64,
        /// What its attempt said.
        error: String,
    },
    /// Somebody found out how it turned out.
    Reconciled(Resolution),
    /// Its attempt ended when it had been given up, or its ending could not be recorded.
    LateSettle {
        /// Which attempt.
        attempt: u64,
    },
    /// It came to something that JSON cannot hold: null is recorded in its place.
    UnserializableResult,
    /// It came to more than is kept: that it is done is recorded, and how long its result was.
    ResultNotKept {
        /// How long it was, in bytes.
        bytes: u64,
    },
}

/// Whoever is told of events. It is called within the calls it is told of, so it is quick; if it panics, that is ignored.
pub trait Observer: Send + Sync + 'static {
    /// Takes notice.
    fn notice(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> Observer for F {
    fn notice(&self, event: &Event) {
        self(event);
    }
}

/// An observer, or none.
#[derive(Clone, Default)]
pub(crate) struct Notices(Option<Arc<dyn Observer>>);

impl Notices {
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    pub(crate) fn to(observer: impl Observer) -> Self {
        Self(Some(Arc::new(observer)))
    }

    pub(crate) fn tell(&self, scope: &str, key: &str, kind: EventKind) {
        let Some(observer) = &self.0 else { return };
        let event = Event { scope: scope.to_owned(), key: key.to_owned(), kind };
        let _ = catch_unwind(AssertUnwindSafe(|| observer.notice(&event)));
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Notices(to an observer)" } else { "Notices(none)" })
    }
}
