//! Stores against their servers: `stores throughput|crowd postgres|mysql|redis`, the server where `scripts/services` says.

use std::env;

use idempotency_benches::stores::{
    BoxError, Ours, crowd,
    floor::{PostgresFloor, RedisFloor, RedisScriptFloor},
    throughput,
};
use idempotency_store_mysql::MySqlStore;
use idempotency_store_postgres::PostgresStore;
use idempotency_store_redis::RedisStore;
use sqlx::postgres::PgPoolOptions;

const USAGE: &str = "stores throughput postgres|redis, or stores crowd postgres|mysql|redis";

/// Connections of a pool: enough that 128 callers seldom wait, and few enough for two cores.
const CONNECTIONS: u32 = 16;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["throughput", "postgres"] => {
            let pool = PgPoolOptions::new().max_connections(CONNECTIONS).test_before_acquire(false);
            let pool = pool.connect(&url("DATABASE_URL")?).await?;
            let store = PostgresStore::builder().table(name("throughput")).open(pool.clone()).await?;
            throughput::compare("postgres", PostgresFloor::new(pool).await?, Ours(store)).await
        }
        ["throughput", "redis"] => {
            let url = url("REDIS_URL")?;
            let store = RedisStore::builder().prefix(name("throughput")).connect(&url).await?;
            throughput::compare("redis", RedisFloor::new(&url).await?, Ours(store)).await?;
            let scripts = RedisScriptFloor::new(&url).await?;
            throughput::compare("least scripts", RedisFloor::new(&url).await?, scripts).await
        }
        ["crowd", "postgres"] => {
            let url = url("DATABASE_URL")?;
            let open = |table: &str| PostgresStore::builder().table(name(table)).connections(64);
            crowd::measure(open("few").connect(&url).await?, open("many").connect(&url).await?).await
        }
        ["crowd", "mysql"] => {
            let url = url("MYSQL_URL")?;
            let open = |table: &str| MySqlStore::builder().table(name(table)).connections(64);
            crowd::measure(open("few").connect(&url).await?, open("many").connect(&url).await?).await
        }
        ["crowd", "redis"] => {
            // In databases of their own: all keys of one stand in one table, whatever their prefixes.
            let server = url("REDIS_URL")?;
            let [few, many] = [1, 2].map(|database| format!("{}/{database}", server.trim_end_matches('/')));
            let open = || RedisStore::builder().prefix(name("crowd"));
            crowd::measure(open().connect(&few).await?, open().connect(&many).await?).await
        }
        _ => Err(USAGE.into()),
    }
}

fn url(variable: &str) -> Result<String, BoxError> {
    env::var(variable).map_err(|_| format!("{variable} is not set: eval \"$(scripts/services up)\"").into())
}

/// A table or a prefix that no other run has.
fn name(of: &str) -> String {
    format!("bench_{of}_{}", std::process::id())
}
