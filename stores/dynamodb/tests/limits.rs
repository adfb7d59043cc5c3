//! How much an item holds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_core::{Claim, Fate, Media, Outcome, Settled, Store, StoreErrorKind};
use idempotency_store_dynamodb::DynamoDbStore;
use scene::{DAY, Place, b, bid, claim, keep, operation, outcome};

/// The bytes of one item, names and values, that the service accepts.
const ITEM: usize = 409_600;

fn of_length(length: usize) -> Outcome {
    Outcome::whole(Media(u16::MAX), vec![0xff; length])
}

#[tokio::test]
async fn the_longest_outcome_fits_and_leaves_room() {
    let Some(place) = Place::find() else { return };
    let store = place.open().await;
    let lease = claim(&store, "k").await;
    let longest = of_length(DynamoDbStore::MAX_OUTCOME_BYTES);
    assert_eq!(store.complete(&lease, &longest, keep(DAY)).await.unwrap(), Settled::Applied);
    let verdict = store.claim(&operation("k", b"body"), &bid()).await.unwrap();
    assert_eq!(verdict, Claim::Completed(longest));

    let item = place.item(&lease.address).await.unwrap();
    let size: usize = item
        .iter()
        .map(|(name, value)| {
            let value = match (value.as_b(), value.as_n()) {
                (Ok(bytes), _) => bytes.as_ref().len(),
                (_, Ok(digits)) => digits.len() + 2, // a number takes less
                _ => panic!("{name}"),
            };
            name.len() + value
        })
        .sum();
    assert!(size < ITEM - 8_000, "{size} bytes with the longest outcome");
    assert!(size < DynamoDbStore::MAX_OUTCOME_BYTES + 600, "{size} bytes");
}

#[tokio::test]
async fn one_byte_more_is_refused_before_it_is_sent() {
    let Some(place) = Place::find() else { return };
    let store = place.open().await;
    let lease = claim(&store, "k").await;
    let error = store.complete(&lease, &of_length(DynamoDbStore::MAX_OUTCOME_BYTES + 1), keep(DAY)).await;
    let error = error.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::TooLarge, Fate::NotApplied));
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
}

#[tokio::test]
async fn what_the_service_finds_too_large_is_called_so() {
    let Some(place) = Place::find() else { return };
    let store = place.open().await;
    let lease = claim(&store, "k").await;
    let mut item = place.item(&lease.address).await.unwrap();
    item.insert("of_the_user".to_owned(), b(&[7; 20_000]));
    place.put(item).await;
    let longest = of_length(DynamoDbStore::MAX_OUTCOME_BYTES);
    let error = store.complete(&lease, &longest, keep(DAY)).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::TooLarge, Fate::NotApplied));
}
