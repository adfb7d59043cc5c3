//! The memory store under every law of the suite.

use std::sync::Arc;

use idempotency_core::clock::{ManualClock, Timestamp};
use idempotency_store_contract::{Bench, Candidate, Time, store_contract};
use idempotency_store_memory::MemoryStore;

struct Memory;

impl Candidate for Memory {
    type Store = MemoryStore;

    async fn open(&self) -> Bench<MemoryStore> {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
        let bounds = MemoryStore::builder().max_bytes(16 << 20).clock(clock.clone());
        Bench {
            store: Arc::new(bounds.build().expect("the bounds hold a record")),
            time: Time::Manual(clock),
        }
    }
}

store_contract!(Memory);
