//! How a lease goes on.

use idempotency_core::{
    Claim, Holder, Inspect, Lease, OnLapse, Phase, PhaseName, Release, Settled, Standing, Store,
};

use crate::{
    Violation,
    scene::{KEPT, LONG, Scene, operation, outcome},
    violation::{demand, demand_eq},
};

/// A renewal extends the lease to its term from now, and never shortens it.
pub(crate) async fn renewal_extends_and_never_shortens<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    let lease = scene.granted(&op, &scene.bid()).await?;
    let before = scene.record(&op).await?;
    demand_eq!(scene.store.renew(&lease, scene.brief()).await?, Settled::Applied, "the holder may renew");
    demand_eq!(scene.record(&op).await?, before.clone(), "a shorter term shortens nothing");
    demand_eq!(scene.store.renew(&lease, LONG * 2).await?, Settled::Applied, "the holder may renew");
    let Phase::InFlight { until: old, .. } = before.phase else {
        return Err(Violation::new("a claimed record is in flight", &before));
    };
    demand!(
        scene.record(&op).await?.phase,
        Phase::InFlight { until, .. } if *until > old,
        "a longer term extends the lease"
    );
    Ok(())
}

/// A lease that only lapsed may be renewed, and holds the key again.
pub(crate) async fn lapsed_lease_may_be_renewed<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    for on_lapse in [OnLapse::TakeOver, OnLapse::Hold] {
        let op = operation();
        let lease = scene.granted(&op, &scene.brief_bid(on_lapse)).await?;
        scene.pass_brief().await;
        demand_eq!(scene.store.renew(&lease, LONG).await?, Settled::Applied, "a lapsed holder may renew");
        let seen = scene.store.claim(&op, &scene.bid()).await?;
        demand!(seen, Claim::InFlight { .. }, "a renewed lease holds the key");
    }
    Ok(())
}

/// Nobody renews another's lease, one that was taken over, or one that ended.
pub(crate) async fn foreign_or_ended_lease_is_not_renewed<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let (held, taken, done) = (operation(), operation(), operation());
    let (free, doubtful) = (operation(), operation());
    let own = scene.granted(&held, &scene.bid()).await?;
    let stale = scene.granted(&taken, &scene.brief_bid(OnLapse::TakeOver)).await?;
    let completed = scene.granted(&done, &scene.bid()).await?;
    scene.completed(&completed, &outcome("done"), KEPT).await?;
    let released = scene.granted(&free, &scene.bid()).await?;
    scene.released(&released, Release::NotApplied).await?;
    let in_doubt = scene.granted(&doubtful, &scene.bid()).await?;
    scene.released(&in_doubt, Release::Unknown).await?;
    scene.pass_brief().await;
    let taking = scene.granted(&taken, &scene.bid()).await?;
    for (op, lease, phase, fence) in [
        (held, Lease { holder: Holder::draw(), ..own }, PhaseName::InFlight, own.fence),
        (taken, stale, PhaseName::InFlight, taking.fence),
        (done, completed, PhaseName::Completed, completed.fence),
        (free, released, PhaseName::Released, released.fence),
        (doubtful, in_doubt, PhaseName::InDoubt, in_doubt.fence),
    ] {
        let before = scene.record(&op).await?;
        let seen = scene.store.renew(&lease, LONG * 2).await?;
        demand_eq!(seen, Settled::Fenced(Some(Standing { phase, fence })), "the renewal is fenced");
        demand_eq!(scene.record(&op).await?, before, "a fenced renewal writes nothing");
    }
    Ok(())
}
