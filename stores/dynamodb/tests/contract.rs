//! The DynamoDB store under every law of the suite, on a clock the laws move and on the service's own.
//!
//! The emulator takes some 30 ms for a call, so a history has 500 steps and no more. Leases are taken over when they lapse here: the margin is tested beside the store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use idempotency_core::Store;
use idempotency_store_contract::{Bench, Candidate, Expiry, Time, store_contract};
use idempotency_store_dynamodb::DynamoDbStore;
use scene::{Place, manual_clock, operation};

const STEPS: u32 = 500;

struct OnManualClock(Place);

impl Candidate for OnManualClock {
    type Store = DynamoDbStore;

    async fn open(&self) -> Bench<DynamoDbStore> {
        let clock = manual_clock(0);
        let builder = self.0.builder().clock(clock.clone()).takeover_margin(Duration::ZERO);
        Bench { store: Arc::new(builder.open().await.unwrap()), time: Time::Manual(clock) }
    }

    fn expiry(&self) -> Expiry {
        Expiry::Native
    }

    fn steps(&self) -> u32 {
        STEPS
    }

    fn most_steps(&self) -> u32 {
        STEPS
    }
}

struct OnServiceClock(Place);

impl Candidate for OnServiceClock {
    type Store = DynamoDbStore;

    /// Answers around the turn of a second have shown the time to a few milliseconds before the law begins.
    async fn open(&self) -> Bench<DynamoDbStore> {
        let store = self.0.builder().takeover_margin(Duration::ZERO).open().await.unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1_100) {
            let _ = store.look(&operation("nobody's", b"")).await.unwrap();
        }
        Bench { store: Arc::new(store), time: Time::Real }
    }

    fn expiry(&self) -> Expiry {
        Expiry::Native
    }

    fn steps(&self) -> u32 {
        STEPS
    }

    fn most_steps(&self) -> u32 {
        STEPS
    }

    fn clock_steps(&self) -> Duration {
        Duration::from_millis(50)
    }
}

mod manual_clock {
    use super::*;

    store_contract!(match Place::find() {
        Some(place) => OnManualClock(place),
        None => return Ok(()),
    });
}

mod service_clock {
    use super::*;

    store_contract!(match Place::find() {
        Some(place) => OnServiceClock(place),
        None => return Ok(()),
    });
}
