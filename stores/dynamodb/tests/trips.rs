//! How often each call goes to the service, counted as requests that leave the client.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{sync::Arc, time::Duration};

use aws_sdk_dynamodb::Client;
use idempotency_core::{
    Bid, Claim, Inspect, OnLapse, PhaseName, Release, Resolution, Select, Settled, Store, clock::ManualClock,
};
use idempotency_store_dynamodb::DynamoDbStore;
use scene::{DAY, Place, Trips, bid, claim, config, granted, keep, manual_clock, operation, outcome};

const BRIEF: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_micros(1);

/// A store whose requests are counted, on a clock that the test moves.
async fn counted(place: &Place) -> (DynamoDbStore, Trips, Arc<ManualClock>) {
    let trips = Trips::default();
    let clock = manual_clock(0);
    let builder = place.builder_with(config(&place.url).interceptor(trips.clone())).clock(clock.clone());
    let store = builder.takeover_margin(Duration::ZERO).open().await.unwrap();
    trips.take();
    (store, trips, clock)
}

#[tokio::test]
async fn a_run_takes_one_trip_to_each_of_its_steps() {
    let Some(place) = Place::find() else { return };
    let (store, trips, clock) = counted(&place).await;
    let lease = claim(&store, "k").await;
    assert_eq!(trips.take(), 1, "a grant");
    assert_eq!(store.renew(&lease, BRIEF).await.unwrap(), Settled::Applied);
    assert_eq!(trips.take(), 1, "a renewal that extends nothing");
    let brief = granted(store.claim(&operation("b", b"body"), &Bid { lease: BRIEF, ..bid() }).await.unwrap());
    trips.take();
    clock.advance(BRIEF / 3);
    assert_eq!(store.renew(&brief, BRIEF).await.unwrap(), Settled::Applied);
    assert_eq!(trips.take(), 1, "a renewal");
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    assert_eq!(trips.take(), 1, "a completion");
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    assert_eq!(trips.take(), 1, "a completion that was made before");
    assert_eq!(store.release(&brief, Release::NotApplied).await.unwrap(), Settled::Applied);
    assert_eq!(trips.take(), 1, "a release");
    assert!(matches!(store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Fenced(Some(_))));
    assert_eq!(trips.take(), 1, "a release that is fenced");
}

#[tokio::test]
async fn a_claim_is_refused_in_one_trip_whatever_stands_there() {
    let Some(place) = Place::find() else { return };
    let (store, trips, clock) = counted(&place).await;
    let held = Bid { lease: BRIEF, on_lapse: OnLapse::Hold, ..bid() };
    let running = claim(&store, "running").await;
    let done = claim(&store, "done").await;
    assert_eq!(store.complete(&done, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    let gone = claim(&store, "expired").await;
    let expires = idempotency_core::Keep { replay: TICK, then_reject: DAY };
    assert_eq!(store.complete(&gone, &outcome(), expires).await.unwrap(), Settled::Applied);
    let doubtful = claim(&store, "doubtful").await;
    assert_eq!(store.release(&doubtful, Release::Unknown).await.unwrap(), Settled::Applied);
    granted(store.claim(&operation("held", b"body"), &held).await.unwrap());
    clock.advance(BRIEF);
    trips.take();
    for (key, body, verdict) in [
        ("running", "body", "in_flight"),
        ("running", "other", "mismatch"),
        ("done", "body", "completed"),
        ("expired", "body", "expired"),
        ("doubtful", "body", "in_doubt"),
        ("held", "body", "in_doubt"),
    ] {
        let seen = store.claim(&operation(key, body.as_bytes()), &bid()).await.unwrap();
        assert_eq!((seen.name(), trips.take()), (verdict, 1), "{key}");
        let seen = store.look(&operation(key, body.as_bytes())).await.unwrap();
        assert_eq!((seen.name(), trips.take()), (verdict, 1), "a look at {key}");
    }
    assert_eq!(store.renew(&running, DAY).await.unwrap(), Settled::Applied);
}

#[tokio::test]
async fn a_key_that_is_free_again_is_granted_in_one_trip() {
    let Some(place) = Place::find() else { return };
    let (store, trips, clock) = counted(&place).await;
    let released = claim(&store, "released").await;
    assert_eq!(store.release(&released, Release::NotApplied).await.unwrap(), Settled::Applied);
    let done = claim(&store, "done").await;
    assert_eq!(store.complete(&done, &outcome(), keep(TICK)).await.unwrap(), Settled::Applied);
    let brief = Bid { lease: BRIEF, ..bid() };
    granted(store.claim(&operation("lapsed", b"body"), &brief).await.unwrap());
    clock.advance(BRIEF);
    trips.take();
    for (key, attempt) in [("released", 1), ("done", 1), ("lapsed", 2)] {
        let lease = claim(&store, key).await;
        assert_eq!((lease.attempt, trips.take()), (attempt, 1), "{key}");
    }
}

#[tokio::test]
async fn what_an_expression_cannot_compute_takes_a_second_trip() {
    let Some(place) = Place::find() else { return };
    let (store, trips, clock) = counted(&place).await;
    let brief = Bid { lease: BRIEF, retention: BRIEF, ..bid() };

    let op = operation("adopted", b"body");
    let lease = granted(store.claim(&op, &brief).await.unwrap());
    trips.take();
    assert_eq!(store.claim(&op, &brief).await.unwrap(), Claim::Granted(lease));
    assert_eq!(trips.take(), 1, "a copy that extends nothing");
    clock.advance(TICK);
    assert_eq!(store.claim(&op, &brief).await.unwrap(), Claim::Granted(lease));
    assert_eq!(trips.take(), 2, "a copy that extends the lease");

    clock.advance(BRIEF * 2);
    let lease = granted(store.claim(&op, &bid()).await.unwrap());
    assert_eq!((lease.attempt, trips.take()), (1, 2), "an abandoned key");

    clock.advance(Duration::from_secs(7_200));
    assert_eq!(store.renew(&lease, DAY * 2).await.unwrap(), Settled::Applied);
    assert_eq!(trips.take(), 2, "a renewal hours after the grant");

    let endless = Bid { retention: Duration::MAX, ..bid() };
    let lease = granted(store.claim(&operation("endless", b"body"), &endless).await.unwrap());
    trips.take();
    assert_eq!(store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Applied);
    assert_eq!(trips.take(), 2, "a release that is kept for ever");
    let again = granted(store.claim(&operation("endless", b"body"), &bid()).await.unwrap());
    assert_eq!(
        (again.fence.as_u64(), trips.take()),
        (lease.fence.as_u64() + 1, 2),
        "a fence that is the time"
    );
}

#[tokio::test]
async fn an_operator_resolves_in_one_trip() {
    let Some(place) = Place::find() else { return };
    let (store, trips, _) = counted(&place).await;
    let resolutions = [Resolution::Applied(outcome(), keep(DAY)), Resolution::NotApplied];
    for (key, resolution) in ["a", "b"].into_iter().zip(resolutions) {
        let lease = claim(&store, key).await;
        assert_eq!(store.release(&lease, Release::Unknown).await.unwrap(), Settled::Applied);
        trips.take();
        let settled = store.resolve(&lease.address, lease.fence, &resolution).await.unwrap();
        assert_eq!((settled, trips.take()), (Settled::Applied, 1), "{resolution:?}");
        assert!(store.find(&lease.address).await.unwrap().is_some());
        assert_eq!(trips.take(), 1, "a look at one record");
    }
    let listed = store.list(Select::All, None, 10).await.unwrap();
    assert_eq!((listed.len(), trips.take()), (2, 1), "a listing of one page");
    assert_eq!(listed.iter().filter(|(_, record)| record.phase.name() == PhaseName::Released).count(), 1);
    assert_eq!((store.purge(10).await.unwrap(), trips.take()), (0, 0), "a purge");
}

#[tokio::test]
async fn a_store_that_was_not_opened_asks_for_the_time_first() {
    let Some(place) = Place::find() else { return };
    place.open().await;
    let trips = Trips::default();
    let client = Client::from_conf(config(&place.url).interceptor(trips.clone()).build());
    // The table of the default name may be another test's, too, but not these keys.
    let setup = Place::at(&place.url, DynamoDbStore::TABLE);
    setup.open().await;
    let store = DynamoDbStore::new(client);
    let key = format!("{}-first", place.table);
    claim(&store, &key).await;
    assert_eq!(trips.take(), 2, "the first call asks for the time");
    claim(&store, &format!("{}-second", place.table)).await;
    assert_eq!(trips.take(), 1, "no other does");
}
