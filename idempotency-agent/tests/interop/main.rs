//! Workers in Rust and in Python on one table and under one prefix.
//!
//! `scripts/interop` gives this what it needs: `REPLYONCE_PYTHON`, an interpreter that has replyonce 0.1.3 with its
//! clients, and the servers. Without them it says that nothing was run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::env;

use idempotency_agent::Ledger;
use idempotency_core::{LedgerStore, Sheets};
use idempotency_store_postgres::PostgresLedger;
use idempotency_store_redis::RedisStore;
use serde_json::Value;
use sqlx::PgPool;

mod peer;
mod rounds;

use peer::Peer;

const ROUNDS: u32 = 20;

/// A Python that has replyonce, if there is one.
fn python() -> Option<String> {
    let python = env::var("REPLYONCE_PYTHON").ok();
    if python.is_none() {
        eprintln!("not run: REPLYONCE_PYTHON names no interpreter, see scripts/interop");
    }
    python
}

fn name(of: &str) -> String {
    format!("interop_{of}_{}", std::process::id())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_postgres_table() {
    let Some(python) = python() else { return };
    let url = env::var("DATABASE_URL").unwrap();
    let table = name("scopes");
    let pool = PgPool::connect(&url).await.unwrap();
    // Python makes the table; Rust finds it made.
    let peer = Peer::start(&python, &["postgres", &url, &table]).await;
    let builder = PostgresLedger::builder().replyonce_compatible().table(&table);
    let store = builder.patience(std::time::Duration::from_secs(60)).open(pool.clone()).await.unwrap();
    play(peer, Ledger::new(store)).await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("DROP TABLE \"{table}\""))).execute(&pool).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_redis_prefix() {
    let Some(python) = python() else { return };
    let url = env::var("REDIS_URL").unwrap();
    let prefix = name("prefix");
    let store =
        RedisStore::builder().patience(std::time::Duration::from_secs(60)).connect(&url).await.unwrap();
    let store = store.ledger().replyonce_compatible().prefix(&prefix);
    let peer = Peer::start(&python, &["redis", &url, &prefix]).await;
    play(peer, Ledger::new(store)).await;
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{prefix}:*")).query(&mut connection).unwrap();
    assert!(keys.len() >= ROUNDS as usize);
    redis::cmd("DEL").arg(keys).exec(&mut connection).unwrap();
}

async fn play<S: LedgerStore>(mut peer: Peer, ledger: Ledger<S>) {
    for round in 0..ROUNDS {
        let scope = format!("conversation {round} é😀");
        rounds::race(&mut peer, &ledger, &scope).await;
        rounds::redelivery(&mut peer, &ledger, &scope, round).await;
        rounds::doubt(&mut peer, &ledger, &scope, round).await;
        rounds::the_same_history(&mut peer, &ledger, &scope).await;
    }
    println!("{ROUNDS} rounds");
}

/// The scope's document as it stands in the store.
async fn document<S: LedgerStore>(ledger: &Ledger<S>, scope: &str) -> Value {
    let (folio, _) = ledger.store().read(scope, Sheets::All).await.unwrap();
    serde_json::from_str(&folio.head.unwrap()).unwrap()
}
