//! Items that this store did not write: never run, never answered, never touched, never a panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::error::Error;

use aws_sdk_dynamodb::types::AttributeValue;
use idempotency_core::{
    Address, Bid, CorruptRecord, Fate, Inspect, Keep, Lease, Release, Resolution, Select, Store, StoreError,
    StoreErrorKind,
};
use idempotency_store_dynamodb::DynamoDbStore;
use scene::{DAY, Item, LATER, Place, b, bid, claim, keep, manual_clock, n, operation, outcome};

/// What somebody set in an item, `None` for what they took out.
type Damage = Vec<(&'static str, Option<AttributeValue>)>;

fn set(name: &'static str, value: AttributeValue) -> Damage {
    vec![(name, Some(value))]
}

fn unset(name: &'static str) -> Damage {
    vec![(name, None)]
}

fn text() -> AttributeValue {
    AttributeValue::S("7".to_owned())
}

/// Makes the item one whose key would be free, so that only its damage can keep it from being granted.
fn completed() -> Damage {
    let ended = [("phase", n(2)), ("last_attempt", n(1)), ("until", n(1)), ("gone", n(1)), ("form", n(0))];
    let outcome = [("media", n(1)), ("outcome", b(b"done"))];
    let set = ended.into_iter().chain(outcome).map(|(name, value)| (name, Some(value)));
    set.chain([("attempt", None)]).collect()
}

fn released() -> Damage {
    let set = [("phase", n(3)), ("last_attempt", n(1)), ("until", n(1))];
    let set = set.into_iter().map(|(name, value)| (name, Some(value)));
    set.chain([("attempt", None), ("fingerprint", None)]).collect()
}

fn lapsed() -> Damage {
    set("until", n(i128::from(LATER) * 1_000_000 + 9_999_999))
}

/// Each damage, and the column that cannot be read since.
fn damages() -> Vec<(Damage, Damage, &'static str)> {
    let fingerprint = |first: u8, length: usize| {
        let mut bytes = vec![9; length];
        bytes[0] = first;
        b(&bytes)
    };
    vec![
        (lapsed(), set("phase", n(9)), "phase"),
        (lapsed(), set("phase", n(0)), "phase"),
        (lapsed(), set("phase", text()), "phase"),
        (lapsed(), unset("phase"), "phase"),
        (lapsed(), unset("fingerprint"), "fingerprint"),
        (lapsed(), set("fingerprint", fingerprint(2, 104)), "fingerprint"),
        (lapsed(), set("fingerprint", fingerprint(1, 105)), "fingerprint"),
        (lapsed(), set("fingerprint", text()), "fingerprint"),
        (lapsed(), set("gone", n(5)), "gone"),
        (lapsed(), set("outcome", b(b"")), "outcome"),
        (lapsed(), set("holder", b(&[1, 2])), "holder"),
        (lapsed(), set("holder", text()), "holder"),
        (lapsed(), set("fence", n(-1)), "fence"),
        (lapsed(), set("fence", text()), "fence"),
        (lapsed(), unset("fence"), "fence"),
        (lapsed(), set("fence", n(1 << 63)), "fence"),
        (lapsed(), set("attempt", n(-1)), "attempt"),
        (lapsed(), set("attempt", n(1 << 32)), "attempt"),
        (lapsed(), unset("attempt"), "attempt"),
        (lapsed(), set("last_attempt", n(1)), "attempt"),
        (lapsed(), set("until", text()), "until"),
        (lapsed(), set("until", n(-1)), "until"),
        (lapsed(), set("retention", n(-1)), "retention"),
        (lapsed(), set("retention", n(1 << 63)), "retention"),
        (lapsed(), set("on_lapse", n(2)), "on_lapse"),
        (lapsed(), set("phase", n(4)), "until"),
        (completed(), set("fingerprint", fingerprint(2, 106)), "fingerprint"),
        (completed(), set("fingerprint", fingerprint(3, 105)), "fingerprint"),
        (completed(), set("form", n(7)), "form"),
        (completed(), set("media", n(65_536)), "media"),
        (completed(), unset("outcome"), "outcome"),
        (completed(), set("outcome", text()), "outcome"),
        (completed(), unset("gone"), "gone"),
        (completed(), set("gone", n(-1)), "gone"),
        (completed(), set("gone", text()), "gone"),
        (completed(), set("attempt", n(1)), "attempt"),
        (completed(), unset("last_attempt"), "attempt"),
        (completed(), unset("until"), "until"),
        (released(), set("until", n(-1)), "until"),
        (released(), unset("until"), "until"),
        (released(), set("fingerprint", fingerprint(2, 105)), "fingerprint"),
        (released(), set("outcome", b(b"x")), "outcome"),
        (released(), set("on_lapse", n(2)), "on_lapse"),
        (released(), set("retention", n(-1)), "retention"),
        (released(), set("last_attempt", n(1 << 32)), "attempt"),
    ]
}

fn damaged(item: &Item, damage: impl IntoIterator<Item = (&'static str, Option<AttributeValue>)>) -> Item {
    let mut item = item.clone();
    for (name, value) in damage {
        match value {
            Some(value) => item.insert(name.to_owned(), value),
            None => item.remove(name),
        };
    }
    item
}

fn corrupt_column<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> &'static str {
    let error = answer.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Corrupt, Fate::NotApplied), "{error:?}");
    error.source().unwrap().downcast_ref::<CorruptRecord>().unwrap().column
}

async fn assert_refused_everywhere(store: &DynamoDbStore, lease: &Lease, column: &str) {
    let op = operation("k", b"body");
    assert_eq!(corrupt_column(store.claim(&op, &bid()).await), column);
    assert_eq!(corrupt_column(store.claim(&op, &Bid { holder: lease.holder, ..bid() }).await), column);
    assert_eq!(corrupt_column(store.look(&op).await), column);
    assert_eq!(corrupt_column(store.find(&lease.address).await), column);
    assert_eq!(corrupt_column(store.list(Select::All, None, 10).await), column);
    assert_eq!(corrupt_column(store.renew(lease, DAY).await), column);
    assert_eq!(corrupt_column(store.complete(lease, &outcome(), keep(DAY)).await), column);
    assert_eq!(corrupt_column(store.release(lease, Release::NotApplied).await), column);
    assert_eq!(corrupt_column(store.release(lease, Release::Unknown).await), column);
    let applied = Resolution::Applied(outcome(), Keep { replay: DAY, then_reject: DAY });
    for resolution in [applied, Resolution::NotApplied] {
        assert_eq!(corrupt_column(store.resolve(&lease.address, lease.fence, &resolution).await), column);
    }
    assert_eq!(store.purge(10).await.unwrap(), 0);
}

/// A store ten seconds after the claim whose item is returned with its lease.
async fn later(place: &Place) -> (DynamoDbStore, Lease, Item) {
    let early = place.builder().clock(manual_clock(0)).open().await.unwrap();
    let lease = claim(&early, "k").await;
    let store = place.builder().clock(manual_clock(10_000_000)).open().await.unwrap();
    (store, lease, place.item(&lease.address).await.unwrap())
}

async fn assert_damage_is_an_error_and_stays(phase: Damage) {
    let Some(place) = Place::find() else { return };
    let (store, lease, whole) = later(&place).await;
    for (_, damage, column) in damages().into_iter().filter(|(among, ..)| *among == phase) {
        println!("{damage:?}");
        let item = damaged(&whole, phase.clone().into_iter().chain(damage));
        place.put(item.clone()).await;
        assert_refused_everywhere(&store, &lease, column).await;
        assert_eq!(place.item(&lease.address).await.unwrap(), item);
    }
}

#[tokio::test]
async fn a_damaged_run_is_an_error_for_every_call_and_stays_as_it_is() {
    assert_damage_is_an_error_and_stays(lapsed()).await;
}

#[tokio::test]
async fn a_damaged_outcome_is_an_error_for_every_call_and_stays_as_it_is() {
    assert_damage_is_an_error_and_stays(completed()).await;
}

#[tokio::test]
async fn a_damaged_release_is_an_error_for_every_call_and_stays_as_it_is() {
    assert_damage_is_an_error_and_stays(released()).await;
}

#[tokio::test]
async fn an_item_that_is_whole_is_granted_in_each_of_these_phases() {
    let Some(place) = Place::find() else { return };
    let (store, _, whole) = later(&place).await;
    for (phase, attempt) in [(lapsed(), 2), (completed(), 1), (released(), 1)] {
        place.put(damaged(&whole, phase)).await;
        assert_eq!(claim(&store, "k").await.attempt, attempt);
    }
}

#[tokio::test]
async fn a_listing_goes_on_after_the_record_it_cannot_read() {
    let Some(place) = Place::find() else { return };
    let store = place.open().await;
    for key in ["a", "b", "c"] {
        claim(&store, key).await;
    }
    let all = store.list(Select::All, None, 10).await.unwrap();
    let addresses: Vec<Address> = all.iter().map(|(address, _)| *address).collect();
    let item = place.item(&addresses[1]).await.unwrap();
    place.put(damaged(&item, set("phase", n(9)))).await;

    let error = store.list(Select::All, None, 10).await.unwrap_err();
    let corrupt = error.source().unwrap().downcast_ref::<CorruptRecord>().unwrap();
    assert_eq!(corrupt.address, Some(addresses[1]));
    assert_eq!(corrupt.to_string(), format!("the record at {} has no readable phase", addresses[1]));
    let rest = store.list(Select::All, corrupt.address.as_ref(), 10).await.unwrap();
    assert_eq!(rest.iter().map(|(address, _)| *address).collect::<Vec<_>>(), [addresses[2]]);
}

#[tokio::test]
async fn attributes_of_the_user_s_own_are_left_alone() {
    let Some(place) = Place::find() else { return };
    let store = place.open().await;
    let lease = claim(&store, "k").await;
    let item = place.item(&lease.address).await.unwrap();
    place.put(damaged(&item, set("team", text()))).await;
    assert_eq!(store.release(&lease, Release::NotApplied).await.unwrap(), idempotency_core::Settled::Applied);
    claim(&store, "k").await;
    assert_eq!(place.item(&lease.address).await.unwrap().get("team"), Some(&text()));
}
