//! What a claim is granted, and what it is told instead.

use std::time::Duration;

use idempotency_core::{Bid, Claim, Inspect, Part, Phase, Release, Settled, Store};

use crate::{
    Violation,
    scene::{KEPT, LONG, Scene, asking, operation, other_payload},
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
            demand_eq!(seen, Claim::InFlight { left: LONG - passed }, "the lease left is told exactly")
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
    let (Phase::InFlight { until: old, .. }, Phase::InFlight { until: new, .. }) =
        (before.phase, scene.record(&op).await?.phase)
    else {
        return Err(Violation::new("an adopted claim is in flight", &scene.record(&op).await?));
    };
    demand!(new, new if *new > old, "a repeated claim with a longer lease extends it");
    Ok(())
}
