//! How outcomes come back.

use bytes::Bytes;
use idempotency_core::{Claim, Fate, Inspect, Media, Outcome, Phase, Store, StoreErrorKind, Vacant};

use crate::{
    Violation,
    scene::{KEPT, Scene, operation, outcome},
    violation::{demand, demand_eq},
};

/// The longest outcome the suite sends; a store that holds more is not asked where its bound is.
const LONGEST: usize = 4 << 20;

/// An outcome comes back byte for byte, whatever the bytes are, with its media.
pub(crate) async fn outcomes_come_back_byte_for_byte<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let every_byte: Vec<u8> = (0..=255).collect();
    let samples: [&[u8]; 8] = [
        &every_byte,
        b"",
        b"\0",
        b"\0\xff\0",
        b" padded \n",
        b"\xc3\x28",
        "\u{e9}".as_bytes(),
        b"'; DROP--\\x00",
    ];
    for (media, bytes) in [0, 1, 0x7fff, 0x8000, u16::MAX].into_iter().cycle().zip(samples) {
        come_back(&scene, Outcome::whole(Media(media), Bytes::copy_from_slice(bytes))).await?;
    }
    Ok(())
}

/// A tombstone stays a tombstone, with its bytes.
pub(crate) async fn tombstones_stay_tombstones<S: Store + Inspect>(scene: Scene<S>) -> Result<(), Violation> {
    for text in ["", "too large"] {
        come_back(&scene, Outcome::tombstone(Media(1), text)).await?;
    }
    Ok(())
}

async fn come_back<S: Store + Inspect>(scene: &Scene<S>, outcome: Outcome) -> Result<(), Violation> {
    let op = operation();
    let lease = scene.granted(&op, &scene.bid()).await?;
    scene.completed(&lease, &outcome, KEPT).await?;
    let claimed = scene.store.claim(&op, &scene.bid()).await?;
    demand_eq!(
        claimed,
        Claim::Completed(outcome.clone()),
        "a claim is answered with the outcome as it was given"
    );
    let looked: Claim<Vacant> = scene.store.look(&op).await?;
    demand_eq!(
        looked,
        Claim::Completed(outcome.clone()),
        "a look is answered with the outcome as it was given"
    );
    demand!(
        scene.record(&op).await?.phase,
        Phase::Completed { outcome: kept, .. } if *kept == outcome,
        "the record holds the outcome as it was given"
    );
    Ok(())
}

/// An outcome as long as the store says it can hold comes back whole; one byte more is refused, and its run can still
/// end with less.
pub(crate) async fn longest_outcome_fits_and_one_byte_more_does_not<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let longest = scene.store.max_outcome_bytes();
    let text: String = std::iter::repeat_with(fastrand::alphanumeric).take(longest.min(LONGEST)).collect();
    come_back(&scene, Outcome::whole(Media(1), text)).await?;
    if longest > LONGEST {
        return Ok(());
    }
    let op = operation();
    let lease = scene.granted(&op, &scene.bid()).await?;
    let seen = scene.store.complete(&lease, &Outcome::whole(Media(1), vec![7; longest + 1]), KEPT).await;
    demand!(
        seen,
        Err(error) if error.kind == StoreErrorKind::TooLarge && error.fate == Fate::NotApplied,
        "an outcome of one byte more is refused as too large, and nothing is written"
    );
    scene.completed(&lease, &outcome("short"), KEPT).await
}
