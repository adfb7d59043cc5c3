//! What ends a run, and what ends nothing.

use idempotency_core::{Claim, Inspect, Media, Outcome, Settled, Store};

use crate::{
    Violation,
    scene::{KEPT, Scene, operation},
    violation::demand_eq,
};

/// A second completion of the same run is told that it counted, and changes nothing: the first outcome stands.
pub(crate) async fn first_completion_stands<S: Store + Inspect>(scene: Scene<S>) -> Result<(), Violation> {
    let op = operation();
    let lease = scene.granted(&op, &scene.bid()).await?;
    let (first, second) = (Outcome::whole(Media(1), "first"), Outcome::whole(Media(2), "second"));
    demand_eq!(scene.store.complete(&lease, &first, KEPT).await?, Settled::Applied, "a completion counts");
    let again = scene.store.complete(&lease, &second, KEPT).await?;
    demand_eq!(again, Settled::Applied, "a repeated completion is told that it counted");
    let seen = scene.store.claim(&op, &scene.bid()).await?;
    demand_eq!(seen, Claim::Completed(first), "the first outcome stands");
    Ok(())
}
