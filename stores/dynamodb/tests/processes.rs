//! Several processes on one table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_core::{Claim, Store};
use idempotency_store_contract::processes::{
    Other, all_at_once, as_other, block_on, meet_the_others, race, race_on,
};
use scene::{Place, bid, claim, operation};

/// Where the other process finds its table.
fn place_of(table: &str) -> Place {
    Place::at(&Place::find().unwrap().url, table)
}

/// How many keys are raced for.
const KEYS: u8 = 3;

#[test]
fn one_of_fifty_claimers_in_four_processes_is_granted_each_key() {
    if let Some(place) = as_other().as_deref().map(place_of) {
        return block_on(async { race_on(place.builder().open().await.unwrap(), KEYS).await });
    }
    let Some(place) = Place::find() else { return };
    block_on(place.open());
    race("one_of_fifty_claimers_in_four_processes_is_granted_each_key", &place.table, KEYS);
}

#[test]
fn many_processes_may_ensure_a_table_at_once() {
    if let Some(place) = as_other().as_deref().map(place_of) {
        meet_the_others();
        block_on(place.open());
        return;
    }
    let Some(place) = Place::find() else { return };
    all_at_once(4, "many_processes_may_ensure_a_table_at_once", &place.table);
    block_on(async { claim(&place.open().await, "k").await });
}

#[test]
fn a_killed_process_keeps_what_it_was_granted() {
    if let Some(place) = as_other().as_deref().map(place_of) {
        block_on(async { claim(&place.open().await, "theirs").await });
        return meet_the_others();
    }
    let Some(place) = Place::find() else { return };
    Other::start("a_killed_process_keeps_what_it_was_granted", &place.table).kill();
    block_on(async {
        let store = place.open().await;
        let verdict = store.claim(&operation("theirs", b"body"), &bid()).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        claim(&store, "mine").await;
    });
}
