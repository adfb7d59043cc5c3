//! The ledger in a file under every law of its suite, and what it shares with the store beside it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use idempotency_core::{LedgerStore, Motion, Revision, Sheets};
use idempotency_store_contract::{ledger::LedgerCandidate, ledger_contract};
use idempotency_store_sqlite::{SqliteLedger, SqliteStore};
use tempfile::TempDir;

struct Sqlite(TempDir);

impl LedgerCandidate for Sqlite {
    type Store = SqliteLedger;

    async fn open(&self) -> SqliteLedger {
        SqliteStore::open(self.0.path().join("ledger.db")).await.unwrap().ledger().await.unwrap()
    }
}

ledger_contract!(Sqlite(TempDir::new().unwrap()));

#[tokio::test]
async fn what_one_process_wrote_another_reads() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("ledger.db");
    let first = SqliteStore::open(&path).await.unwrap().ledger().await.unwrap();
    let revision = || Revision { head: "{}".to_owned(), sheets: [].into(), settled: true };
    first.transact("scope", &[], |_, _| Motion::Write(revision(), ())).await.unwrap();
    let second = SqliteStore::open(&path).await.unwrap().ledger().await.unwrap();
    let (folio, _) = second.read("scope", Sheets::All).await.unwrap();
    assert_eq!(folio.head.as_deref(), Some("{}"));
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_the_file_to_others() {
    let directory = TempDir::new().unwrap();
    let ledger = SqliteStore::open(directory.path().join("ledger.db")).await.unwrap().ledger().await.unwrap();
    let revision = || Revision { head: "{}".to_owned(), sheets: [].into(), settled: true };
    for polls in 0..6 {
        let mut call = Box::pin(ledger.transact("scope", &[], |_, _| Motion::Write(revision(), ())));
        for _ in 0..polls {
            tokio::select! {
                biased;
                _ = &mut call => break,
                () = tokio::task::yield_now() => {}
            }
        }
        drop(call);
        ledger.transact("scope", &[], |_, _| Motion::Write(revision(), ())).await.unwrap();
    }
}
