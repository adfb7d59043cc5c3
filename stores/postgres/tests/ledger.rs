//! The ledger in PostgreSQL under every law of its suite, in tables of its own and in the table shared with others.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use idempotency_core::{LedgerLayout, LedgerStore, Motion, Revision, Sheets};
use idempotency_services::Server;
use idempotency_store_contract::{ledger::LedgerCandidate, ledger_contract};
use idempotency_store_postgres::{OpenError, PostgresLedger};
use sqlx::{AssertSqlSafe, PgPool, postgres::PgPoolOptions};

/// A table of a test's own.
struct Postgres {
    url: String,
    table: String,
    layout: LedgerLayout,
}

impl Postgres {
    fn reach(layout: LedgerLayout) -> Option<Self> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let table = format!("ledger_test_{}_{number}", std::process::id());
        Some(Self { url: Server::Postgres.url()?, table, layout })
    }

    async fn pool(&self) -> PgPool {
        let pool = PgPoolOptions::new().max_connections(10).acquire_timeout(Duration::from_secs(30));
        pool.connect(&self.url).await.unwrap()
    }
}

impl LedgerCandidate for Postgres {
    type Store = PostgresLedger;

    async fn open(&self) -> PostgresLedger {
        let builder = PostgresLedger::builder();
        let builder =
            if self.layout == LedgerLayout::Whole { builder.replyonce_compatible() } else { builder };
        let builder = builder.table(&self.table).patience(Duration::from_secs(30));
        builder.open(self.pool().await).await.unwrap()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let (url, table) = (self.url.clone(), self.table.clone());
        let drop_tables = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let pool = PgPool::connect(&url).await.unwrap();
                let drop = format!("DROP TABLE IF EXISTS \"{table}_sheets\", \"{table}\"");
                sqlx::raw_sql(AssertSqlSafe(drop)).execute(&pool).await.unwrap();
            });
        };
        std::thread::spawn(drop_tables).join().unwrap();
    }
}

/// Where there is no server, and need not be, a test ends here.
macro_rules! table {
    ($layout:expr) => {
        match Postgres::reach($layout) {
            Some(table) => table,
            None => return Ok(()),
        }
    };
}

mod whole {
    use super::*;
    ledger_contract!((table!(LedgerLayout::Whole)));
}

mod split {
    use super::*;
    ledger_contract!((table!(LedgerLayout::Split)));
}

/// What others write while a law decides on a blank scope is what it then decides on. (The original takes a lost insert
/// for one that another worker's row stands for, and answers although that row may be gone again.)
#[tokio::test]
async fn a_scope_that_others_make_meanwhile_is_decided_on_anew() {
    let Some(table) = Postgres::reach(LedgerLayout::Whole) else { return };
    let ledger = table.open().await;
    let insert = format!("INSERT INTO \"{}\" (scope, state) VALUES ('s', '{{\"n\": 7}}')", table.table);
    let make_it = || {
        let (url, insert) = (table.url.clone(), insert.clone());
        let others = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let pool = PgPool::connect(&url).await.unwrap();
                sqlx::raw_sql(AssertSqlSafe(insert)).execute(&pool).await.unwrap();
            });
        });
        others.join().unwrap();
    };
    let mut found = Vec::new();
    let law = |folio: &idempotency_core::Folio, _| {
        if found.is_empty() {
            make_it();
        }
        found.push(folio.head.clone());
        Motion::Write(Revision { head: "{\"n\": 8}".to_owned(), sheets: [].into(), settled: true }, ())
    };
    ledger.transact("s", &[], law).await.unwrap();
    assert_eq!(found, [None, Some("{\"n\": 7}".to_owned())]);
    let (folio, _) = ledger.read("s", Sheets::All).await.unwrap();
    assert_eq!(folio.head.as_deref(), Some("{\"n\": 8}"), "what was answered stands");
}

#[tokio::test]
async fn a_name_that_is_none_is_refused() {
    let Some(table) = Postgres::reach(LedgerLayout::Whole) else { return };
    let opened = PostgresLedger::builder().table("a;b").open(table.pool().await).await;
    assert!(matches!(opened, Err(OpenError::Name)));
}
