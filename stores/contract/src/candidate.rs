//! What is graded, and how its time passes.

use std::{future::Future, sync::Arc, time::Duration};

use idempotency_core::{Inspect, Store, clock::ManualClock};

/// A store that stands for its grade.
pub trait Candidate: Send + Sync + 'static {
    /// The store. Laws read records through [`Inspect`], so that a verdict which hides a wrong write is found.
    type Store: Store + Inspect;

    /// A fresh, empty store and the means to let its time pass. Each law opens one.
    fn open(&self) -> impl Future<Output = Bench<Self::Store>> + Send;

    /// How records leave the store. The default is [`Expiry::Purged`].
    fn expiry(&self) -> Expiry {
        Expiry::Purged
    }

    /// How many steps the history that is compared with the machine takes; the one of many holders at once takes a
    /// tenth. The default is 100,000, a few seconds for a store in memory. Under [`Time::Real`] both take a few
    /// hundred, whatever this says. Below 10,000 the races are run 5 times instead of 20.
    fn steps(&self) -> u32 {
        100_000
    }

    /// How many steps a history takes at most, whatever `STORE_CONTRACT_STEPS` says: for a backend that takes tens of
    /// milliseconds for each. The default is no bound.
    fn most_steps(&self) -> u32 {
        u32::MAX
    }

    /// By how much the store's clock may be set, forth or back, while a law runs under [`Time::Real`]. The default is
    /// 2 ms, for a clock that a host keeps right; a law lets it be a small part of 300 ms.
    fn clock_steps(&self) -> Duration {
        Duration::from_millis(2)
    }
}

/// One fresh store, and its time.
#[derive(Debug)]
pub struct Bench<S> {
    /// The store under test.
    pub store: Arc<S>,
    /// How its time passes.
    pub time: Time,
}

/// How a store's time passes.
#[derive(Debug, Clone)]
pub enum Time {
    /// The store reads this clock. Laws move it, so boundaries are tested to the microsecond.
    Manual(Arc<ManualClock>),
    /// The store reads a clock of its own; a step of time is slept.
    Real,
}

/// How records leave a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// [`Store::purge`] removes them and counts them.
    Purged,
    /// The backend removes them by itself, sooner or later; a purge removes nothing and answers 0.
    Native,
}
