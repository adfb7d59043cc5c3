//! Claiming with patience: a copy waits for the first run's outcome instead of being told that it runs.

use std::{future::pending, pin::pin, time::Duration};

use tokio::time::{Instant, timeout_at};

use crate::{
    Claim, ClaimError, Engine, Fate, Operation, Permit, Store, StoreError, Vacant,
    event::{Event, StoreCall},
    flight::{Member, Scout, Stage, Turn},
    policy::Terms,
};

const NOT_OVER: &str = "a grant is never told as the end of a flight";

impl<S: Store> Engine<S> {
    /// Bids for the right to run `op`, as [`claim`](Self::claim) does; where that would find it in flight, waits up to
    /// `patience` for its end.
    ///
    /// All waiting copies of one payload in this process share their questions to the store: one of them asks for all.
    /// A waiter holds no permit, no connection and no place among the live runs. When the run releases the key, one
    /// waiter claims it and the others wait for that one. Beyond [`Bounds::max_waiters`](crate::policy::Bounds) and
    /// [`Bounds::max_waiters_per_key`](crate::policy::Bounds) a copy claims at once and does not wait.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    pub async fn claim_within(
        &self,
        op: &Operation,
        terms: &Terms,
        patience: Duration,
    ) -> Result<Claim<Permit<S>>, ClaimError> {
        let Some(member) = self.flights.join(op) else { return self.claim(op, terms).await };
        let deadline = Instant::now() + patience.min(Terms::MAX_DURATION);
        match timeout_at(deadline, member.turn()).await {
            Ok(Turn::Over(stage)) => self.share(op, stage),
            Ok(Turn::Scout(scout)) => self.scout(op, terms, &member, scout, deadline).await,
            Err(_) => Ok(self.out_of_patience(op, &member)),
        }
    }

    /// How many copies wait, the ones that ask on behalf of others included.
    pub fn waiters(&self) -> usize {
        self.flights.waiters()
    }

    async fn scout(
        &self,
        op: &Operation,
        terms: &Terms,
        member: &Member,
        mut scout: Scout<'_>,
        deadline: Instant,
    ) -> Result<Claim<Permit<S>>, ClaimError> {
        let mut seen = true;
        loop {
            match member.flight.stage() {
                // A claim on its way is not given up when the patience ends: it may be the first.
                Stage::Unknown => {
                    if let Some(verdict) = self.claim_for(op, terms, member).await? {
                        return Ok(verdict);
                    }
                }
                Stage::Running { .. } => {
                    let woken = async {
                        match seen {
                            true => self.wakes.wake(op.address()).await,
                            // What woke for a record that cannot be seen would wake for it again at once.
                            false => pending().await,
                        }
                    };
                    match timeout_at(deadline, scout.pause(woken)).await {
                        Ok(()) if member.flight.stage().is_running() => {
                            seen = self.look_for(op, member).await;
                        }
                        Ok(()) => {} // told meanwhile
                        Err(_) => return Ok(self.out_of_patience(op, member)),
                    }
                }
                over => return self.share(op, over),
            }
        }
    }

    /// Claims, and tells the flight what came of it; `None` when the operation is in flight.
    async fn claim_for(
        &self,
        op: &Operation,
        terms: &Terms,
        member: &Member,
    ) -> Result<Option<Claim<Permit<S>>>, ClaimError> {
        let flight = &member.flight;
        match self.claim(op, terms).await {
            Ok(Claim::Granted(mut permit)) => {
                flight.tell(Stage::Running { until: Instant::now() + terms.lease });
                permit.follow(flight);
                Ok(Some(Claim::Granted(permit)))
            }
            Ok(Claim::InFlight { left }) => {
                flight.tell(Stage::Running { until: Instant::now() + left });
                Ok(None)
            }
            Ok(verdict) => {
                let verdict = verdict.map(|_| Vacant);
                flight.tell(Stage::Over(verdict.clone()));
                Ok(Some(verdict.map(|Vacant| unreachable!("{NOT_OVER}"))))
            }
            Err(error) => {
                if let ClaimError::Store(error) = &error {
                    flight.tell(Stage::Failed(error.kind));
                }
                Err(error)
            }
        }
    }

    /// Looks, and tells the flight what is known now. A look that fails sees and tells nothing: the next one may not.
    async fn look_for(&self, op: &Operation, member: &Member) -> bool {
        let look = pin!(self.calls.store.look(op));
        let news = match self.calls.in_time(StoreCall::Look, op.address(), look).await {
            Ok(Claim::InFlight { left }) => Stage::Running { until: Instant::now() + left },
            Ok(Claim::Granted(Vacant)) => Stage::Unknown,
            Ok(verdict) => Stage::Over(verdict),
            Err(_) => return false,
        };
        member.flight.tell(news);
        true
    }

    /// What the flight's end means for one of its members.
    fn share(&self, op: &Operation, stage: Stage) -> Result<Claim<Permit<S>>, ClaimError> {
        match stage {
            Stage::Over(verdict) => {
                self.calls.tell(op.address(), &Event::of(&verdict, |Vacant| unreachable!("{NOT_OVER}")));
                Ok(verdict.map(|Vacant| unreachable!("{NOT_OVER}")))
            }
            Stage::Failed(kind) => Err(StoreError::new(kind, Fate::NotApplied).into()),
            Stage::Unknown | Stage::Running { .. } => unreachable!("only what is over is shared"),
        }
    }

    fn out_of_patience(&self, op: &Operation, member: &Member) -> Claim<Permit<S>> {
        let left = member.left();
        self.calls.tell(op.address(), &Event::InFlight { left });
        Claim::InFlight { left }
    }
}
