//! Several processes on one table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_core::{Claim, Store};
use idempotency_store_contract::processes::{
    Other, all_at_once, as_other, block_on, meet_the_others, race, race_on,
};
use scene::{Database, bid, claim, operation, run};
use sqlx::AssertSqlSafe;

/// How many keys are raced for.
const KEYS: u8 = 20;

#[test]
fn one_of_fifty_claimers_in_four_processes_is_granted_each_key_and_nobody_hears_an_error() {
    if let Some(table) = as_other() {
        return block_on(async { race_on(Database::reach().unwrap().store_on(&table).await, KEYS).await });
    }
    let Some(database) = Database::reach() else { return };
    let test = "one_of_fifty_claimers_in_four_processes_is_granted_each_key_and_nobody_hears_an_error";
    race(test, &database.table(), KEYS);
}

#[test]
fn many_processes_may_make_the_table_at_once() {
    if let Some(tables) = as_other() {
        meet_the_others();
        return block_on(async {
            let database = Database::reach().unwrap();
            for table in tables.split(' ') {
                claim(&database.store_on(table).await, &format!("k{}", std::process::id())).await;
            }
        });
    }
    let Some(database) = Database::reach() else { return };
    let tables = [(); 4].map(|()| database.table());
    all_at_once(6, "many_processes_may_make_the_table_at_once", &tables.join(" "));
    block_on(async {
        let mut beside = database.beside().await;
        for table in &tables {
            let version = format!("SELECT version FROM idempotency_schema WHERE records = '{table}'");
            let versions: Vec<i64> =
                sqlx::query_scalar(AssertSqlSafe(version)).fetch_all(&mut beside).await.unwrap();
            assert_eq!(versions, [1]);
            let records = format!("SELECT COUNT(*) FROM `{table}`");
            let records: i64 =
                sqlx::query_scalar(AssertSqlSafe(records)).fetch_one(&mut beside).await.unwrap();
            assert_eq!(records, 6);
        }
    });
}

#[test]
fn a_killed_process_keeps_what_it_was_granted_and_no_lock() {
    if let Some(table) = as_other() {
        return block_on(async {
            let database = Database::reach().unwrap();
            let store = database.store_on(&table).await;
            claim(&store, "theirs").await;
            let mut unfinished = database.beside().await;
            run(&mut unfinished, &table, "BEGIN; DELETE FROM {t}").await;
            meet_the_others();
        });
    }
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    Other::start("a_killed_process_keeps_what_it_was_granted_and_no_lock", &table).kill();
    block_on(async {
        let store = database.store_on(&table).await;
        let verdict = store.claim(&operation("theirs", b"body"), &bid()).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        claim(&store, "mine").await;
    });
}
