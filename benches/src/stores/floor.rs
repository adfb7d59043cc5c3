//! The least that a server can be asked for to take a key and to put an answer there: what any store has to do.

use redis::aio::MultiplexedConnection;
use sqlx::PgPool;

use super::{BoxError, OUTCOME_BYTES, Pair};

/// As many bytes as a store keeps with a claim: a fingerprint, and a holder.
const CLAIM_BYTES: usize = 105 + 16;

const DAY_MS: usize = 86_400_000;

/// One `INSERT ... ON CONFLICT` and one `UPDATE`.
#[derive(Debug, Clone)]
pub struct PostgresFloor(PgPool);

impl PostgresFloor {
    /// Makes its table anew.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn new(pool: PgPool) -> Result<Self, BoxError> {
        sqlx::raw_sql(include_str!("../../sql/floor.sql")).execute(&pool).await?;
        Ok(Self(pool))
    }
}

impl Pair for PostgresFloor {
    async fn pair(&self) -> Result<(), BoxError> {
        let address = super::fresh_address();
        let taken = sqlx::query(include_str!("../../sql/floor_insert.sql"))
            .bind(address.as_bytes().as_slice())
            .bind(vec![b'c'; CLAIM_BYTES])
            .execute(&self.0)
            .await?;
        let put = sqlx::query(include_str!("../../sql/floor_update.sql"))
            .bind(address.as_bytes().as_slice())
            .bind(vec![b'a'; OUTCOME_BYTES])
            .execute(&self.0)
            .await?;
        if taken.rows_affected() + put.rows_affected() == 2 { Ok(()) } else { Err("a row is missing".into()) }
    }
}

/// One `SET NX` and one `SET`.
#[derive(Debug, Clone)]
pub struct RedisFloor(MultiplexedConnection);

impl RedisFloor {
    /// On a connection of its own.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn new(url: &str) -> Result<Self, BoxError> {
        Ok(Self(redis::Client::open(url)?.get_multiplexed_async_connection().await?))
    }
}

impl Pair for RedisFloor {
    async fn pair(&self) -> Result<(), BoxError> {
        let mut connection = self.0.clone();
        let key = [&b"floor:"[..], super::fresh_address().as_bytes()].concat();
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(vec![b'c'; CLAIM_BYTES]).arg("NX").arg("PX").arg(DAY_MS);
        let taken: Option<String> = set.query_async(&mut connection).await?;
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(vec![b'a'; CLAIM_BYTES + OUTCOME_BYTES]).arg("PX").arg(DAY_MS);
        let () = set.query_async(&mut connection).await?;
        taken.map(drop).ok_or_else(|| "a fresh key was taken".into())
    }
}

/// The least that keeps to the server's clock: a script that asks the time and the key before it sets it, and one that
/// does so before it puts an answer there. What these cost over `SET` is the price of scripts, not of what ours say.
#[derive(Debug, Clone)]
pub struct RedisScriptFloor {
    connection: MultiplexedConnection,
    take: String,
    put: String,
}

impl RedisScriptFloor {
    /// On a connection of its own, with its scripts loaded.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn new(url: &str) -> Result<Self, BoxError> {
        const TAKE: &str = "local time = redis.call('TIME') \
                            if redis.call('GET', KEYS[1]) then return 0 end \
                            redis.call('SET', KEYS[1], time[1] .. time[2] .. ARGV[1], 'PX', ARGV[2]) return 1";
        const PUT: &str = "local time = redis.call('TIME') \
                           if not redis.call('GET', KEYS[1]) then return 0 end \
                           redis.call('SET', KEYS[1], time[1] .. time[2] .. ARGV[1], 'PX', ARGV[2]) return 1";
        let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        let take = redis::cmd("SCRIPT").arg("LOAD").arg(TAKE).query_async(&mut connection).await?;
        let put = redis::cmd("SCRIPT").arg("LOAD").arg(PUT).query_async(&mut connection).await?;
        Ok(Self { connection, take, put })
    }

    async fn run(&self, script: &str, key: &[u8], bytes: usize) -> Result<i64, BoxError> {
        let mut command = redis::cmd("EVALSHA");
        command.arg(script).arg(1).arg(key).arg(vec![b'a'; bytes]).arg(DAY_MS);
        Ok(command.query_async(&mut self.connection.clone()).await?)
    }
}

impl Pair for RedisScriptFloor {
    async fn pair(&self) -> Result<(), BoxError> {
        let key = [&b"script:"[..], super::fresh_address().as_bytes()].concat();
        let taken = self.run(&self.take, &key, CLAIM_BYTES).await?;
        let put = self.run(&self.put, &key, CLAIM_BYTES + OUTCOME_BYTES).await?;
        if taken + put == 2 { Ok(()) } else { Err("a key was taken, or is missing".into()) }
    }
}
