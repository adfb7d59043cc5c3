//! The race of several processes, seen to catch a store that they do not share.

use std::panic::catch_unwind;

use idempotency_store_contract::processes::{as_other, block_on, race, race_on};
use idempotency_store_memory::MemoryStore;

#[test]
fn a_store_that_its_processes_do_not_share_loses_the_race() {
    if as_other().is_some() {
        return block_on(race_on(MemoryStore::new(), 2));
    }
    let test = "a_store_that_its_processes_do_not_share_loses_the_race";
    let lost = catch_unwind(|| race(test, "in each process", 2)).expect_err("each process grants each key");
    let said = lost.downcast_ref::<String>().map_or("", String::as_str);
    assert!(said.contains("left: 4") && said.contains("key 0"), "{said}");
}
