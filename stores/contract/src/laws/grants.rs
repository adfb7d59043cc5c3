//! What a claim is granted, and what it is told instead.

use std::time::Duration;

use idempotency_core::{
    Address, Bid, Claim, Holder, Inspect, Keep, OnLapse, Operation, Part, Parts, Phase, Release, Store,
};

use crate::{
    Time, Violation,
    scene::{KEPT, LONG, Scene, asking, operation, other_payload, outcome},
    violation::{demand, demand_eq},
};

/// The first claim of a key is granted, as attempt 1, and the fence is at least the store's clock in microseconds.
pub(crate) async fn first_claim_is_attempt_one<S: Store + Inspect>(scene: Scene<S>) -> Result<(), Violation> {
    let (op, bid) = (operation(), scene.bid());
    let lease = scene.granted(&op, &bid).await?;
    demand_eq!(lease.address, *op.address(), "a lease names the address that was claimed");
    demand_eq!(lease.holder, bid.holder, "a lease names the holder who bid");
    demand_eq!(lease.attempt, 1, "a first grant is attempt 1");
    let floor = scene.manual_micros().unwrap_or(1_600_000_000_000_000);
    demand!(lease.fence, fence if fence.as_u64() >= floor, "a fence is at least the store's clock in microseconds");
    Ok(())
}

/// The fence rises with each grant: over a release, a takeover, an expiry, a removal, and a clock set back.
pub(crate) async fn fence_rises_with_each_grant<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    let bid = |lease| Bid { lease, retention: scene.brief(), ..scene.bid() };
    let released = scene.granted(&op, &bid(LONG)).await?;
    scene.released(&released, Release::NotApplied).await?;
    let lapsing = scene.granted(&op, &Bid { retention: LONG, ..bid(scene.brief()) }).await?;
    demand!(lapsing.fence, fence if *fence > released.fence, "the fence rises over a release");
    scene.pass_brief().await;
    let taking = scene.granted(&op, &bid(LONG)).await?;
    demand!(taking.fence, fence if *fence > lapsing.fence, "the fence rises over a takeover");
    scene
        .completed(&taking, &outcome("done"), Keep { replay: scene.brief(), then_reject: Duration::ZERO })
        .await?;
    scene.pass_brief().await;
    let renewed = scene.granted(&op, &bid(LONG)).await?;
    demand!(renewed.fence, fence if *fence > taking.fence, "the fence rises over an expiry");
    scene.released(&renewed, Release::NotApplied).await?;
    scene.pass_brief().await;
    scene.store.purge(u32::MAX).await?;
    let last = scene.granted(&op, &bid(LONG)).await?;
    demand!(last.fence, fence if *fence > renewed.fence, "the fence rises over a removal");
    if let Time::Manual(clock) = &scene.time {
        scene.released(&last, Release::NotApplied).await?;
        clock.set(idempotency_core::clock::Timestamp::from_micros(1));
        let later = scene.granted(&op, &bid(LONG)).await?;
        demand!(later.fence, fence if *fence > last.fence, "the fence rises though the clock was set back");
    }
    Ok(())
}

/// A lapsed lease is taken over by the next copy, as the next attempt; a key that is new again starts at attempt 1.
pub(crate) async fn takeover_is_the_next_attempt<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    for attempt in 1..=3 {
        let lease = scene.granted(&op, &scene.brief_bid(OnLapse::TakeOver)).await?;
        demand_eq!(lease.attempt, attempt, "each takeover is one attempt more");
        scene.pass_brief().await;
    }
    let lease = scene.granted(&op, &scene.bid()).await?;
    scene.released(&lease, Release::NotApplied).await?;
    let lease = scene.granted(&op, &scene.bid()).await?;
    demand_eq!(lease.attempt, 1, "a release ends the count of attempts");
    Ok(())
}

/// A second holder is told that the operation is in flight, and how long the lease still lasts.
pub(crate) async fn second_holder_sees_the_lease_left<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = operation();
    scene.granted(&op, &scene.bid()).await?;
    let passed = Duration::from_millis(10);
    scene.pass(passed).await;
    let seen = scene.store.claim(&op, &scene.bid()).await?;
    match scene.manual_micros() {
        Some(_) => {
            demand_eq!(seen, Claim::InFlight { left: LONG - passed }, "the lease left is told exactly");
        }
        None => demand!(
            seen,
            Claim::InFlight { left } if *left < LONG && *left > LONG - Duration::from_secs(60),
            "the lease left is told"
        ),
    }
    Ok(())
}

/// A claim sent again by its holder is the same grant: same fence, same attempt, and a lease never shortened.
pub(crate) async fn lost_claim_reply_is_adopted<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let (op, bid) = (operation(), scene.bid());
    let first = scene.granted(&op, &bid).await?;
    let before = scene.record(&op).await?;
    let again = scene.store.claim(&op, &Bid { lease: scene.brief(), ..bid }).await?;
    demand_eq!(again, Claim::Granted(first), "a repeated claim gets the first grant back");
    demand_eq!(
        scene.record(&op).await?,
        before.clone(),
        "a repeated claim with a shorter lease shortens nothing"
    );
    let again = scene.store.claim(&op, &Bid { lease: LONG * 2, ..bid }).await?;
    demand_eq!(again, Claim::Granted(first), "a repeated claim gets the first grant back");
    let Phase::InFlight { until: old, .. } = before.phase else {
        return Err(Violation::new("a claimed record is in flight", &before));
    };
    demand!(
        scene.record(&op).await?.phase,
        Phase::InFlight { until, .. } if *until > old,
        "a repeated claim with a longer lease extends it"
    );
    Ok(())
}

/// A delayed copy of a claim that was granted and released is told so: it is never granted.
pub(crate) async fn delayed_copy_of_a_released_claim_is_ended<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let (op, bid) = (operation(), scene.bid());
    let lease = scene.granted(&op, &bid).await?;
    scene.released(&lease, Release::NotApplied).await?;
    let before = scene.record(&op).await?;
    demand_eq!(scene.store.claim(&op, &bid).await?, Claim::Ended, "a released claim is over");
    demand_eq!(scene.record(&op).await?, before, "a delayed copy writes nothing");
    Ok(())
}

/// Another payload under the same key is refused in every phase that remembers one, with the parts that differ, and
/// leaves the record as it was.
pub(crate) async fn mismatch_names_the_parts_and_writes_nothing<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let (in_flight, completed, in_doubt) = (operation(), operation(), operation());
    let (lapsed, held) = (operation(), operation());
    scene.granted(&in_flight, &scene.bid()).await?;
    let lease = scene.granted(&completed, &scene.bid()).await?;
    scene.completed(&lease, &outcome("done"), KEPT).await?;
    let lease = scene.granted(&in_doubt, &scene.bid()).await?;
    scene.released(&lease, Release::Unknown).await?;
    scene.granted(&lapsed, &scene.brief_bid(OnLapse::TakeOver)).await?;
    scene.granted(&held, &scene.brief_bid(OnLapse::Hold)).await?;
    scene.pass_brief().await;
    for op in [in_flight, completed, in_doubt, lapsed, held] {
        let before = scene.record(&op).await?;
        let seen = scene.store.claim(&other_payload(&op), &scene.bid()).await?;
        demand_eq!(seen, Claim::Mismatch(Parts::from_iter([Part::Body])), "the part that differs is named");
        demand_eq!(scene.record(&op).await?, before, "a mismatch writes nothing");
    }
    Ok(())
}

/// What happens at one address changes nothing at another, however alike the two are.
pub(crate) async fn addresses_are_independent<S: Store + Inspect>(scene: Scene<S>) -> Result<(), Violation> {
    for bytes in [[0; 32], [0xff; 32], *operation().address().as_bytes()] {
        let op = asking(Address::from_bytes(bytes), b"100 EUR to Bob");
        let lease = scene.granted(&op, &scene.bid()).await?;
        scene.completed(&lease, &outcome("done"), KEPT).await?;
        for place in [0, 7, 8, 15, 16, 31] {
            let mut near = bytes;
            near[place] ^= 0x20;
            let near: Operation = asking(Address::from_bytes(near), b"100 EUR to Bob");
            let bid = Bid { holder: Holder::from_bytes([place as u8; 16]), ..scene.bid() };
            let lease = scene.granted(&near, &bid).await?;
            scene.released(&lease, Release::NotApplied).await?;
        }
        let seen = scene.store.claim(&op, &scene.bid()).await?;
        demand_eq!(seen, Claim::Completed(outcome("done")), "an outcome stays at its address");
    }
    Ok(())
}
