//! The Redis store under every law of the suite, on a server and on a cluster, whose clocks cannot be moved.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::sync::{Arc, Mutex};

use idempotency_store_contract::{Bench, Candidate, Expiry, Time, store_contract};
use idempotency_store_redis::RedisStore;
use scene::Records;

/// Opens each bench on records of its own, which are gone after the test.
struct OnRecords {
    make: fn() -> Option<Records>,
    made: Mutex<Vec<Records>>,
}

impl Candidate for OnRecords {
    type Store = RedisStore;

    async fn open(&self) -> Bench<RedisStore> {
        let records = (self.make)().unwrap();
        let store = Arc::new(records.store().await);
        self.made.lock().unwrap().push(records);
        Bench { store, time: Time::Real }
    }

    fn expiry(&self) -> Expiry {
        Expiry::Native
    }
}

/// Where there is no server, and need not be, a test ends here.
macro_rules! records {
    ($make:path) => {
        match $make() {
            Some(_) => OnRecords { make: $make, made: Mutex::default() },
            None => return Ok(()),
        }
    };
}

mod server {
    use super::*;
    store_contract!(records!(Records::on_the_server));
}

mod cluster {
    use super::*;
    store_contract!(records!(Records::on_the_cluster));
}
