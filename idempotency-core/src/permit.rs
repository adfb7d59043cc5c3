//! The right to run, as held by running code.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{
    Claim, Lease, Operation, Outcome, Release, Settled, Store, StoreError, StoreErrorKind, Vacant,
    calls::Calls,
    event::{Event, StoreCall},
    flight::{Flight, Stage},
    keeper::Kept,
    lease_lost::LeaseLost,
    live::Seat,
    policy::Terms,
};

/// The right to run one operation. Its lease is renewed while it lives.
///
/// It ends in one of three ways: [`complete`](Self::complete), [`release`](Self::release) as not applied, or as
/// unknown. Dropped without an ending its lease is no longer renewed and lapses, with what
/// [`OnLapse`](crate::OnLapse) says of that.
#[derive(Debug)]
#[must_use = "a permit that is dropped leaves its key locked until the lease lapses"]
pub struct Permit<S: Store> {
    // In one place: a permit goes from future to future, and each of them would have room for the whole of it.
    run: Box<Run<S>>,
}

#[derive(Debug)]
struct Run<S: Store> {
    calls: Arc<Calls<S>>,
    op: Operation,
    terms: Terms,
    lease: Lease,
    ended: bool,
    flight: Option<Arc<Flight>>,
    // Dropped in this order: renewing stops before the run stops counting as live.
    kept: Kept<S>,
    _seat: Seat,
}

impl<S: Store> Permit<S> {
    pub(crate) fn new(
        calls: Arc<Calls<S>>,
        op: Operation,
        terms: Terms,
        lease: Lease,
        kept: Kept<S>,
        seat: Seat,
    ) -> Self {
        let run = Run { calls, op, terms, lease, ended: false, flight: None, kept, _seat: seat };
        Self { run: Box::new(run) }
    }

    /// The lease this permit stands on.
    pub fn lease(&self) -> &Lease {
        &self.run.lease
    }

    /// Tells the copies that wait in this process how the run ends.
    pub(crate) fn follow(&mut self, flight: &Arc<Flight>) {
        self.run.flight = Some(Arc::clone(flight));
    }

    /// Tells when the lease is lost.
    pub fn lease_lost(&self) -> LeaseLost {
        self.run.kept.lease_lost()
    }

    /// Ends the run with `outcome`; with `tombstone` where the store cannot hold that.
    ///
    /// A store that fails is asked again, with back-off and under renewal, until
    /// [`Terms::completion_retry`] has passed: the holder decides, so a completion counts past the end of the lease
    /// too, as long as nobody took the key. Run it where no caller's cancellation can drop it.
    pub async fn complete(mut self, outcome: &Outcome, tombstone: &Outcome) -> Completion {
        let keep = self.run.terms.keep();
        let limit = self.run.calls.store.max_outcome_bytes();
        let first = if outcome.bytes.len() > limit { tombstone } else { outcome };
        let cannot_hold = |error: &StoreError| {
            matches!(error.kind, StoreErrorKind::TooLarge | StoreErrorKind::Full) && !first.is_tombstone()
        };
        let send = |store, lease| S::complete(store, lease, first, keep);
        let mut settled = self.settle(StoreCall::Complete, send, cannot_hold).await;
        let fell_back = settled.as_ref().is_err_and(cannot_hold);
        if fell_back {
            let never_fits = |error: &StoreError| error.kind == StoreErrorKind::TooLarge;
            let send = |store, lease| S::complete(store, lease, tombstone, keep);
            settled = self.settle(StoreCall::Complete, send, never_fits).await;
        }
        let stored = if fell_back { tombstone } else { first };
        match settled {
            Ok(Settled::Applied) => {
                self.tell(&Event::Stored);
                if let Some(flight) = self.run.flight.take() {
                    flight.tell(Stage::Over(Claim::Completed(stored.clone())));
                }
                Completion::Stored
            }
            Ok(Settled::Fenced(_)) => Completion::Fenced(self.standing().await),
            Err(error) => {
                self.tell(&Event::OutcomeLost(&error));
                Completion::Lost(error)
            }
        }
    }

    /// Gives the lease back: nothing happened, or nobody knows. Tried again like a completion.
    ///
    /// # Errors
    /// The store did not take it for as long as it was asked. The lease lapses.
    pub async fn release(mut self, why: Release) -> Result<Settled, StoreError> {
        let send = |store, lease| S::release(store, lease, why);
        let settled = self.settle(StoreCall::Release, send, |_| false).await;
        match &settled {
            Ok(Settled::Applied) => self.tell(&Event::Released(why)),
            Ok(Settled::Fenced(_)) => self.tell(&Event::Fenced),
            Err(error) => self.tell(&Event::OutcomeLost(error)),
        }
        settled
    }

    /// Sends an ending until it is answered, `hopeless` says that it never will be, or its time is up.
    async fn settle<'s, F>(
        &'s mut self,
        call: StoreCall,
        send: impl Fn(&'s S, &'s Lease) -> F,
        hopeless: impl Fn(&StoreError) -> bool,
    ) -> Result<Settled, StoreError>
    where
        F: Future<Output = Result<Settled, StoreError>>,
    {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(50);
        let calls = &self.run.calls;
        loop {
            let error =
                match calls.in_time(call, &self.run.lease.address, send(&calls.store, &self.run.lease)).await
                {
                    Ok(settled) => {
                        self.run.ended = true;
                        return Ok(settled);
                    }
                    Err(error) => error,
                };
            if hopeless(&error) || begun.elapsed() + pause > self.run.terms.completion_retry {
                return Err(error);
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(5));
        }
    }

    /// What stands in the place of a run that was fenced off; `None` when the store does not say.
    async fn standing(&self) -> Option<Claim<Vacant>> {
        self.tell(&Event::Fenced);
        let calls = &self.run.calls;
        calls.in_time(StoreCall::Look, self.run.op.address(), calls.store.look(&self.run.op)).await.ok()
    }

    fn tell(&self, event: &Event<'_>) {
        self.run.calls.tell(&self.run.lease.address, event);
    }
}

impl<S: Store> Drop for Permit<S> {
    fn drop(&mut self) {
        if !self.run.ended {
            self.tell(&Event::LeftToLapse);
        }
        if let Some(flight) = &self.run.flight {
            flight.nudge(); // no outcome was told: whoever waits finds out from the store
        }
    }
}

/// How a completion ended.
#[derive(Debug)]
#[must_use]
pub enum Completion {
    /// The outcome answers replays from now on.
    Stored,
    /// Another holder took the run's place; what a look found there.
    Fenced(Option<Claim<Vacant>>),
    /// The store did not take it for as long as it was asked. The operation may run again.
    Lost(StoreError),
}
