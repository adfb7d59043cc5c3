//! Several processes on one table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{Claim, Store};
use idempotency_store_contract::processes::{
    Other, all_at_once, as_other, block_on, meet_the_others, race, race_on,
};
use idempotency_store_postgres::PostgresStore;
use scene::{Database, bid, claim, operation};

/// What another process is told: `URL SCHEMA`.
fn place(database: &Database) -> String {
    format!("{} {}", database.url(), database.schema())
}

async fn store(place: &str) -> PostgresStore {
    let (url, schema) = place.split_once(' ').unwrap();
    let builder = PostgresStore::builder().schema(schema).table("t").patience(Duration::from_secs(20));
    builder.connections(5).connect(url).await.unwrap()
}

/// How many keys are raced for.
const KEYS: u8 = 20;

#[test]
fn one_of_fifty_claimers_in_four_processes_is_granted_each_key_and_nobody_hears_an_error() {
    if let Some(place) = as_other() {
        return block_on(async { race_on(store(&place).await, KEYS).await });
    }
    let Some(database) = Database::reach() else { return };
    let test = "one_of_fifty_claimers_in_four_processes_is_granted_each_key_and_nobody_hears_an_error";
    race(test, &place(&database), KEYS);
}

#[test]
fn many_processes_may_make_the_tables_at_once() {
    if let Some(place) = as_other() {
        meet_the_others();
        return block_on(async {
            let key = format!("of {}", std::process::id());
            claim(&store(&place).await, &key).await;
        });
    }
    for _ in 0..3 {
        let Some(database) = Database::reach() else { return };
        let test = "many_processes_may_make_the_tables_at_once";
        all_at_once(6, test, &place(&database));
        block_on(async {
            let mut beside = database.beside().await;
            let versions = "SELECT count(*) FROM {s}.idempotency_schema WHERE version = 1";
            assert_eq!(database.number(&mut beside, "t", versions).await, 1);
            assert_eq!(database.number(&mut beside, "t", "SELECT count(*) FROM {t}").await, 6);
        });
    }
}

#[test]
fn a_killed_process_keeps_what_it_was_granted_and_no_lock() {
    if let Some(place) = as_other() {
        return block_on(async {
            claim(&store(&place).await, "theirs").await;
            let (url, schema) = place.split_once(' ').unwrap();
            let database = Database::at(url.to_owned());
            let mut unfinished = database.beside().await;
            let delete = format!("BEGIN; DELETE FROM {schema}.t");
            database.run(&mut unfinished, "t", &delete).await;
            meet_the_others();
        });
    }
    let Some(database) = Database::reach() else { return };
    Other::start("a_killed_process_keeps_what_it_was_granted_and_no_lock", &place(&database)).kill();
    block_on(async {
        let store = store(&place(&database)).await;
        let verdict = store.claim(&operation("theirs", b"body"), &bid()).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        claim(&store, "mine").await;
    });
}
