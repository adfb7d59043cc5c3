//! Records no store of this kind wrote: never run, never answered, never touched, never a panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::error::Error;

use idempotency_core::{
    Bid, CorruptRecord, Fate, Fence, Inspect, Keep, Lease, Release, Resolution, Select, Store, StoreError,
    StoreErrorKind,
};
use idempotency_store_mysql::MySqlStore;
use scene::{DAY, Database, bid, builder, claim, keep, operation, outcome, run};
use sqlx::{AssertSqlSafe, MySqlConnection};

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
    ("until = 1, retention = 0, fingerprint = CONCAT(x'09', SUBSTR(fingerprint, 2))", "fingerprint"),
    ("until = 1, retention = 0, gone = 5", "gone"),
    ("until = 1, retention = 0, fence = -1", "fence"),
    ("until = 1, retention = 0, attempt = -1", "attempt"),
    ("until = 1, retention = 0, attempt = 4294967296", "attempt"),
    ("phase = 3, fingerprint = NULL, until = 1, on_lapse = 2", "on_lapse"),
    ("phase = 3, fingerprint = NULL, until = 1, retention = -1", "retention"),
];

async fn dump(connection: &mut MySqlConnection, table: &str) -> Vec<Option<String>> {
    let rows = format!(
        "SELECT CONCAT_WS('|', HEX(address), phase, HEX(holder), fence, attempt, on_lapse, retention,
                IFNULL(HEX(fingerprint), '-'), IFNULL(until, '-'), IFNULL(gone, '-'), form, media, HEX(outcome))
         FROM `{table}`"
    );
    sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(connection).await.unwrap()
}

fn corrupt_column<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> &'static str {
    let error = answer.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Corrupt, Fate::NotApplied), "{error:?}");
    error.source().unwrap().downcast_ref::<CorruptRecord>().unwrap().column
}

async fn assert_refused_everywhere(
    store: &MySqlStore,
    lease: &Lease,
    connection: &mut MySqlConnection,
    column: &str,
) {
    let op = operation("k", b"body");
    assert_eq!(corrupt_column(store.claim(&op, &bid()).await), column);
    let own = Bid { holder: lease.holder, ..bid() };
    assert_eq!(corrupt_column(store.claim(&op, &own).await), column);
    assert_eq!(corrupt_column(store.look(&op).await), column);
    assert_eq!(corrupt_column(store.find(&lease.address).await), column);
    assert_eq!(corrupt_column(store.list(Select::All, None, 10).await), column);
    assert_eq!(corrupt_column(store.renew(lease, DAY).await), column);
    assert_eq!(corrupt_column(store.complete(lease, &outcome(), keep(DAY)).await), column);
    assert_eq!(corrupt_column(store.complete_in(connection, lease, &outcome(), keep(DAY)).await), column);
    assert_eq!(corrupt_column(store.fence_in(connection, lease).await), column);
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
    let mut vandal = database.beside().await;
    let (returning, table) = database.store().await;
    let plain = builder().table(&table).without_returning();
    let plain = plain.connect(database.url()).await.unwrap();
    run(&mut vandal, &table, "SET check_constraint_checks = 0").await;
    for (damage, column) in DAMAGE {
        for store in [&returning, &plain] {
            run(&mut vandal, &table, "DELETE FROM {t}").await;
            let lease = claim(store, "k").await;
            run(&mut vandal, &table, &format!("UPDATE {{t}} SET {damage}")).await;
            let before = dump(&mut vandal, &table).await;
            assert!(before.iter().all(Option::is_some), "{before:?}");

            println!("{damage}");
            assert_refused_everywhere(store, &lease, &mut vandal, column).await;
            assert_eq!(dump(&mut vandal, &table).await, before, "{damage}");
        }
    }
}

#[tokio::test]
async fn the_table_refuses_what_the_store_could_not_read() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    claim(&store, "k").await;
    let mut vandal = database.beside().await;
    for (damage, _) in DAMAGE {
        let update = format!("UPDATE `{table}` SET {damage}");
        let refused = sqlx::raw_sql(AssertSqlSafe(update)).execute(&mut vandal).await;
        assert!(refused.is_err(), "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_record_hides_no_others_from_a_purge() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    let lease = claim(&store, "damaged").await;
    let mut vandal = database.beside().await;
    run(
        &mut vandal,
        &table,
        "SET check_constraint_checks = 0; UPDATE {t} SET until = 1, retention = 0, fence = -1",
    )
    .await;
    let over = claim(&store, "over").await;
    let _ = store.complete(&over, &outcome(), keep(std::time::Duration::ZERO)).await.unwrap();
    assert_eq!(store.purge(10).await.unwrap(), 1);
    assert_eq!(corrupt_column(store.find(&lease.address).await), "fence");
    assert!(store.find(&over.address).await.unwrap().is_none());
}

#[tokio::test]
async fn a_listing_says_where_the_damage_is_and_goes_on_behind_it() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    let mut leases = [claim(&store, "a").await, claim(&store, "b").await, claim(&store, "c").await];
    leases.sort_by_key(|lease| lease.address);
    let mut vandal = database.beside().await;
    run(&mut vandal, &table, "SET check_constraint_checks = 0").await;
    let damage = format!("UPDATE `{table}` SET attempt = -1 WHERE address = ?");
    let damage = sqlx::query(AssertSqlSafe(damage)).bind(leases[1].address.as_bytes().as_slice());
    damage.execute(&mut vandal).await.unwrap();

    let error = store.list(Select::All, Some(&leases[0].address), 10).await.unwrap_err();
    let at = error.source().unwrap().downcast_ref::<CorruptRecord>().unwrap().address.unwrap();
    assert_eq!(at, leases[1].address);
    let rest = store.list(Select::All, Some(&at), 10).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].0, leases[2].address);
}

#[tokio::test]
async fn a_fence_no_column_can_hold_resolves_nothing() {
    let Some(database) = Database::reach() else { return };
    let (store, _) = database.store().await;
    let lease = claim(&store, "k").await;
    let _ = store.release(&lease, Release::Unknown).await.unwrap();
    let settled = store.resolve(&lease.address, Fence::from_u64(u64::MAX), &Resolution::NotApplied).await;
    assert!(matches!(settled.unwrap(), idempotency_core::Settled::Fenced(Some(_))));
}
