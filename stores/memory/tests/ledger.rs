//! The ledger in memory under every law of its suite, in both layouts, and its bounds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{sync::Arc, time::Duration};

use idempotency_core::{
    Fate, LedgerLayout, LedgerStore, Motion, Revision, Sheets, StoreError, StoreErrorKind,
    clock::{ManualClock, Timestamp},
};
use idempotency_store_contract::{ledger::LedgerCandidate, ledger_contract};
use idempotency_store_memory::MemoryLedger;

struct Memory(LedgerLayout);

impl LedgerCandidate for Memory {
    type Store = MemoryLedger;

    async fn open(&self) -> MemoryLedger {
        MemoryLedger::new().with_layout(self.0)
    }
}

mod whole {
    use super::*;

    ledger_contract!(Memory(LedgerLayout::Whole));
}

mod split {
    use super::*;

    ledger_contract!(Memory(LedgerLayout::Split));
}

const DAY: Duration = Duration::from_secs(86_400);

/// A ledger with room for two scopes, and its clock.
fn small() -> (MemoryLedger, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_767_225_600_000_000)));
    (MemoryLedger::new().with_clock(Arc::clone(&clock)).max_scopes(2), clock)
}

async fn write(ledger: &MemoryLedger, scope: &str, bytes: usize, settled: bool) -> Result<(), StoreError> {
    let revision = || Revision { head: "x".repeat(bytes), sheets: [].into(), settled };
    ledger.transact(scope, &[], |_, _| Motion::Write(revision(), ())).await
}

async fn stands(ledger: &MemoryLedger, scope: &str) -> bool {
    ledger.read(scope, Sheets::All).await.unwrap().0.head.is_some()
}

fn is_full(written: Result<(), StoreError>) -> bool {
    matches!(written, Err(error) if error.kind == StoreErrorKind::Full && error.fate == Fate::NotApplied)
}

#[tokio::test]
async fn a_full_ledger_refuses_a_new_scope_and_lets_those_that_stand_go_on() {
    let (ledger, clock) = small();
    write(&ledger, "pending", 2, false).await.unwrap();
    write(&ledger, "settled", 2, true).await.unwrap();
    assert!(is_full(write(&ledger, "new", 2, false).await));
    assert!(!stands(&ledger, "new").await);
    write(&ledger, "pending", 3, false).await.unwrap();
    // What is settled is remembered for its time, and what is pending whatever the time.
    clock.advance(DAY * 29);
    assert!(is_full(write(&ledger, "new", 2, false).await));
    clock.advance(DAY * 2);
    write(&ledger, "new", 2, false).await.unwrap();
    assert!(stands(&ledger, "pending").await && stands(&ledger, "new").await);
    assert!(!stands(&ledger, "settled").await);
    clock.advance(DAY * 1_000);
    assert!(is_full(write(&ledger, "another", 2, true).await));
}

#[tokio::test]
async fn bytes_are_bounded_and_counted_back_when_they_go() {
    let (ledger, _) = small();
    let ledger = ledger.max_scopes(100).max_bytes(10_000);
    write(&ledger, "a", 6_000, true).await.unwrap();
    assert!(is_full(write(&ledger, "b", 6_000, true).await));
    // A scope that stands goes on until twice as much is taken, and may always become smaller.
    write(&ledger, "a", 15_000, true).await.unwrap();
    assert!(is_full(write(&ledger, "a", 25_000, true).await));
    assert!(is_full(write(&ledger, "b", 1, true).await));
    write(&ledger, "a", 3_000, true).await.unwrap();
    write(&ledger, "b", 3_000, true).await.unwrap();
    for _ in 0..10 {
        assert_eq!(ledger.forget(Duration::ZERO, 2).await.unwrap(), 2);
        write(&ledger, "a", 4_000, true).await.unwrap();
        write(&ledger, "b", 4_000, true).await.unwrap();
    }
}

#[tokio::test]
async fn sheets_count_and_are_counted_back() {
    let (ledger, _) = small();
    let ledger = ledger.max_bytes(20_000);
    write(&ledger, "a", 10, true).await.unwrap();
    for round in 0..10 {
        let sheet = |text: Option<usize>| [("e:1".to_owned(), text.map(|bytes| "x".repeat(bytes)))].into();
        for text in [Some(15_000), Some(16_000), None] {
            let revision = || Revision { head: "{}".to_owned(), sheets: sheet(text), settled: true };
            let written = ledger.transact("a", &[], |_, _| Motion::Write(revision(), ())).await;
            written.unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
    }
    let much = || Revision {
        head: "{}".to_owned(),
        sheets: [("e:1".to_owned(), Some("x".repeat(50_000)))].into(),
        settled: true,
    };
    assert!(is_full(ledger.transact("a", &[], |_, _| Motion::Write(much(), ())).await));
}
