//! Records no store of this kind wrote: never run, never answered, never touched, never a panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{error::Error, sync::Arc};

use idempotency_core::{
    Address, CorruptRecord, Fate, Fence, Inspect, Keep, Lease, Release, Resolution, Select, Store,
    StoreError, StoreErrorKind,
    clock::{ManualClock, Timestamp},
};
use idempotency_store_sqlite::SqliteStore;
use scene::{DAY, beside, bid, claim, keep, operation, outcome, run};
use sqlx::{AssertSqlSafe, SqliteConnection};

/// What somebody wrote into a record, and the column that cannot be read since. Each first makes it a record whose key
/// would be free, so that only its damage can keep it from being granted.
const DAMAGE: &[(&str, &str)] = &[
    ("phase = 9", "phase"),
    ("phase = 0", "phase"),
    (
        "phase = 2, fingerprint = x'01', until = 1, gone = 1, form = 0, media = 1, outcome = x''",
        "fingerprint",
    ),
    ("phase = 2, until = 1, gone = 1, form = 7, media = 1, outcome = x''", "form"),
    ("phase = 2, until = 1, gone = 1, form = 0, media = 65536, outcome = x''", "media"),
    ("phase = 2, until = 1, gone = 1, form = 0, media = 1, outcome = NULL", "outcome"),
    ("phase = 2, until = 1, gone = NULL, form = 0, media = 1, outcome = x''", "gone"),
    ("phase = 2, until = 1, gone = -1, form = 0, media = 1, outcome = x''", "gone"),
    ("phase = 3, fingerprint = NULL, until = -1", "until"),
    ("phase = 3, fingerprint = NULL, until = NULL", "until"),
    ("phase = 3", "fingerprint"),
    ("phase = 3, fingerprint = NULL, outcome = x'00'", "outcome"),
    ("phase = 4, until = 1", "until"),
    ("phase = 4, until = NULL, fingerprint = NULL", "fingerprint"),
    ("until = 1, retention = 0, fingerprint = NULL", "fingerprint"),
    ("until = 1, retention = 0, fingerprint = CAST(x'09' || substr(fingerprint, 2) AS BLOB)", "fingerprint"),
    ("until = 1, retention = 0, gone = 5", "gone"),
    ("until = 1, retention = 0, holder = x'0102'", "holder"),
    ("until = 1, retention = 0, fence = -1", "fence"),
    ("until = 1, retention = 0, attempt = -1", "attempt"),
    ("until = 1, retention = 0, attempt = 4294967296", "attempt"),
    ("phase = 3, fingerprint = NULL, until = 1, on_lapse = 2", "on_lapse"),
    ("phase = 3, fingerprint = NULL, until = 1, retention = -1", "retention"),
];

async fn dump(connection: &mut SqliteConnection) -> Vec<String> {
    let row = "SELECT concat_ws('|', hex(address), phase, hex(holder), fence, attempt, on_lapse, retention,
                      hex(fingerprint), until, gone, form, media, hex(outcome)) FROM idempotency_records";
    sqlx::query_scalar(row).fetch_all(connection).await.unwrap()
}

fn corrupt_column<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> &'static str {
    let error = answer.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Corrupt, Fate::NotApplied), "{error:?}");
    error.source().unwrap().downcast_ref::<CorruptRecord>().unwrap().column
}

async fn assert_refused_everywhere(store: &SqliteStore, lease: &Lease, column: &str) {
    let op = operation("k", b"body");
    assert_eq!(corrupt_column(store.claim(&op, &bid()).await), column);
    let own = idempotency_core::Bid { holder: lease.holder, ..bid() };
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
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
    for (case, (damage, column)) in DAMAGE.iter().enumerate() {
        let path = directory.path().join(format!("{case}.db"));
        let store = SqliteStore::builder().clock(clock.clone()).open(&path).await.unwrap();
        let lease = claim(&store, "k").await;
        let mut vandal = beside(&path).await;
        run(&mut vandal, "PRAGMA ignore_check_constraints = ON").await;
        let update = format!("UPDATE idempotency_records SET {damage}");
        sqlx::raw_sql(AssertSqlSafe(update)).execute(&mut vandal).await.expect(damage);
        let before = dump(&mut vandal).await;

        println!("{damage}");
        assert_refused_everywhere(&store, &lease, column).await;
        assert_eq!(dump(&mut vandal).await, before, "{damage}");
    }
}

#[tokio::test]
async fn the_tables_refuse_what_the_store_could_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let store = SqliteStore::open(&path).await.unwrap();
    claim(&store, "k").await;
    let mut vandal = beside(&path).await;
    for (damage, _) in DAMAGE {
        let update = format!("UPDATE idempotency_records SET {damage}");
        let done = sqlx::raw_sql(AssertSqlSafe(update)).execute(&mut vandal).await;
        assert!(done.is_err(), "{damage}");
    }
}

#[tokio::test]
async fn a_listing_goes_on_after_the_record_it_cannot_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let store = SqliteStore::open(&path).await.unwrap();
    for key in ["a", "b", "c"] {
        claim(&store, key).await;
    }
    let all = store.list(Select::All, None, 10).await.unwrap();
    let addresses: Vec<Address> = all.iter().map(|(address, _)| *address).collect();

    let mut vandal = beside(&path).await;
    run(&mut vandal, "PRAGMA ignore_check_constraints = ON").await;
    sqlx::query("UPDATE idempotency_records SET phase = 9 WHERE address = ?1")
        .bind(addresses[1].as_bytes().as_slice())
        .execute(&mut vandal)
        .await
        .unwrap();

    let error = store.list(Select::All, None, 10).await.unwrap_err();
    let corrupt = error.source().unwrap().downcast_ref::<CorruptRecord>().unwrap();
    assert_eq!(corrupt.address, Some(addresses[1]));
    assert_eq!(corrupt.to_string(), format!("the record at {} has no readable phase", addresses[1]));
    let rest = store.list(Select::All, corrupt.address.as_ref(), 10).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].0, addresses[2]);
}

#[tokio::test]
async fn a_fence_beyond_the_column_is_not_the_record_s() {
    let store = SqliteStore::builder().open_in_memory().await.unwrap();
    let lease = claim(&store, "k").await;
    let settled =
        store.resolve(&lease.address, Fence::from_u64(u64::MAX), &Resolution::NotApplied).await.unwrap();
    assert!(matches!(settled, idempotency_core::Settled::Fenced(Some(_))), "{settled:?}");
}
