//! The five guarantees, over random schedules of workers that crash, on every store.
//!
//! In memory time is simulated and a seed is a schedule; on other stores time is real, and a seed is what the workers try.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{sync::Arc, time::Duration};

use idempotency_agent::Policy;
use idempotency_core::{
    LedgerLayout, LedgerStore,
    clock::{Clock, Timestamp},
};
use idempotency_services::Server;
use idempotency_store_memory::MemoryLedger;
use idempotency_store_postgres::PostgresLedger;
use idempotency_store_redis::RedisStore;
use idempotency_store_sqlite::SqliteStore;

mod sizes;
mod witness;
mod workers;

use witness::Tally;

/// A clock that goes with the runtime's.
struct RuntimeClock(tokio::time::Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_767_225_600_000_000).plus(self.0.elapsed())
    }
}

fn policy(pending: Duration) -> Policy {
    Policy::new().pending(pending).lease(Duration::from_millis(150)).max_attempts(4)
}

/// Plays the schedules of some seeds on one store, each in a scope of its own, and says what happened in all.
async fn play<S: LedgerStore>(store: S, seeds: impl Iterator<Item = u64>, pending: Duration) -> Tally {
    let store = Arc::new(store);
    sizes::what_is_too_long_is_not_kept_and_stays_done(&store).await;
    let mut all = Tally::default();
    for seed in seeds {
        all += workers::schedule(Arc::clone(&store), &format!("scope {seed}"), seed, policy(pending)).await;
    }
    // Each kind of thing happened: nothing was proved of what did not.
    assert!(
        all.executed > 0 && all.replayed > 0 && all.lost > 0 && all.refused > 0 && all.crashed > 0,
        "{all:?}"
    );
    all
}

fn in_memory(layout: LedgerLayout) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let tally = runtime.block_on(async {
        let store =
            MemoryLedger::new().with_layout(layout).with_clock(RuntimeClock(tokio::time::Instant::now()));
        play(store, 0..40, Duration::from_millis(500)).await
    });
    println!("{tally:?}");
    assert!(tally.conversation_changed > 0 && tally.fenced > 0 && tally.reconciled > 0, "{tally:?}");
}

#[test]
fn in_memory_in_one_document() {
    in_memory(LedgerLayout::Whole);
}

#[test]
fn in_memory_in_a_head_and_sheets() {
    in_memory(LedgerLayout::Split);
}

#[tokio::test]
async fn in_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::builder().patience(Duration::from_secs(20));
    let store = store.open(directory.path().join("ledger.db")).await.unwrap().ledger().await.unwrap();
    play(store, 0..6, Duration::from_secs(1)).await;
}

#[tokio::test]
async fn in_postgres() {
    let Some(url) = Server::Postgres.url() else { return };
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    for (layout, compatible) in [("split", false), ("whole", true)] {
        let builder = PostgresLedger::builder();
        let builder = if compatible { builder.replyonce_compatible() } else { builder };
        let table = format!("guarantees_{layout}_{}", std::process::id());
        let store = builder.table(&table).patience(Duration::from_secs(30)).open(pool.clone()).await.unwrap();
        play(store, 0..4, Duration::from_secs(1)).await;
        let drop = format!("DROP TABLE IF EXISTS \"{table}_sheets\", \"{table}\"");
        sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(&pool).await.unwrap();
    }
}

#[tokio::test]
async fn in_redis() {
    let Some(url) = Server::Redis.url() else { return };
    let store = RedisStore::builder().patience(Duration::from_secs(30)).connect(&url).await.unwrap();
    let prefix = format!("guarantees-{}", std::process::id());
    play(store.ledger().prefix(&prefix), 0..4, Duration::from_secs(1)).await;
    play(
        store.ledger().replyonce_compatible().prefix(&format!("{prefix}-whole")),
        0..4,
        Duration::from_secs(1),
    )
    .await;
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{prefix}*")).query(&mut connection).unwrap();
    redis::cmd("DEL").arg(keys).exec(&mut connection).unwrap();
}
