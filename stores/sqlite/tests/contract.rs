//! The SQLite store under every law of the suite, on a clock the laws move and on the database's own.
//!
//! Both run on a file, synced at every commit as in service. The history on the laws' clock takes 20,000 steps, since
//! each is a transaction that passes through two threads; `STORE_CONTRACT_STEPS=100000` takes the full length.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use idempotency_core::clock::{ManualClock, Timestamp};
use idempotency_store_contract::{Bench, Candidate, Time, store_contract};
use idempotency_store_sqlite::{SqliteStore, SqliteStoreBuilder};
use tempfile::TempDir;

/// Opens each bench on a file of its own, in a directory that is gone after the test.
struct Files {
    directory: TempDir,
    opened: AtomicUsize,
}

impl Files {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), opened: AtomicUsize::new(0) }
    }

    async fn open(&self, builder: SqliteStoreBuilder) -> Arc<SqliteStore> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        Arc::new(builder.open(self.directory.path().join(format!("{number}.db"))).await.unwrap())
    }
}

struct OnManualClock(Files);

impl Candidate for OnManualClock {
    type Store = SqliteStore;

    async fn open(&self) -> Bench<SqliteStore> {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
        let store = self.0.open(SqliteStore::builder().clock(clock.clone())).await;
        Bench { store, time: Time::Manual(clock) }
    }

    fn steps(&self) -> u32 {
        20_000
    }
}

struct OnItsOwnClock(Files);

impl Candidate for OnItsOwnClock {
    type Store = SqliteStore;

    async fn open(&self) -> Bench<SqliteStore> {
        Bench { store: self.0.open(SqliteStore::builder()).await, time: Time::Real }
    }
}

mod manual_clock {
    use super::*;
    store_contract!(OnManualClock(Files::new()));
}

mod own_clock {
    use super::*;
    store_contract!(OnItsOwnClock(Files::new()));
}
