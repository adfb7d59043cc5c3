//! What an engine makes of a broken line: no key is locked in vain, and no outcome is lost.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use idempotency_core::{
    Bid, Claim, ClaimError, Completion, Engine, Inspect, Keep, Lease, Operation, Outcome, Phase, Release,
    Settled, Store, StoreError, Vacant,
    policy::{Bounds, Terms},
};
use tokio::task::JoinSet;

use crate::{
    Violation,
    scene::{LONG, operation, outcome},
    violation::{demand, demand_eq},
    wire::{
        Fault,
        line::{Line, bid},
    },
};

/// More exchanges than any call takes, connecting anew included.
const MOST: usize = 60;

/// A grant whose reply is lost, and whose repetition is lost too, is given back: the key is free long before the lease
/// lapses.
pub(crate) async fn lost_grant_locks_no_key<S: Store + Inspect>(line: Line<S>) -> Result<(), Violation> {
    let engine = engine(&line);
    for nth in 1..=MOST {
        line.rests().await?;
        let op = operation();
        line.proxy.strike(Fault::CutAfter, nth..);
        let claim = engine.claim(&op, &terms()).await;
        let struck = line.proxy.heal();
        match claim {
            Ok(Claim::Granted(permit)) => {
                let released = permit.release(Release::NotApplied).await?;
                demand_eq!(released, Settled::Applied, "a permit gives its lease back");
            }
            Ok(refused) => {
                let name = refused.name();
                return Err(Violation::new("nobody meets a claim of their own as somebody else's", &name));
            }
            Err(ClaimError::Store(_)) => {}
            Err(other) => return Err(Violation::new("only the store fails", &other)),
        }
        line.freed(&op).await.map_err(|violation| violation.at(&format!("exchange {nth} and later")))?;
        if struck == 0 {
            return Ok(());
        }
    }
    Err(Violation::new("a claim takes a few exchanges", &MOST))
}

/// A claim whose caller goes away while the reply is on its way is given back.
pub(crate) async fn abandoned_claim_locks_no_key<S: Store + Inspect>(line: Line<S>) -> Result<(), Violation> {
    let engine = engine(&line);
    for nth in 1..=MOST {
        line.rests().await?;
        let op = operation();
        line.proxy.strike(Fault::SilentReply, nth..);
        let terms = terms();
        let answered = tokio::select! {
            _ = engine.claim(&op, &terms) => true,
            () = line.proxy.reached(1) => false,
        };
        line.proxy.heal();
        if answered {
            return Ok(());
        }
        line.freed(&op).await.map_err(|violation| violation.at(&format!("exchange {nth} and later")))?;
    }
    Err(Violation::new("a claim takes a few exchanges", &MOST))
}

/// A completion that is cut off four times, at each place in turn, is stored once the line holds.
pub(crate) async fn lost_completion_is_stored_in_the_end<S: Store + Inspect>(
    line: Line<S>,
) -> Result<(), Violation> {
    let engine = engine(&line);
    for nth in 1..=MOST {
        line.rests().await?;
        let op = operation();
        let permit = match engine.claim(&op, &terms()).await {
            Ok(Claim::Granted(permit)) => permit,
            other => return Err(Violation::new("a claim over a whole line is granted", &other.map(|_| ()))),
        };
        line.proxy.strike(Fault::CutAfter, nth..nth + 4);
        let completion = permit.complete(outcome("done"), || outcome("done")).await;
        let struck = line.proxy.heal();
        demand!(completion, Completion::Stored, "a completion is tried until it is stored");
        let record = line.record(op.address()).await?.map(|record| record.phase);
        demand!(
            record,
            Some(Phase::Completed { outcome: stored, .. }) if *stored == outcome("done"),
            "a stored outcome is on the server"
        );
        if struck == 0 {
            return Ok(());
        }
    }
    Err(Violation::new("a completion takes a few exchanges", &MOST))
}

/// While completions fail for longer than a lease lasts, the lease is renewed: nobody gets between, and the outcome is
/// stored.
pub(crate) async fn completion_is_tried_again_under_a_renewed_lease<S: Store + Inspect>(
    line: Line<S>,
) -> Result<(), Violation> {
    let lease = Duration::from_secs(2);
    let store = CompletesFar { far: Arc::clone(&line.far), near: Arc::clone(&line.near) };
    let engine = Engine::new(store, bounds(line.time_limit));
    let op = operation();
    let permit = match engine.claim(&op, &Terms { lease, ..terms() }).await {
        Ok(Claim::Granted(permit)) => permit,
        other => return Err(Violation::new("a claim over a whole line is granted", &other.map(|_| ()))),
    };
    line.proxy.strike(Fault::CutBefore, ..);
    let completing = tokio::spawn(async move { permit.complete(outcome("done"), || outcome("done")).await });
    let begun = Instant::now();
    while begun.elapsed() < lease * 3 / 2 {
        let rival = bid();
        let seen = line.tried(|| line.near.claim(&op, &rival)).await?;
        demand!(seen, Claim::InFlight { .. }, "the lease is renewed while its completion is tried");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    demand!(line.proxy.heal(), struck if *struck > 0, "a completion goes over the line");
    let completion = completing.await.map_err(|panic| Violation::new("a completion ends", &panic))?;
    demand!(completion, Completion::Stored, "a completion is tried until it is stored");
    let seen = line.tried(|| line.near.look(&op)).await?;
    demand_eq!(seen, Claim::Completed(outcome("done")), "a stored outcome answers");
    Ok(())
}

/// A server that takes everything and answers nothing holds no caller longer than the engine's time for a call, and
/// many callers no longer than one; they leave nothing behind that stands in the way of the next.
pub(crate) async fn silent_server_holds_no_caller<S: Store + Inspect>(
    line: Line<S>,
) -> Result<(), Violation> {
    let engine = engine(&line);
    line.works().await?;
    line.proxy.strike(Fault::Silent, ..);
    let mut callers = JoinSet::new();
    for _ in 0..line.callers {
        let engine = engine.clone();
        callers.spawn(async move {
            let begun = Instant::now();
            let failed = engine.claim(&operation(), &terms()).await.is_err();
            (failed, begun.elapsed())
        });
    }
    // A busy machine may wake a caller late.
    let limit = bounds(line.time_limit).store_timeout * 3;
    for (failed, took) in callers.join_all().await {
        demand_eq!(failed, true, "a server that answers nothing grants nothing");
        demand!(took, took if *took < limit, "a call ends within the engine's time for it");
    }
    line.proxy.heal();
    line.works().await?;
    let op = operation();
    let begun = Instant::now();
    loop {
        match engine.claim(&op, &terms()).await {
            Ok(claim) => {
                demand_eq!(claim.name(), "granted", "a claim over a line that is whole again is granted");
                return Ok(());
            }
            Err(error) => {
                let late = begun.elapsed() > line.recovery;
                demand!(&error, _ if !late, "a call over a whole line is answered");
            }
        }
    }
}

fn engine<S: Store>(line: &Line<S>) -> Engine<Arc<S>> {
    Engine::new(Arc::clone(&line.far), bounds(line.time_limit))
}

fn bounds(time_limit: Duration) -> Bounds {
    Bounds { store_timeout: time_limit * 2, ..Bounds::default() }
}

fn terms() -> Terms {
    Terms { lease: LONG, max_run: LONG, completion_retry: LONG, ..Terms::default() }
}

/// A store whose completions go over the line that breaks, and everything else over the one that does not.
#[derive(Debug)]
struct CompletesFar<S> {
    far: Arc<S>,
    near: Arc<S>,
}

impl<S: Store> Store for CompletesFar<S> {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        self.near.claim(op, bid).await
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        self.near.look(op).await
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        self.near.renew(lease, term).await
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        self.far.complete(lease, outcome, keep).await
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        self.near.release(lease, why).await
    }

    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        self.near.purge(at_most).await
    }

    fn max_outcome_bytes(&self) -> usize {
        self.near.max_outcome_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::TIME_LIMIT;

    #[test]
    fn terms_and_bounds_make_sense() {
        assert_eq!(terms().check(), Ok(()));
        assert_eq!(bounds(TIME_LIMIT).check(), Ok(()));
    }
}
