//! When DynamoDB may remove a record: never before the law does, and never one that is held or in doubt.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{sync::Arc, time::Duration};

use idempotency_core::{
    Bid, Claim, Inspect, Keep, OnLapse, Release, Resolution, Settled, Store, clock::ManualClock,
};
use idempotency_store_dynamodb::DynamoDbStore;
use scene::{DAY, Place, bid, claim, granted, manual_clock, number, operation, outcome};

/// A second, after which a few microseconds have passed, so that what is rounded shows.
const NOW: u64 = scene::LATER;
const MICROS: u64 = 250_000;
const HOUR: u64 = 3_600;
const BRIEF: Duration = Duration::from_secs(30);

async fn on_manual_clock(place: &Place) -> (DynamoDbStore, Arc<ManualClock>) {
    let clock = manual_clock(MICROS);
    let builder = place.builder().clock(clock.clone()).takeover_margin(Duration::ZERO);
    (builder.open().await.unwrap(), clock)
}

async fn expires_at(place: &Place, key: &str) -> Option<u64> {
    number(&place.item(operation(key, b"body").address()).await.unwrap(), "expires_at")
}

async fn claimed(store: &DynamoDbStore, key: &str, bid: Bid) -> idempotency_core::Lease {
    granted(store.claim(&operation(key, b"body"), &bid).await.unwrap())
}

#[tokio::test]
async fn a_run_that_may_be_taken_over_expires_after_its_retention() {
    let Some(place) = Place::find() else { return };
    let (store, clock) = on_manual_clock(&place).await;
    let lease = claimed(&store, "k", Bid { lease: BRIEF, retention: BRIEF, ..bid() }).await;
    // An hour in which it may be renewed, and the retention; rounded up.
    assert_eq!(expires_at(&place, "k").await, Some(NOW + HOUR + 30 + 1));
    clock.advance(Duration::from_secs(HOUR) - BRIEF);
    assert_eq!(store.renew(&lease, BRIEF).await.unwrap(), Settled::Applied);
    assert_eq!(expires_at(&place, "k").await, Some(NOW + HOUR + 30 + 1));
    clock.advance(Duration::from_secs(1));
    assert_eq!(store.renew(&lease, BRIEF).await.unwrap(), Settled::Applied);
    assert_eq!(expires_at(&place, "k").await, Some(NOW + HOUR + 1 + 30 + 1), "after an hour it is set again");

    claimed(&store, "long", Bid { lease: DAY, retention: BRIEF, ..bid() }).await;
    assert_eq!(expires_at(&place, "long").await, Some(NOW + HOUR - 29 + 86_400 + 30 + 1));
}

#[tokio::test]
async fn what_is_held_or_in_doubt_has_no_time_to_expire() {
    let Some(place) = Place::find() else { return };
    let (store, clock) = on_manual_clock(&place).await;
    let brief = |retention| Bid { lease: BRIEF, retention, ..bid() };
    let held = |retention| Bid { on_lapse: OnLapse::Hold, ..brief(retention) };
    let lease = claimed(&store, "held", held(Duration::ZERO)).await;
    assert_eq!(expires_at(&place, "held").await, None);
    for _ in 0..3 {
        clock.advance(Duration::from_secs(HOUR));
        assert_eq!(store.renew(&lease, BRIEF).await.unwrap(), Settled::Applied);
        assert_eq!(expires_at(&place, "held").await, None);
    }
    let lease = claimed(&store, "doubtful", brief(Duration::ZERO)).await;
    assert!(expires_at(&place, "doubtful").await.is_some());
    assert_eq!(store.release(&lease, Release::Unknown).await.unwrap(), Settled::Applied);
    assert_eq!(expires_at(&place, "doubtful").await, None);

    // A key that was taken over, or freed, by a bid that holds.
    claimed(&store, "taken", brief(DAY)).await;
    clock.advance(BRIEF);
    let lease = claimed(&store, "taken", held(DAY)).await;
    assert_eq!((lease.attempt, expires_at(&place, "taken").await), (2, None));
    assert_eq!(store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Applied);
    assert!(expires_at(&place, "taken").await.is_some());
    claimed(&store, "taken", held(DAY)).await;
    assert_eq!(expires_at(&place, "taken").await, None);
}

#[tokio::test]
async fn what_ended_expires_in_the_second_after_the_law_lets_it_go() {
    let Some(place) = Place::find() else { return };
    let (store, _) = on_manual_clock(&place).await;
    for on_lapse in [OnLapse::TakeOver, OnLapse::Hold] {
        let key = format!("released {on_lapse:?}").replace(' ', "-");
        let lease = claimed(&store, &key, Bid { retention: BRIEF, on_lapse, ..bid() }).await;
        assert_eq!(store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Applied);
        assert_eq!(expires_at(&place, &key).await, Some(NOW + 1 + 30));
    }
    let keep = Keep { replay: BRIEF, then_reject: BRIEF };
    let lease = claim(&store, "done").await;
    assert_eq!(store.complete(&lease, &outcome(), keep).await.unwrap(), Settled::Applied);
    assert_eq!(expires_at(&place, "done").await, Some(NOW + 60 + 1));
    for (key, resolution, at) in [
        ("applied", Resolution::Applied(outcome(), keep), NOW + 60 + 1),
        ("freed", Resolution::NotApplied, NOW + 1 + 86_400),
    ] {
        let lease = claim(&store, key).await;
        assert_eq!(store.release(&lease, Release::Unknown).await.unwrap(), Settled::Applied);
        let settled = store.resolve(&lease.address, lease.fence, &resolution).await.unwrap();
        assert_eq!((settled, expires_at(&place, key).await), (Settled::Applied, Some(at)));
    }
}

/// DynamoDB removes what expired within days, not at once.
#[tokio::test]
async fn a_record_that_is_late_to_expire_is_as_good_as_gone() {
    let Some(place) = Place::find() else { return };
    let (store, clock) = on_manual_clock(&place).await;
    let lease = claim(&store, "k").await;
    let keep = Keep { replay: BRIEF, then_reject: Duration::ZERO };
    assert_eq!(store.complete(&lease, &outcome(), keep).await.unwrap(), Settled::Applied);
    clock.advance(DAY * 3);
    assert!(place.item(&lease.address).await.is_some(), "the emulator expires nothing by itself");
    let other = operation("k", b"another body");
    assert_eq!(store.look(&other).await.unwrap().name(), "granted");
    let Claim::Granted(next) = store.claim(&other, &bid()).await.unwrap() else { panic!("not granted") };
    assert!(next.attempt == 1 && next.fence > lease.fence, "{next:?}");
}
