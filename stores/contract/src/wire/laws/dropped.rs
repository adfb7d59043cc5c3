//! Calls whose futures are dropped while they are under way.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use idempotency_core::{
    Claim, Inspect, Lease, Media, Operation, Outcome, PhaseName, Release, Settled, Store,
};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    Violation,
    scene::{KEPT, LONG, operation},
    violation::{demand, demand_eq},
    wire::line::{Line, bid},
};

/// How many operations each caller takes from their first claim to their end: a dozen calls each.
const LIVES: usize = 25;

/// Many callers drop calls at random places; every call that is not dropped gets its own answer, and what it wrote is
/// there for all to see. So no connection went back with another call's answer in it, or inside a transaction.
pub(crate) async fn dropped_calls_disturb_no_other<S: Store + Inspect>(
    line: Line<S>,
) -> Result<(), Violation> {
    let line = Arc::new(line);
    let mut callers = JoinSet::new();
    for caller in 0..line.callers / 2 {
        let line = Arc::clone(&line);
        callers.spawn(async move {
            for life in 0..LIVES {
                live(&line, caller * LIVES + life).await?;
            }
            Ok::<_, Violation>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.map_err(|panic| Violation::new("a call ends", &panic))??;
    }
    Ok(())
}

/// One operation, from its first claim to its end. Each of its calls is sent twice, and the first copy is dropped.
async fn live<S: Store + Inspect>(line: &Line<S>, number: usize) -> Result<(), Violation> {
    let (far, op, own) = (&*line.far, operation(), bid());
    dropped(far.claim(&op, &own)).await;
    let lease = match line.tried(|| far.claim(&op, &own)).await? {
        Claim::Granted(lease) => lease,
        refused => return Err(Violation::new("a claim of a fresh key is granted", &refused)),
    };
    demand_eq!(lease.address, *op.address(), "a grant is for the address that was claimed");
    seen_by_all(line, &op, &lease, PhaseName::InFlight).await?;
    dropped(far.look(&op)).await;
    demand!(line.tried(|| far.look(&op)).await?, Claim::InFlight { .. }, "a look sees the run");
    dropped(far.renew(&lease, LONG * 2)).await;
    demand_eq!(line.tried(|| far.renew(&lease, LONG * 2)).await?, Settled::Applied, "a renewal counts");
    let rival = bid();
    let refused = line.tried(|| far.claim(&op, &rival)).await?;
    demand!(refused, Claim::InFlight { left } if *left > LONG, "a rival sees the renewed lease");
    if fastrand::bool() {
        let outcome = Outcome::whole(Media(1), format!("outcome {number}"));
        dropped(far.complete(&lease, &outcome, KEPT)).await;
        let settled = line.tried(|| far.complete(&lease, &outcome, KEPT)).await?;
        demand_eq!(settled, Settled::Applied, "a completion counts");
        seen_by_all(line, &op, &lease, PhaseName::Completed).await?;
        dropped(far.claim(&op, &rival)).await;
        let replay = line.tried(|| far.claim(&op, &rival)).await?;
        demand_eq!(replay, Claim::Completed(outcome), "a replay is the operation's own");
    } else {
        dropped(far.release(&lease, Release::NotApplied)).await;
        let settled = line.tried(|| far.release(&lease, Release::NotApplied)).await?;
        demand_eq!(settled, Settled::Applied, "a release counts");
        seen_by_all(line, &op, &lease, PhaseName::Released).await?;
        let next = line.tried(|| far.claim(&op, &rival)).await?;
        demand!(next, Claim::Granted(next) if next.fence > lease.fence, "a released key is free");
    }
    Ok(())
}

/// Demands that what was written stands on the server for others too: nothing waits for a commit.
async fn seen_by_all<S: Store + Inspect>(
    line: &Line<S>,
    op: &Operation,
    lease: &Lease,
    phase: PhaseName,
) -> Result<(), Violation> {
    let record = line.record(op.address()).await?;
    let seen = record.map(|record| (record.phase.name(), record.holder, record.fence));
    demand_eq!(seen, Some((phase, lease.holder, lease.fence)), "a write that was answered is there for all");
    Ok(())
}

/// Drops a call: after it was polled a few times, or after a moment, whichever comes first.
async fn dropped<T>(call: impl Future<Output = T>) {
    let mut polls = fastrand::u32(0..8);
    let mut call = pin!(call);
    let polled = poll_fn(|cx| match call.as_mut().poll(cx) {
        Poll::Pending if polls > 0 => {
            polls -= 1;
            Poll::Pending
        }
        Poll::Pending | Poll::Ready(_) => Poll::Ready(()),
    });
    // One that ended before it was dropped was sent twice: that changes nothing either.
    let _ = timeout(Duration::from_micros(fastrand::u64(0..3_000)), polled).await;
}
