//! A line that is whole again is used again, and a slow one is a line all the same.

use std::{sync::Arc, time::Duration};

use idempotency_core::{Claim, Inspect, Settled, Store};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    Violation,
    scene::{KEPT, operation, outcome},
    violation::{demand, demand_eq},
    wire::{
        Fault,
        line::{Line, bid, tried},
    },
};

/// After any fault the store works again, with as many calls at once as before.
pub(crate) async fn line_that_is_whole_again_is_used<S: Store + Inspect>(
    line: Line<S>,
) -> Result<(), Violation> {
    for fault in [Fault::CutBefore, Fault::CutAfter, Fault::CutWithin, Fault::CutAtEnd, Fault::Late] {
        meet(&line, fault).await.map_err(|violation| violation.at(&format!("{fault:?}")))?;
    }
    Ok(())
}

/// A connection on which nothing comes any more is left for another one: without that a store whose server changed
/// places would wait for as long as the operating system does.
pub(crate) async fn silent_connection_is_left<S: Store + Inspect>(line: Line<S>) -> Result<(), Violation> {
    for fault in [Fault::Silent, Fault::SilentReply] {
        meet(&line, fault).await.map_err(|violation| violation.at(&format!("{fault:?}")))?;
    }
    Ok(())
}

/// Lets a fault meet many calls at once, heals it, and demands that as many calls are answered.
async fn meet<S: Store + Inspect>(line: &Line<S>, fault: Fault) -> Result<(), Violation> {
    line.works().await?;
    line.proxy.strike(fault, ..);
    let given_up = line.time_limit * 4;
    let mut callers = JoinSet::new();
    for _ in 0..line.callers {
        let far = Arc::clone(&line.far);
        // A store that gives up by itself shows what it does with the connection; dropped, it would not.
        callers.spawn(async move { timeout(given_up, far.claim(&operation(), &bid())).await.is_ok() });
    }
    callers.join_all().await;
    // A slow server may not have said anything that could be cut.
    let begun = line.proxy.exchanges() + line.proxy.heal();
    demand!(begun, begun if *begun > 0, "calls go over the line");
    let mut callers = JoinSet::new();
    for _ in 0..line.callers {
        let (far, recovery) = (Arc::clone(&line.far), line.recovery);
        callers.spawn(async move {
            let (op, bid) = (operation(), bid());
            tried(recovery, || far.claim(&op, &bid)).await
        });
    }
    for claim in callers.join_all().await {
        demand_eq!(claim?.name(), "granted", "a claim over a line that is whole again is granted");
    }
    // Whatever connections are left over from the fault, none of them is used for ever.
    for _ in 0..line.callers {
        line.works().await?;
    }
    Ok(())
}

/// On a slow line one of many claims at once is granted, it is completed, and the others get its outcome.
pub(crate) async fn slow_line_changes_no_verdict<S: Store + Inspect>(line: Line<S>) -> Result<(), Violation> {
    line.works().await?;
    line.proxy.strike(Fault::Delayed(Duration::from_millis(5)), ..);
    let op = operation();
    let mut racers = JoinSet::new();
    for _ in 0..line.callers / 2 {
        let (far, op, recovery) = (Arc::clone(&line.far), op.clone(), line.recovery);
        racers.spawn(async move {
            let bid = bid();
            tried(recovery, || far.claim(&op, &bid)).await
        });
    }
    let mut leases = Vec::new();
    for claim in racers.join_all().await {
        match claim? {
            Claim::Granted(lease) => leases.push(lease),
            refused => demand!(refused, Claim::InFlight { .. }, "the others see it in flight"),
        }
    }
    demand_eq!(leases.len(), 1, "exactly one of many claims is granted");
    let (done, late) = (outcome("done"), bid());
    let settled = line.tried(|| line.far.complete(&leases[0], &done, KEPT)).await?;
    demand_eq!(settled, Settled::Applied, "the completion counts");
    let seen = line.tried(|| line.far.claim(&op, &late)).await?;
    demand_eq!(seen, Claim::Completed(done), "a completed operation answers");
    Ok(())
}
