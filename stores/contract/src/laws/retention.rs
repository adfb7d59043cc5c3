//! When outcomes stop answering, and when keys are new again.

use std::time::Duration;

use idempotency_core::{Bid, Claim, Inspect, Keep, Lease, OnLapse, Operation, Release, Store, Vacant};

use crate::{
    Expiry, Violation,
    scene::{KEPT, LONG, Scene, operation, other_payload, outcome},
    violation::{demand, demand_eq},
};

/// A completed record answers, then its key is refused as expired whatever the payload, then it is new for any payload.
pub(crate) async fn completed_answers_then_expires_then_is_new<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    let lease = scene.granted(&op, &scene.bid()).await?;
    let keep = Keep { replay: scene.brief(), then_reject: scene.brief() * 2 };
    scene.completed(&lease, &outcome("done"), keep).await?;
    scene.pass_brief().await;
    for op in [op.clone(), other_payload(&op)] {
        demand_eq!(
            scene.store.claim(&op, &scene.bid()).await?,
            Claim::Expired,
            "the key is refused as expired"
        );
    }
    scene.pass_brief().await;
    scene.pass_brief().await;
    let lease = scene.granted(&other_payload(&op), &scene.bid()).await?;
    demand_eq!(lease.attempt, 1, "a new key starts at attempt 1");
    Ok(())
}

/// A record whose lease lapsed under `TakeOver` is new for any payload once its retention is over too.
pub(crate) async fn abandoned_key_is_new_after_its_retention<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    let bid = Bid { retention: scene.brief(), ..scene.brief_bid(OnLapse::TakeOver) };
    scene.granted(&op, &bid).await?;
    scene.pass_brief().await;
    scene.pass_brief().await;
    let lease = scene.granted(&other_payload(&op), &scene.bid()).await?;
    demand_eq!(lease.attempt, 1, "a new key starts at attempt 1");
    Ok(())
}

/// A retention shorter than the lease ends nothing early: a live lease outlasts it.
pub(crate) async fn live_lease_outlasts_its_retention<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    let lease = scene.granted(&op, &Bid { retention: Duration::ZERO, ..scene.bid() }).await?;
    scene.pass_brief().await;
    for op in [op.clone(), other_payload(&op)] {
        let seen = scene.store.claim(&op, &scene.bid()).await?;
        demand!(seen, Claim::InFlight { .. } | Claim::Mismatch(_), "a live lease holds its key");
    }
    scene.completed(&lease, &outcome("done"), KEPT).await
}

/// A time is past when the clock says it, and not a microsecond earlier.
pub(crate) async fn times_are_past_when_they_come<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    if scene.manual_micros().is_none() {
        return Ok(()); // a clock that cannot be moved cannot be stopped at a boundary
    }
    let (brief, tick) = (scene.brief(), Duration::from_micros(1));
    let [lapsing, held, abandoned, released, completed] = [(); 5].map(|()| operation());
    scene.granted(&lapsing, &scene.brief_bid(OnLapse::TakeOver)).await?;
    let doubtful = scene.granted(&held, &scene.brief_bid(OnLapse::Hold)).await?;
    scene.granted(&abandoned, &Bid { lease: brief / 2, retention: brief / 2, ..scene.bid() }).await?;
    let lease = scene.granted(&released, &Bid { retention: brief, ..scene.bid() }).await?;
    scene.released(&lease, Release::NotApplied).await?;
    let lease = scene.granted(&completed, &scene.bid()).await?;
    scene.completed(&lease, &outcome("done"), Keep { replay: brief, then_reject: brief }).await?;

    scene.pass(brief - tick).await;
    demand_eq!(scene.store.purge(u32::MAX).await?, 0, "a record is kept to its last microsecond");
    for op in [&lapsing, &held] {
        let seen = scene.store.claim(op, &scene.bid()).await?;
        demand_eq!(seen, Claim::InFlight { left: tick }, "a lease lasts to its last microsecond");
    }
    let seen = scene.store.claim(&other_payload(&abandoned), &scene.bid()).await?;
    demand!(seen, Claim::Mismatch(_), "an abandoned key is kept to its last microsecond");
    let seen = scene.store.claim(&completed, &scene.bid()).await?;
    demand_eq!(seen, Claim::Completed(outcome("done")), "an outcome answers to its last microsecond");

    scene.pass(tick).await;
    scene.granted(&lapsing, &scene.bid()).await?;
    let seen = scene.store.claim(&held, &scene.bid()).await?;
    demand_eq!(seen, Claim::InDoubt { fence: doubtful.fence }, "a lease lapses when its time comes");
    scene.granted(&other_payload(&abandoned), &scene.bid()).await?;
    demand_eq!(
        scene.store.claim(&completed, &scene.bid()).await?,
        Claim::Expired,
        "an outcome ends when its time comes"
    );
    if scene.expiry == Expiry::Purged {
        demand_eq!(scene.store.purge(u32::MAX).await?, 1, "a released record goes when its time comes");
    }

    scene.pass(brief - tick).await;
    let seen = scene.store.claim(&completed, &scene.bid()).await?;
    demand_eq!(seen, Claim::Expired, "a key is refused to its last microsecond");
    scene.pass(tick).await;
    scene.granted(&completed, &scene.bid()).await?;
    Ok(())
}

/// A look says what a claim by a new holder would be told, and writes nothing.
pub(crate) async fn look_foretells_a_claim_and_writes_nothing<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    for op in every_phase(&scene).await? {
        for op in [op.clone(), other_payload(&op)] {
            let before = scene.store.find(op.address()).await?;
            let foretold = scene.store.look(&op).await?;
            demand_eq!(scene.store.find(op.address()).await?, before, "a look writes nothing");
            let told = scene.store.claim(&op, &scene.bid()).await?.map(|_: Lease| Vacant);
            match (&foretold, &told) {
                (Claim::InFlight { left: first }, Claim::InFlight { left: then }) if first >= then => {}
                _ => demand_eq!(foretold, told, "a look says what the next claim is told"),
            }
        }
    }
    Ok(())
}

/// One operation without a record, and one in each phase and for each way of leaving it.
async fn every_phase<S: Store + Inspect>(scene: &Scene<S>) -> Result<[Operation; 8], Violation> {
    let ops = [(); 8].map(|()| operation());
    let [_absent, in_flight, lapsed, held, in_doubt, released, completed, expired] = &ops;
    scene.granted(in_flight, &scene.bid()).await?;
    scene.granted(lapsed, &scene.brief_bid(OnLapse::TakeOver)).await?;
    scene.granted(held, &scene.brief_bid(OnLapse::Hold)).await?;
    let lease = scene.granted(in_doubt, &scene.bid()).await?;
    scene.released(&lease, Release::Unknown).await?;
    let lease = scene.granted(released, &scene.bid()).await?;
    scene.released(&lease, Release::NotApplied).await?;
    let lease = scene.granted(completed, &scene.bid()).await?;
    scene.completed(&lease, &outcome("done"), KEPT).await?;
    let lease = scene.granted(expired, &scene.bid()).await?;
    scene.completed(&lease, &outcome("done"), Keep { replay: scene.brief(), then_reject: LONG }).await?;
    scene.pass_brief().await;
    Ok(ops)
}
