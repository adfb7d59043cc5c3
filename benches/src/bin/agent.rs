//! Agents' effects among few and among many: `agent memory|sqlite|postgres|redis`, the server where `scripts/services` says.

use std::env;

use idempotency_benches::{agent, stores::BoxError};
use idempotency_store_memory::MemoryLedger;
use idempotency_store_postgres::PostgresLedger;
use idempotency_store_redis::RedisStore;
use idempotency_store_sqlite::SqliteStore;
use sqlx::PgPool;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let store = env::args().nth(1).unwrap_or_default();
    match store.as_str() {
        "memory" => agent::compare(&store, MemoryLedger::new()).await,
        "sqlite" => {
            let folder = tempfile::tempdir()?;
            let sqlite = SqliteStore::open(folder.path().join("ledger.db")).await?;
            agent::compare(&store, sqlite.ledger().await?).await
        }
        "postgres" => {
            let pool = PgPool::connect(&env::var("DATABASE_URL")?).await?;
            agent::compare(&store, PostgresLedger::builder().open(pool).await?).await
        }
        "redis" => agent::compare(&store, RedisStore::connect(&env::var("REDIS_URL")?).await?.ledger()).await,
        _ => Err("agent memory|sqlite|postgres|redis".into()),
    }
}
