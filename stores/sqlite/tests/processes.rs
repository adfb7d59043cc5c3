//! Several processes on one file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::path::Path;

use idempotency_core::{Claim, Store};
use idempotency_store_contract::processes::{
    Other, all_at_once, as_other, block_on, meet_the_others, race, race_on,
};
use idempotency_store_sqlite::SqliteStore;
use scene::{beside, bid, claim, operation};
use tempfile::TempDir;

fn path_in(directory: &TempDir) -> String {
    directory.path().join("shop.db").to_str().unwrap().to_owned()
}

/// How many keys are raced for.
const KEYS: u8 = 20;

#[test]
fn one_of_fifty_claimers_in_four_processes_is_granted_each_key_and_nobody_hears_an_error() {
    if let Some(path) = as_other() {
        return block_on(async { race_on(SqliteStore::open(&path).await.unwrap(), KEYS).await });
    }
    let directory = tempfile::tempdir().unwrap();
    let test = "one_of_fifty_claimers_in_four_processes_is_granted_each_key_and_nobody_hears_an_error";
    race(test, &path_in(&directory), KEYS);
}

#[test]
fn a_writer_is_not_starved_by_a_busy_neighbour() {
    if let Some(path) = as_other() {
        return block_on(hog(&path));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    let mut neighbour = Other::start("a_writer_is_not_starved_by_a_busy_neighbour", &path);
    neighbour.go();
    neighbour.wait_for("hogging");
    block_on(async {
        let store = SqliteStore::open(&path).await.unwrap();
        for key in 0..20 {
            claim(&store, &format!("mine{key}")).await;
        }
    });
    neighbour.kill();
}

/// Writes without a pause until it is killed.
async fn hog(path: &str) {
    let store = SqliteStore::open(path).await.unwrap();
    meet_the_others();
    for key in 0_u64.. {
        let claims = [(); 4].map(|()| {
            let (store, op) = (store.clone(), operation(&format!("hog{key}"), b"body"));
            tokio::spawn(async move { store.claim(&op, &bid()).await })
        });
        for claim in claims {
            claim.await.unwrap().ok();
        }
        if key == 10 {
            println!("\nhogging");
        }
    }
}

#[test]
fn many_processes_may_open_a_new_file_at_once() {
    if let Some(path) = as_other() {
        meet_the_others();
        block_on(async { SqliteStore::open(&path).await.unwrap() });
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let path = format!("{}{round}", path_in(&directory));
        all_at_once(6, "many_processes_may_open_a_new_file_at_once", &path);
        let versions: Vec<i64> = block_on(async {
            let mut file = beside(Path::new(&path)).await;
            sqlx::query_scalar("SELECT version FROM idempotency_schema").fetch_all(&mut file).await.unwrap()
        });
        assert_eq!(versions, [1]);
    }
}

#[test]
fn a_killed_process_keeps_what_it_was_granted_and_no_lock() {
    if let Some(path) = as_other() {
        return block_on(async {
            let store = SqliteStore::open(&path).await.unwrap();
            claim(&store, "theirs").await;
            let mut unfinished = beside(Path::new(&path)).await;
            scene::run(&mut unfinished, "BEGIN IMMEDIATE; DELETE FROM idempotency_records").await;
            meet_the_others();
        });
    }
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    Other::start("a_killed_process_keeps_what_it_was_granted_and_no_lock", &path).kill();
    block_on(async {
        let store = SqliteStore::open(&path).await.unwrap();
        let verdict = store.claim(&operation("theirs", b"body"), &bid()).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        claim(&store, "mine").await;
    });
}
