//! The memory store under every law of the suite.

use std::sync::Arc;

use idempotency_core::clock::{ManualClock, Timestamp};
use idempotency_store_contract::{Bench, Candidate, Time, store_contract};
use idempotency_store_memory::MemoryStore;

mod on_a_manual_clock {
    use super::*;

    struct Memory;

    impl Candidate for Memory {
        type Store = MemoryStore;

        async fn open(&self) -> Bench<MemoryStore> {
            let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
            let bounds = MemoryStore::builder().max_bytes(16 << 20).clock(clock.clone());
            let store = bounds.build().expect("the bounds hold a record");
            Bench { store: Arc::new(store), time: Time::Manual(clock) }
        }
    }

    store_contract!(Memory);
}

mod on_the_hosts_clock {
    use super::*;

    struct Memory;

    impl Candidate for Memory {
        type Store = MemoryStore;

        async fn open(&self) -> Bench<MemoryStore> {
            Bench { store: Arc::new(MemoryStore::new()), time: Time::Real }
        }
    }

    store_contract!(Memory);
}
