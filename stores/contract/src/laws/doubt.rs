//! What is in doubt, and what ends it.

use std::time::Duration;

use idempotency_core::{
    Bid, Claim, Fence, Inspect, Lease, OnLapse, Operation, PhaseName, Release, Resolution, Settled, Standing,
    Store, Vacant,
};

use crate::{
    Violation,
    scene::{KEPT, Scene, operation, other_payload, outcome},
    violation::demand_eq,
};

/// A release as unknown puts the record in doubt; no time ends that, only the run's own completion or a resolution.
pub(crate) async fn unknown_release_is_in_doubt_until_ended<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    let bid = Bid { retention: Duration::ZERO, ..scene.brief_bid(OnLapse::TakeOver) };
    let lease = scene.granted(&op, &bid).await?;
    scene.released(&lease, Release::Unknown).await?;
    for _ in 0..3 {
        let seen = scene.store.claim(&op, &scene.bid()).await?;
        demand_eq!(seen, Claim::InDoubt { fence: lease.fence }, "what is in doubt stays in doubt");
        scene.pass_brief().await;
    }
    let seen = scene.store.release(&lease, Release::Unknown).await?;
    demand_eq!(seen, Settled::Applied, "a repeated release as unknown is told that it counted");
    let seen = scene.store.release(&lease, Release::NotApplied).await?;
    let standing = Standing { phase: PhaseName::InDoubt, fence: lease.fence };
    demand_eq!(seen, Settled::Fenced(Some(standing)), "a run in doubt cannot say that nothing happened");
    scene.completed(&lease, &outcome("done after all"), KEPT).await?;
    let seen = scene.store.claim(&op, &scene.bid()).await?;
    demand_eq!(seen, Claim::Completed(outcome("done after all")), "the run's own completion ends the doubt");
    Ok(())
}

/// A lease that lapses under `Hold` is in doubt without a write. The record's own word counts, not the reader's.
pub(crate) async fn held_lapse_is_in_doubt_without_a_write<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let (held, open) = (operation(), operation());
    let bid = Bid { retention: Duration::ZERO, ..scene.brief_bid(OnLapse::Hold) };
    let lease = scene.granted(&held, &bid).await?;
    scene.granted(&open, &scene.brief_bid(OnLapse::TakeOver)).await?;
    let before = scene.record(&held).await?;
    scene.pass_brief().await;
    for on_lapse in [OnLapse::Hold, OnLapse::TakeOver] {
        let seen = scene.store.claim(&held, &scene.brief_bid(on_lapse)).await?;
        demand_eq!(seen, Claim::InDoubt { fence: lease.fence }, "a lease lapsed under Hold is in doubt");
    }
    demand_eq!(scene.record(&held).await?, before, "a lapse is not written");
    scene.granted(&open, &scene.brief_bid(OnLapse::Hold)).await?;
    Ok(())
}

/// A resolution counts only where there is doubt, and only under the fence that is in doubt.
pub(crate) async fn resolution_names_the_doubt_by_its_fence<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let applied = Resolution::Applied(outcome("found"), KEPT);
    let in_flight = operation();
    let lease = scene.granted(&in_flight, &scene.bid()).await?;
    let (op, doubtful) = in_doubt(&scene).await?;
    let cases = [
        (&in_flight, lease.fence, PhaseName::InFlight, lease.fence),
        (&op, Fence::from_u64(doubtful.fence.as_u64() + 1), PhaseName::InDoubt, doubtful.fence),
        (&op, Fence::from_u64(doubtful.fence.as_u64() - 1), PhaseName::InDoubt, doubtful.fence),
    ];
    for (op, named, phase, fence) in cases {
        let before = scene.record(op).await?;
        for resolution in [&applied, &Resolution::NotApplied] {
            let seen = scene.store.resolve(op.address(), named, resolution).await?;
            demand_eq!(seen, Settled::Fenced(Some(Standing { phase, fence })), "the resolution is fenced");
        }
        demand_eq!(scene.record(op).await?, before, "a fenced resolution writes nothing");
    }
    let absent = scene.store.resolve(operation().address(), lease.fence, &applied).await?;
    demand_eq!(absent, Settled::Fenced(None), "there is nothing to resolve");
    Ok(())
}

/// Resolved as applied, the outcome answers, and the run learns that its own does not; resolved as not applied, the key is free for any payload, and a delayed
/// copy of the claim that was in doubt is over.
pub(crate) async fn resolution_answers_or_frees<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let applied = Resolution::Applied(outcome("found"), KEPT);
    for (op, lease) in [in_doubt(&scene).await?, held(&scene).await?] {
        let seen = scene.store.resolve(op.address(), lease.fence, &applied).await?;
        demand_eq!(seen, Settled::Applied, "the resolution counts");
        let seen: Claim<Vacant> = scene.store.look(&op).await?;
        demand_eq!(seen, Claim::Completed(outcome("found")), "the outcome found out answers");
        let standing = Standing { phase: PhaseName::Completed, fence: lease.fence };
        let seen = scene.store.complete(&lease, &outcome("late"), KEPT).await?;
        demand_eq!(seen, Settled::Fenced(Some(standing)), "the run's own completion comes too late");
        let seen: Claim<Vacant> = scene.store.look(&op).await?;
        demand_eq!(seen, Claim::Completed(outcome("found")), "what was resolved first stands");
    }
    for (op, lease) in [in_doubt(&scene).await?, held(&scene).await?] {
        let seen = scene.store.resolve(op.address(), lease.fence, &Resolution::NotApplied).await?;
        demand_eq!(seen, Settled::Applied, "the resolution counts");
        let standing = Standing { phase: PhaseName::Released, fence: lease.fence };
        let seen = scene.store.complete(&lease, &outcome("late"), KEPT).await?;
        demand_eq!(seen, Settled::Fenced(Some(standing)), "a run resolved as not applied cannot complete");
        scene.granted(&other_payload(&op), &scene.bid()).await?;
    }
    Ok(())
}

/// An operation released as unknown, and its lease.
async fn in_doubt<S: Store + Inspect>(scene: &Scene<S>) -> Result<(Operation, Lease), Violation> {
    let op = operation();
    let lease = scene.granted(&op, &scene.bid()).await?;
    scene.released(&lease, Release::Unknown).await?;
    Ok((op, lease))
}

/// An operation whose lease lapsed under `Hold`, and that lease.
async fn held<S: Store + Inspect>(scene: &Scene<S>) -> Result<(Operation, Lease), Violation> {
    let op = operation();
    let lease = scene.granted(&op, &scene.brief_bid(OnLapse::Hold)).await?;
    scene.pass_brief().await;
    Ok((op, lease))
}
