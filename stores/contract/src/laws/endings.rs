//! What ends a run, and what ends nothing.

use idempotency_core::{
    Claim, Inspect, Lease, Media, OnLapse, Outcome, PhaseName, Release, Settled, Standing, Store,
};

use crate::{
    Violation,
    scene::{KEPT, LONG, Scene, operation, other_payload, outcome},
    violation::demand_eq,
};

/// A second completion of the same run is told that it counted, and changes nothing: the first outcome stands.
pub(crate) async fn first_completion_stands<S: Store + Inspect>(scene: Scene<S>) -> Result<(), Violation> {
    let op = operation();
    let lease = scene.granted(&op, &scene.bid()).await?;
    scene.completed(&lease, &outcome("first"), KEPT).await?;
    let before = scene.record(&op).await?;
    let second = Outcome::whole(Media(2), "second");
    let again = scene.store.complete(&lease, &second, KEPT).await?;
    demand_eq!(again, Settled::Applied, "a repeated completion is told that it counted");
    demand_eq!(scene.record(&op).await?, before, "the first outcome stands");
    Ok(())
}

/// A lease that only lapsed, with nobody in its place, may still complete or be released.
pub(crate) async fn lapsed_lease_may_still_end<S: Store + Inspect>(scene: Scene<S>) -> Result<(), Violation> {
    let (late, held, freed) = (operation(), operation(), operation());
    let late_lease = scene.granted(&late, &scene.brief_bid(OnLapse::TakeOver)).await?;
    let held_lease = scene.granted(&held, &scene.brief_bid(OnLapse::Hold)).await?;
    let freed_lease = scene.granted(&freed, &scene.brief_bid(OnLapse::Hold)).await?;
    scene.pass_brief().await;
    scene.completed(&late_lease, &outcome("late"), KEPT).await?;
    scene.completed(&held_lease, &outcome("late"), KEPT).await?;
    scene.released(&freed_lease, Release::NotApplied).await?;
    for op in [late, held] {
        let seen = scene.store.claim(&op, &scene.bid()).await?;
        demand_eq!(seen, Claim::Completed(outcome("late")), "a late outcome answers");
    }
    scene.granted(&freed, &scene.bid()).await?;
    Ok(())
}

/// A lease that was taken over ends nothing and renews nothing, and is told what stands in its place.
pub(crate) async fn taken_over_lease_ends_nothing<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    let stale = scene.granted(&op, &scene.brief_bid(OnLapse::TakeOver)).await?;
    scene.pass_brief().await;
    let lease = scene.granted(&op, &scene.bid()).await?;
    let before = scene.record(&op).await?;
    let standing = |phase| Settled::Fenced(Some(Standing { phase, fence: lease.fence }));
    let seen = scene.store.complete(&stale, &outcome("stale"), KEPT).await?;
    demand_eq!(seen, standing(PhaseName::InFlight), "a stale completion is fenced");
    for why in [Release::NotApplied, Release::Unknown] {
        let seen = scene.store.release(&stale, why).await?;
        demand_eq!(seen, standing(PhaseName::InFlight), "a stale release is fenced");
    }
    demand_eq!(scene.record(&op).await?, before, "a stale ending writes nothing");
    scene.completed(&lease, &outcome("fresh"), KEPT).await?;
    let seen = scene.store.complete(&stale, &outcome("stale"), KEPT).await?;
    demand_eq!(seen, standing(PhaseName::Completed), "a stale completion is fenced after the end too");
    let seen = scene.store.claim(&op, &scene.bid()).await?;
    demand_eq!(seen, Claim::Completed(outcome("fresh")), "the outcome is the one of the lease that counted");
    Ok(())
}

/// A run that stalled across a takeover, its release and a third claim cannot land on that claim; the third run's own
/// completion counts.
pub(crate) async fn stale_completion_misses_a_later_claim<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    let first = scene.granted(&op, &scene.brief_bid(OnLapse::TakeOver)).await?;
    scene.pass_brief().await;
    let second = scene.granted(&op, &scene.bid()).await?;
    scene.released(&second, Release::NotApplied).await?;
    let third = scene.granted(&op, &scene.bid()).await?;
    let fenced = Settled::Fenced(Some(Standing { phase: PhaseName::InFlight, fence: third.fence }));
    for stale in [first, second] {
        let seen = scene.store.complete(&stale, &outcome("stale"), KEPT).await?;
        demand_eq!(seen, fenced, "a stale completion misses the claim that stands there now");
    }
    scene.completed(&third, &outcome("third"), KEPT).await?;
    let seen = scene.store.claim(&op, &scene.bid()).await?;
    demand_eq!(seen, Claim::Completed(outcome("third")), "the outcome is the third run's");
    Ok(())
}

/// A release as not applied frees the key for any payload; a repeated one counts, a completion after it does not.
pub(crate) async fn release_frees_the_key_for_any_payload<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    let lease = scene.granted(&op, &scene.bid()).await?;
    scene.released(&lease, Release::NotApplied).await?;
    let seen = scene.store.release(&lease, Release::NotApplied).await?;
    demand_eq!(seen, Settled::Applied, "a repeated release is told that it counted");
    let released = Settled::Fenced(Some(Standing { phase: PhaseName::Released, fence: lease.fence }));
    let seen = scene.store.complete(&lease, &outcome("too late"), KEPT).await?;
    demand_eq!(seen, released, "what was released cannot complete");
    let seen = scene.store.release(&lease, Release::Unknown).await?;
    demand_eq!(seen, released, "what was released is not in doubt");
    scene.granted(&other_payload(&op), &scene.bid()).await?;
    Ok(())
}

/// An ending compares the holder and nothing else of the lease, so a claim whose reply was lost can be released.
pub(crate) async fn ending_compares_the_holder_alone<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let (op, bid) = (operation(), scene.bid());
    scene.granted(&op, &bid).await?;
    let unconfirmed = Lease::unconfirmed(*op.address(), bid.holder);
    demand_eq!(scene.store.renew(&unconfirmed, LONG).await?, Settled::Applied, "the holder may renew");
    scene.completed(&unconfirmed, &outcome("done"), KEPT).await?;
    let (op, bid) = (operation(), scene.bid());
    scene.granted(&op, &bid).await?;
    scene.released(&Lease::unconfirmed(*op.address(), bid.holder), Release::NotApplied).await?;
    Ok(())
}

/// Where no record stands, nothing can be ended, and nothing is written.
pub(crate) async fn absent_record_ends_nothing<S: Store + Inspect>(scene: Scene<S>) -> Result<(), Violation> {
    let op = operation();
    let lease = Lease::unconfirmed(*op.address(), scene.bid().holder);
    let fenced = Settled::Fenced(None);
    demand_eq!(scene.store.renew(&lease, LONG).await?, fenced, "there is nothing to renew");
    let seen = scene.store.complete(&lease, &outcome("lost"), KEPT).await?;
    demand_eq!(seen, fenced, "there is nothing to complete");
    for why in [Release::NotApplied, Release::Unknown] {
        demand_eq!(scene.store.release(&lease, why).await?, fenced, "there is nothing to release");
    }
    demand_eq!(scene.store.find(op.address()).await?, None, "an ending writes no record");
    Ok(())
}
