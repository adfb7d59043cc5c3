//! Durations at the edge of what a number can hold.

use std::time::Duration;

use idempotency_core::{Bid, Claim, Inspect, Keep, OnLapse, Phase, Release, Settled, Store, Vacant};

use crate::{
    Violation,
    scene::{LONG, Scene, operation, outcome},
    violation::{demand, demand_eq},
};

const ENDLESS: Keep = Keep { replay: Duration::MAX, then_reject: Duration::MAX };

/// The longest durations there are mean "for ever"; they overflow nothing.
pub(crate) async fn endless_durations_do_not_overflow<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let endless = |on_lapse| Bid { lease: Duration::MAX, retention: Duration::MAX, on_lapse, ..scene.bid() };
    for on_lapse in [OnLapse::TakeOver, OnLapse::Hold] {
        let op = operation();
        let lease = scene.granted(&op, &endless(on_lapse)).await?;
        demand_eq!(scene.store.renew(&lease, Duration::MAX).await?, Settled::Applied, "the holder may renew");
        scene.pass_brief().await;
        let seen: Claim<Vacant> = scene.store.look(&op).await?;
        demand!(seen, Claim::InFlight { left } if *left > LONG, "an endless lease does not lapse");
        scene.completed(&lease, &outcome("done"), ENDLESS).await?;
        scene.pass_brief().await;
        let seen: Claim<Vacant> = scene.store.look(&op).await?;
        demand_eq!(seen, Claim::Completed(outcome("done")), "an endless outcome answers");
    }
    let (lapsed, released) = (operation(), operation());
    scene.granted(&lapsed, &Bid { lease: scene.brief(), ..endless(OnLapse::TakeOver) }).await?;
    let lease = scene.granted(&released, &endless(OnLapse::TakeOver)).await?;
    scene.released(&lease, Release::NotApplied).await?;
    scene.pass_brief().await;
    demand_eq!(scene.store.purge(u32::MAX).await?, 0, "an endless retention is kept");
    scene.record(&released).await?;
    demand!(scene.record(&lapsed).await?.phase, Phase::InFlight { .. }, "an endless retention is kept");
    scene.granted(&lapsed, &scene.bid()).await?;
    Ok(())
}

/// A duration too short to count lapses at once; it is no error and no eternity.
pub(crate) async fn empty_durations_end_at_once<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    let empty = Bid { lease: Duration::ZERO, ..scene.bid() };
    scene.granted(&op, &empty).await?;
    let lease = scene.granted(&op, &scene.bid()).await?;
    scene.completed(&lease, &outcome("done"), Keep { replay: Duration::ZERO, then_reject: LONG }).await?;
    demand_eq!(
        scene.store.claim(&op, &scene.bid()).await?,
        Claim::Expired,
        "an empty replay expires at once"
    );
    Ok(())
}
