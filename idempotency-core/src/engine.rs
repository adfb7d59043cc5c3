//! Asks the store for the right to run, and hands it out as a value.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use crate::{
    Address, Claim, Fate, Holder, Lease, Operation, Release, Store, StoreError, StoreErrorKind,
    calls::Calls,
    event::{Event, Observer, Observers, StoreCall},
    flight::Flights,
    keeper::{Keepers, Task},
    live::Live,
    notify::{Notify, Wakes},
    permit::Permit,
    policy::{Bounds, PolicyError, Terms},
};

/// One engine serves every door: it claims, keeps leases renewed, bounds what is live and drains it.
///
/// Cheap to clone; clones share everything. It needs a tokio runtime with timers, and does no IO of its own.
#[derive(Debug)]
pub struct Engine<S: Store> {
    pub(crate) calls: Arc<Calls<S>>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) wakes: Wakes,
    keepers: Arc<Keepers<S>>,
    live: Arc<Live>,
}

impl<S: Store> Clone for Engine<S> {
    fn clone(&self) -> Self {
        Self {
            calls: Arc::clone(&self.calls),
            flights: Arc::clone(&self.flights),
            wakes: self.wakes.clone(),
            keepers: Arc::clone(&self.keepers),
            live: Arc::clone(&self.live),
        }
    }
}

impl<S: Store> Engine<S> {
    /// An engine on `store` within `bounds`.
    pub fn new(store: S, bounds: Bounds) -> Self {
        Self::with(store, bounds, Observers::default())
    }

    /// An engine that tells `observer` what happens.
    pub fn observed(store: S, bounds: Bounds, observer: impl Observer) -> Self {
        Self::with(store, bounds, Observers::one(observer))
    }

    fn with(store: S, bounds: Bounds, observers: Observers) -> Self {
        let calls = Arc::new(Calls::new(store, observers, bounds.store_timeout));
        Self {
            flights: Flights::new(&bounds),
            wakes: Wakes::default(),
            keepers: Keepers::new(Arc::clone(&calls)),
            live: Live::new(bounds.max_live_runs),
            calls,
        }
    }

    /// The same engine, its waiters woken by `notify` too: the store itself, where it can tell.
    #[must_use]
    pub fn woken_by(self, notify: impl Notify) -> Self {
        Self { wakes: Wakes::by(notify), ..self }
    }

    /// The store the engine claims from.
    pub fn store(&self) -> &S {
        &self.calls.store
    }

    /// Bids for the right to run `op`.
    ///
    /// The run counts as live from before the claim until its permit has ended. When the future is dropped while the
    /// claim is on its way, or the claim's fate stays unknown, the bid is released in the background; should a copy of
    /// it land even later, it costs one lease, or one record in doubt, and never a second run.
    ///
    /// # Errors
    /// [`ClaimError`]: too many runs are live, the store failed or answered after the lease had lapsed, or the terms
    /// make no sense. Nothing was run.
    pub async fn claim(&self, op: &Operation, terms: &Terms) -> Result<Claim<Permit<S>>, ClaimError> {
        terms.check()?;
        let Some(seat) = self.live.take() else {
            self.calls.tell(op.address(), &Event::Overloaded);
            return Err(ClaimError::Overloaded { bound: self.live.bound() });
        };
        let sent = Instant::now();
        let mut bidding = Bidding::new(&self.calls, op.address());
        let claim = self.bid(op, terms, &mut bidding).await?;
        if matches!(claim, Claim::Granted(_)) && sent.elapsed() >= terms.lease {
            // Somebody else may run by now: the open bid is withdrawn.
            let error = lapsed_on_its_way();
            self.calls.tell(op.address(), &Event::StoreFailed { call: StoreCall::Claim, error: &error });
            return Err(error.into());
        }
        let granted = |lease: &Lease| Event::Granted { fence: lease.fence, attempt: lease.attempt };
        self.calls.tell(op.address(), &Event::of(&claim, granted));
        let Claim::Granted(lease) = claim else {
            bidding.close();
            return Ok(claim.map(|_| unreachable!("a grant is taken out above")));
        };
        let (kept, task) = self.keepers.here().keep(lease, sent, terms.lease, terms.max_run);
        let permit = Permit::new(Arc::clone(&self.calls), op.clone(), *terms, lease, kept, seat);
        if task == Task::Woken {
            // The keeper must get hold of a thread before this run may block the one it was woken on.
            tokio::task::yield_now().await;
        }
        bidding.close();
        Ok(Claim::Granted(permit))
    }

    /// Tells the observer what a door did without the store.
    pub fn tell(&self, address: &Address, event: &Event<'_>) {
        self.calls.tell(address, event);
    }

    /// How many runs are live, pending endings included.
    pub fn live_runs(&self) -> usize {
        self.live.count()
    }

    /// Waits until no run is live, at most `limit`. What is left then is neither released nor completed: it lapses.
    pub async fn drain(&self, limit: Duration) -> Drained {
        // The wait ends either way; what is left says how.
        let _ = timeout(limit, self.live.idle()).await;
        Drained { left: self.live_runs() }
    }

    /// A claim whose reply was lost is sent once more: the holder adopts what the first copy was granted.
    async fn bid(
        &self,
        op: &Operation,
        terms: &Terms,
        bidding: &mut Bidding<'_, S>,
    ) -> Result<Claim<Lease>, ClaimError> {
        let bid = terms.bid(bidding.lease.holder);
        let claim = async {
            match self.calls.store.claim(op, &bid).await {
                Err(error) if error.fate == Fate::Unknown => {
                    self.calls
                        .tell(op.address(), &Event::StoreFailed { call: StoreCall::Claim, error: &error });
                    // Whatever becomes of this copy, the first may have landed.
                    self.calls.store.claim(op, &bid).await.map_err(|error| error.with_fate(Fate::Unknown))
                }
                answer => answer,
            }
        };
        self.calls.in_time(StoreCall::Claim, op.address(), pin!(claim)).await.map_err(|error| {
            if error.fate == Fate::NotApplied {
                bidding.close();
            }
            ClaimError::Store(error)
        })
    }
}

fn lapsed_on_its_way() -> StoreError {
    let late = "the claim was answered after its lease had lapsed";
    StoreError::new(StoreErrorKind::Unavailable, Fate::Unknown).with_source(late)
}

/// A bid on its way. Left open, by a dropped future or an unknown fate, it is released in the background.
struct Bidding<'a, S: Store> {
    calls: &'a Arc<Calls<S>>,
    lease: Lease,
    open: bool,
}

impl<'a, S: Store> Bidding<'a, S> {
    fn new(calls: &'a Arc<Calls<S>>, address: &Address) -> Self {
        Self { calls, lease: Lease::unconfirmed(*address, Holder::draw()), open: true }
    }

    fn close(&mut self) {
        self.open = false;
    }
}

impl<S: Store> Drop for Bidding<'_, S> {
    fn drop(&mut self) {
        // Without a runtime nothing can be sent any more, and the lease lapses.
        if self.open
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(withdraw(Arc::clone(self.calls), self.lease));
        }
    }
}

/// Releases a bid that was never run, trying again a few times: each try is as good as the first.
async fn withdraw<S: Store>(calls: Arc<Calls<S>>, lease: Lease) {
    let mut pause = Duration::from_millis(100);
    for _ in 0..6 {
        let release = calls.store.release(&lease, Release::NotApplied);
        if calls.in_time(StoreCall::Release, &lease.address, pin!(release)).await.is_ok() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

/// Why no verdict was reached. Nothing was run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// As many runs are live as [`Bounds::max_live_runs`] allows.
    #[error("{bound} runs are live, as many as may be")]
    Overloaded {
        /// The bound.
        bound: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The terms make no sense.
    #[error(transparent)]
    Terms(#[from] PolicyError),
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Drained {
    /// How many runs were still live.
    pub left: usize,
}
