//! The right to run, as held by running code.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{
    Claim, Fate, Lease, Operation, Outcome, Release, Settled, Store, StoreError, StoreErrorKind, Vacant,
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

    /// Ends the run with `outcome`; with what `tombstone` makes where the store cannot hold that.
    ///
    /// A store that fails is asked again, with back-off and under renewal, until
    /// [`Terms::completion_retry`] has passed: the holder decides, so a completion counts past the end of the lease
    /// too, as long as nobody took the key. Run it where no caller's cancellation can drop it.
    pub async fn complete(mut self, outcome: Outcome, tombstone: impl FnOnce() -> Outcome) -> Completion {
        let no_room =
            |error: &StoreError| matches!(error.kind, StoreErrorKind::TooLarge | StoreErrorKind::Full);
        let mut stored = outcome;
        let fits = stored.bytes.len() <= self.run.calls.store.max_outcome_bytes();
        let mut settled = if fits {
            let cannot_hold = |error: &StoreError| no_room(error) && !stored.is_tombstone();
            self.settle(Ending::Complete(&stored), cannot_hold).await
        } else {
            Err(StoreError::new(StoreErrorKind::TooLarge, Fate::NotApplied))
        };
        if !fits || (settled.as_ref().is_err_and(no_room) && !stored.is_tombstone()) {
            stored = tombstone();
            let never_fits = |error: &StoreError| error.kind == StoreErrorKind::TooLarge;
            settled = self.settle(Ending::Complete(&stored), never_fits).await;
        }
        match settled {
            Ok(Settled::Applied) => {
                self.tell(&Event::Stored);
                if let Some(flight) = self.run.flight.take() {
                    flight.tell(Stage::Over(Claim::Completed(stored)));
                }
                Completion::Stored
            }
            Ok(Settled::Fenced(_)) => Completion::Fenced(Box::pin(self.standing()).await),
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
        let settled = self.settle(Ending::Release(why), |_| false).await;
        match &settled {
            Ok(Settled::Applied) => self.tell(&Event::Released(why)),
            Ok(Settled::Fenced(_)) => self.tell(&Event::Fenced),
            Err(error) => self.tell(&Event::OutcomeLost(error)),
        }
        settled
    }

    /// Sends an ending until it is answered, `hopeless` says that it never will be, or its time is up.
    async fn settle(
        &mut self,
        ending: Ending<'_>,
        hopeless: impl Fn(&StoreError) -> bool,
    ) -> Result<Settled, StoreError> {
        let mut settled = self.send(ending).await;
        if settled.as_ref().is_err_and(|error| !hopeless(error)) {
            // A future of its own: hardly any ending needs the room of another try.
            settled = Box::pin(self.send_again(ending, settled, hopeless)).await;
        }
        self.run.ended = settled.is_ok();
        settled
    }

    async fn send_again(
        &self,
        ending: Ending<'_>,
        mut settled: Result<Settled, StoreError>,
        hopeless: impl Fn(&StoreError) -> bool,
    ) -> Result<Settled, StoreError> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(50);
        while let Err(error) = &settled
            && !hopeless(error)
            && begun.elapsed() + pause <= self.run.terms.completion_retry
        {
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(5));
            settled = self.send(ending).await;
        }
        settled
    }

    async fn send(&self, ending: Ending<'_>) -> Result<Settled, StoreError> {
        let Run { calls, lease, terms, .. } = &*self.run;
        match ending {
            Ending::Complete(outcome) => {
                let sent = calls.store.complete(lease, outcome, terms.keep());
                calls.in_time(StoreCall::Complete, &lease.address, pin!(sent)).await
            }
            Ending::Release(why) => {
                let sent = calls.store.release(lease, why);
                calls.in_time(StoreCall::Release, &lease.address, pin!(sent)).await
            }
        }
    }

    /// What stands in the place of a run that was fenced off; `None` when the store does not say.
    async fn standing(&self) -> Option<Claim<Vacant>> {
        self.tell(&Event::Fenced);
        let calls = &self.run.calls;
        calls.in_time(StoreCall::Look, self.run.op.address(), pin!(calls.store.look(&self.run.op))).await.ok()
    }

    fn tell(&self, event: &Event<'_>) {
        self.run.calls.tell(&self.run.lease.address, event);
    }
}

/// What is sent to the store to end a run.
#[derive(Clone, Copy)]
enum Ending<'a> {
    Complete(&'a Outcome),
    Release(Release),
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
