//! Records no script of ours wrote: never run, never answered, never touched, never a panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{error::Error, time::Duration};

use idempotency_core::{
    Address, Bid, CorruptRecord, Fate, Fence, Fingerprint, Inspect, Keep, Lease, Notify, OnLapse, Release,
    Resolution, Select, Settled, Store, StoreError, StoreErrorKind,
};
use idempotency_store_redis::RedisStore;
use redis::cmd;
use scene::{Beside, DAY, Records, bid, claim, keep, operation, outcome};

/// What somebody wrote in the place of a record's words, and the column that cannot be read since. Without the damage
/// each would be a record whose key is free, so that only its damage can keep it from being granted. FENCE stands for
/// the fence, and what follows the words are the holder and the fingerprint.
const DAMAGE: &[(&str, &str)] = &[
    ("2 1 0 1+0 1 - - - 1 FENCE 0 0", "format"),
    ("1 9 0 1+0 1 - - - 1 FENCE 0 0", "phase"),
    ("1 0 0 1+0 1 - - - 1 FENCE 0 0", "phase"),
    ("1 1 2 1+0 1 - - - 1 FENCE 0 0", "waited"),
    ("1 1 0 1 1 - - - 1 FENCE 0 0", "until"),
    ("1 1 0 1+-1 1 - - - 1 FENCE 0 0", "until"),
    ("1 1 0 1+0 -1 - - - 1 FENCE 0 0", "until"),
    ("1 1 0 1+0 - - - - 1 FENCE 0 0", "until"),
    ("1 1 0 1+0 1 5 - - 1 FENCE 0 0", "gone"),
    ("1 1 0 1+0 1 - 0 - 1 FENCE 0 0", "form"),
    ("1 1 0 1+0 1 - - 0001 1 FENCE 0 0", "media"),
    ("1 1 0 1+0 1 - - - -1 FENCE 0 0", "attempt"),
    ("1 1 0 1+0 1 - - - 1 12 0 0", "fence"),
    ("1 1 0 1+0 1 - - - 1 -1+0 0 0", "fence"),
    ("1 1 0 1+0 1 - - - 1 FENCE 2 0", "on_lapse"),
    ("1 1 0 1+0 1 - - - 1 FENCE 0 -1", "retention"),
    ("1 2 0 1+0 1 - 0 0001 1 FENCE 0 0", "gone"),
    ("1 2 0 1+0 1 1 7 0001 1 FENCE 0 0", "form"),
    ("1 2 0 1+0 1 1 0 65536 1 FENCE 0 0", "media"),
    ("1 2 0 1+0 1 1 0 0001 1 FENCE 0 x", "retention"),
    ("1 3 0 1+0 1 - - - 1 FENCE 0 0", "outcome"), // a released record has no fingerprint
    ("1 4 0 1+0 1 - - - 1 FENCE 0 0", "until"),
    ("1 1  1+0 1 - - - 1 FENCE 0 0", "waited"),
    ("not a record", "format"),
    ("", "format"),
];

/// Writes `words` in the place of a record's, and cuts its bytes short by `cut`.
fn damage(vandal: &mut Beside, key: &str, words: &str, cut: usize) {
    let record: Vec<u8> = vandal.ask(&format!("GET {key}"));
    let spaces: Vec<usize> = (0..record.len()).filter(|at| record[*at] == b' ').take(12).collect();
    let fence = std::str::from_utf8(&record[spaces[8] + 1..spaces[9]]).unwrap();
    let mut damaged = words.replace("FENCE", fence).into_bytes();
    damaged.extend(&record[spaces[11]..record.len() - cut]);
    vandal.send::<()>(cmd("SET").arg(key).arg(damaged).arg("PX").arg(DAY.as_millis() as u64));
}

fn corrupt_column<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> &'static str {
    let error = answer.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Corrupt, Fate::NotApplied), "{error:?}");
    error.source().unwrap().downcast_ref::<CorruptRecord>().unwrap().column
}

async fn assert_refused_everywhere(store: &RedisStore, lease: &Lease, column: &str) {
    let op = operation("k", b"body");
    assert_eq!(corrupt_column(store.claim(&op, &bid()).await), column);
    let own = Bid { holder: lease.holder, ..bid() };
    assert_eq!(corrupt_column(store.claim(&op, &own).await), column);
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

#[tokio::test]
async fn a_damaged_record_is_an_error_for_every_call_and_stays_as_it_is() {
    let damages = DAMAGE.iter().map(|(words, column)| (*words, 0, *column));
    let cuts = [
        ("1 1 0 1+0 1 - - - 1 FENCE 0 0", 1, "fingerprint"),
        ("1 2 0 1+0 1 1 0 0001 1 FENCE 0 0", 1, "fingerprint"),
    ];
    let holders = [("1 3 0 1+0 1 - - - 1 FENCE 0 0", 106, "holder")];
    for (words, cut, column) in damages.chain(cuts).chain(holders) {
        let Some(records) = Records::on_the_server() else { return };
        let store = records.store().await;
        let lease = claim(&store, "k").await;
        let (mut vandal, key) = (records.beside(), records.key(&lease.address));
        damage(&mut vandal, &key, words, cut);
        let before = vandal.dump(&key);

        println!("{words}");
        assert_refused_everywhere(&store, &lease, column).await;
        assert_eq!(vandal.dump(&key), before, "{words}");
    }
}

#[tokio::test]
async fn a_key_with_another_kind_of_value_is_a_record_that_cannot_be_read() {
    let Some(records) = Records::on_the_server() else { return };
    let store = records.store().await;
    let lease = claim(&store, "k").await;
    let (mut vandal, key) = (records.beside(), records.key(&lease.address));
    vandal.ask::<()>(&format!("DEL {key}"));
    vandal.ask::<()>(&format!("HSET {key} phase 1"));
    assert_refused_everywhere(&store, &lease, "type").await;
    assert_eq!(vandal.ask::<Vec<String>>(&format!("HGETALL {key}")), ["phase", "1"]);
}

#[tokio::test]
async fn a_run_that_cannot_be_read_is_not_marked_as_waited_for() {
    let Some(records) = Records::on_the_server() else { return };
    let store = records.store().await;
    let lease = claim(&store, "k").await;
    let (mut vandal, key) = (records.beside(), records.key(&lease.address));
    let record: Vec<u8> = vandal.ask(&format!("GET {key}"));
    vandal.send::<()>(cmd("SET").arg(&key).arg(&record[..record.len() - 1]));
    let before = vandal.dump(&key);
    for _ in 0..2 {
        let ended = tokio::time::timeout(Duration::from_secs(20), store.ended(&lease.address));
        ended.await.expect("it is left to a look to say what is there");
    }
    assert_eq!(vandal.dump(&key), before);
}

#[tokio::test]
async fn a_fence_that_cannot_rise_is_not_granted() {
    let Some(records) = Records::on_the_server() else { return };
    let store = records.store().await;
    let lease = claim(&store, "k").await;
    let (mut vandal, key) = (records.beside(), records.key(&lease.address));
    damage(&mut vandal, &key, "1 1 0 1+0 1 - - - 1 9000000000+0 0 0", 0);
    let before = vandal.dump(&key);
    assert_eq!(corrupt_column(store.claim(&operation("k", b"body"), &bid()).await), "format");
    assert_eq!(vandal.dump(&key), before);
}

/// The clock of a server can be set back, or that of a promoted replica be behind.
#[tokio::test]
async fn a_clock_behind_the_last_fence_lowers_no_fence() {
    const YEAR_2100: u64 = 4_102_444_800;
    for free in ["1 3 0 1+0 1 - - - 1", "1 1 0 1+0 1 - - - 1", "1 2 0 1+0 1 1 0 0001 1"] {
        let Some(records) = Records::on_the_server() else { return };
        let store = records.store().await;
        let lease = claim(&store, "k").await;
        let (mut vandal, key) = (records.beside(), records.key(&lease.address));
        let bytes = if free.starts_with("1 3") { Fingerprint::BYTES } else { 0 };
        damage(&mut vandal, &key, &format!("{free} {YEAR_2100}+999999 0 0"), bytes);
        let next = claim(&store, "k").await;
        assert_eq!(next.fence.as_u64(), YEAR_2100 * 1_000_000 + 1_000_000, "{free}");
        assert_eq!(store.find(&next.address).await.unwrap().unwrap().fence, next.fence);
        let again = Bid { holder: next.holder, ..bid() };
        let adopted = scene::granted(store.claim(&operation("k", b"body"), &again).await.unwrap());
        assert_eq!(adopted.fence, next.fence);
    }
}

#[tokio::test]
async fn a_listing_goes_on_after_the_record_it_cannot_read() {
    let Some(records) = Records::on_the_server() else { return };
    let store = records.store().await;
    for key in ["a", "b", "c"] {
        claim(&store, key).await;
    }
    let all = store.list(Select::All, None, 10).await.unwrap();
    let addresses: Vec<Address> = all.iter().map(|(address, _)| *address).collect();
    damage(&mut records.beside(), &records.key(&addresses[1]), "1 9 0 1+0 1 - - - 1 FENCE 0 0", 0);

    // It may be in doubt: nobody knows.
    assert_eq!(corrupt_column(store.list(Select::InDoubt, None, 10).await), "phase");
    let error = store.list(Select::All, None, 10).await.unwrap_err();
    let corrupt = error.source().unwrap().downcast_ref::<CorruptRecord>().unwrap();
    assert_eq!(corrupt.address, Some(addresses[1]));
    assert_eq!(corrupt.to_string(), format!("the record at {} has no readable phase", addresses[1]));
    let rest = store.list(Select::All, corrupt.address.as_ref(), 10).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].0, addresses[2]);
}

#[tokio::test]
async fn a_fence_beyond_all_others_is_not_the_record_s() {
    let Some(records) = Records::on_the_server() else { return };
    let store = records.store().await;
    let doubtful = Bid { lease: Duration::ZERO, on_lapse: OnLapse::Hold, ..bid() };
    let lease = scene::granted(store.claim(&operation("k", b"body"), &doubtful).await.unwrap());
    for fence in [u64::MAX, i64::MAX.unsigned_abs() + 1, 0] {
        let settled = store.resolve(&lease.address, Fence::from_u64(fence), &Resolution::NotApplied).await;
        assert!(matches!(settled, Ok(Settled::Fenced(Some(_)))), "{settled:?}");
    }
}

#[tokio::test]
async fn keys_of_others_under_the_same_prefix_are_no_records() {
    let Some(records) = Records::on_the_server() else { return };
    let store = records.store().await;
    let lease = claim(&store, "k").await;
    let mut neighbour = records.beside();
    for key in ["ended", "0123", &"G".repeat(64), &"0".repeat(65)] {
        neighbour.ask::<()>(&format!("SET {}{key} theirs", records.prefix()));
    }
    let all = store.list(Select::All, None, 10).await.unwrap();
    assert_eq!(all.iter().map(|(address, _)| *address).collect::<Vec<_>>(), [lease.address]);
}
