//! Several processes on one server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_core::{Claim, Store};
use idempotency_store_contract::processes::{Other, as_other, block_on, meet_the_others, race, race_on};
use idempotency_store_redis::RedisStore;
use scene::{Records, bid, builder, operation};

/// What another process is told: `URL PREFIX`.
fn place(records: &Records) -> String {
    format!("{} {}", records.url(), records.prefix())
}

async fn store(place: &str) -> RedisStore {
    let (url, prefix) = place.split_once(' ').unwrap();
    builder().prefix(prefix).connect(url).await.unwrap()
}

/// How many keys are raced for.
const KEYS: u8 = 20;

#[test]
fn one_of_fifty_claimers_in_four_processes_is_granted_each_key() {
    if let Some(place) = as_other() {
        return block_on(async { race_on(store(&place).await, KEYS).await });
    }
    let Some(records) = Records::on_the_server() else { return };
    race("one_of_fifty_claimers_in_four_processes_is_granted_each_key", &place(&records), KEYS);
}

#[test]
fn a_killed_process_keeps_what_it_was_granted() {
    if let Some(place) = as_other() {
        return block_on(async {
            scene::claim(&store(&place).await, "theirs").await;
            meet_the_others();
        });
    }
    let Some(records) = Records::on_the_server() else { return };
    Other::start("a_killed_process_keeps_what_it_was_granted", &place(&records)).kill();
    block_on(async {
        let store = records.store().await;
        let verdict = store.claim(&operation("theirs", b"body"), &bid()).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        scene::claim(&store, "mine").await;
    });
}
