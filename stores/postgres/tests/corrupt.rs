//! Records no store of this kind wrote: never run, never answered, never touched, never a panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::error::Error;

use idempotency_core::{
    Address, Bid, CorruptRecord, Fate, Fence, Inspect, Keep, Lease, Release, Resolution, Select, Settled,
    Store, StoreError, StoreErrorKind,
};
use idempotency_store_postgres::PostgresStore;
use scene::{DAY, Database, bid, claim, keep, operation, outcome};
use sqlx::{AssertSqlSafe, PgConnection};

/// What somebody wrote into a record, and the column that cannot be read since. Each first makes it a record whose key
/// would be free, so that only its damage can keep it from being granted.
const DAMAGE: &[(&str, &str)] = &[
    ("phase = 9", "phase"),
    ("phase = 0", "phase"),
    (
        "phase = 2, fingerprint = '\\x01', until = 1, gone = 1, form = 0, media = 1, outcome = ''",
        "fingerprint",
    ),
    ("phase = 2, until = 1, gone = 1, form = 7, media = 1, outcome = ''", "form"),
    ("phase = 2, until = 1, gone = 1, form = 0, media = 65536, outcome = ''", "media"),
    ("phase = 2, until = 1, gone = 1, form = 0, media = 1, outcome = NULL", "outcome"),
    ("phase = 2, until = 1, gone = NULL, form = 0, media = 1, outcome = ''", "gone"),
    ("phase = 2, until = 1, gone = -1, form = 0, media = 1, outcome = ''", "gone"),
    ("phase = 3, fingerprint = NULL, until = -1", "until"),
    ("phase = 3, fingerprint = NULL, until = NULL", "until"),
    ("phase = 3", "fingerprint"),
    ("phase = 3, fingerprint = NULL, outcome = '\\x00'", "outcome"),
    ("phase = 4, until = 1", "until"),
    ("phase = 4, until = NULL, fingerprint = NULL", "fingerprint"),
    ("until = 1, retention = 0, fingerprint = NULL", "fingerprint"),
    ("until = 1, retention = 0, fingerprint = set_byte(fingerprint, 0, 9)", "fingerprint"),
    ("until = 1, retention = 0, gone = 5", "gone"),
    ("until = 1, retention = 0, holder = '\\x0102'", "holder"),
    ("until = 1, retention = 0, fence = -1", "fence"),
    ("until = 1, retention = 0, attempt = -1", "attempt"),
    ("until = 1, retention = 0, attempt = 4294967296", "attempt"),
    ("until = NULL, retention = 0", "until"),
    ("phase = 3, fingerprint = NULL, until = 1, on_lapse = 2", "on_lapse"),
    ("phase = 3, fingerprint = NULL, until = 1, retention = -1", "retention"),
];

async fn dump(database: &Database, connection: &mut PgConnection, table: &str) -> Vec<String> {
    let rows = AssertSqlSafe(database.named(table, "SELECT r::text || xmin FROM {t} AS r"));
    sqlx::query_scalar(rows).persistent(false).fetch_all(connection).await.unwrap()
}

fn corrupt_column<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> &'static str {
    let error = answer.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Corrupt, Fate::NotApplied), "{error:?}");
    error.source().unwrap().downcast_ref::<CorruptRecord>().unwrap().column
}

async fn assert_refused_everywhere(store: &PostgresStore, lease: &Lease, column: &str) {
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
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    let mut vandal = database.beside().await;
    for (damage, column) in DAMAGE {
        database.run(&mut vandal, &table, "DELETE FROM {t}").await;
        let lease = claim(&store, "k").await;
        // A purge that took it for what it is worth would find it, too.
        database.run(&mut vandal, &table, &format!("UPDATE {{t}} SET due = 0, {damage}")).await;
        let before = dump(&database, &mut vandal, &table).await;

        println!("{damage}");
        assert_refused_everywhere(&store, &lease, column).await;
        assert_eq!(dump(&database, &mut vandal, &table).await, before, "{damage}");
    }
}

#[tokio::test]
async fn a_listing_goes_on_after_the_record_it_cannot_read() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    for key in ["a", "b", "c"] {
        claim(&store, key).await;
    }
    let all = store.list(Select::All, None, 10).await.unwrap();
    let addresses: Vec<Address> = all.iter().map(|(address, _)| *address).collect();

    let mut vandal = database.beside().await;
    let damage = AssertSqlSafe(database.named(&table, "UPDATE {t} SET phase = 9 WHERE address = $1"));
    sqlx::query(damage).bind(addresses[1].as_bytes().as_slice()).execute(&mut vandal).await.unwrap();

    let error = store.list(Select::All, None, 10).await.unwrap_err();
    let corrupt = error.source().unwrap().downcast_ref::<CorruptRecord>().unwrap();
    assert_eq!(corrupt.address, Some(addresses[1]));
    assert_eq!(corrupt.to_string(), format!("the record at {} has no readable phase", addresses[1]));
    let rest = store.list(Select::All, corrupt.address.as_ref(), 10).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].0, addresses[2]);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_keeps_no_other_from_being_purged() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    for key in 0..20 {
        let lease = claim(&store, &format!("k{key}")).await;
        assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    }
    let mut vandal = database.beside().await;
    let over = "UPDATE {t} SET until = 1, gone = 1, due = get_byte(address, 0);
                UPDATE {t} SET media = -1 WHERE due IN (SELECT due FROM {t} ORDER BY due LIMIT 10)";
    database.run(&mut vandal, &table, over).await;
    let unreadable = database.number(&mut vandal, &table, "SELECT count(*) FROM {t} WHERE media < 0").await;
    let removed = [store.purge(1).await.unwrap(), store.purge(1_000).await.unwrap()];
    assert_eq!(removed, [1, 19 - u32::try_from(unreadable).unwrap()]);
    assert_eq!(database.number(&mut vandal, &table, "SELECT count(*) FROM {t}").await, unreadable);
}

#[tokio::test]
async fn a_fence_beyond_the_column_is_not_the_record_s() {
    let Some(database) = Database::reach() else { return };
    let (store, _) = database.store().await;
    let lease = claim(&store, "k").await;
    let beyond = Fence::from_u64(u64::MAX);
    let settled = store.resolve(&lease.address, beyond, &Resolution::NotApplied).await.unwrap();
    assert!(matches!(settled, Settled::Fenced(Some(_))), "{settled:?}");
}
