//! The servers that tests need: where they are.
//!
//! `scripts/services up` starts them and prints the variables that [`Server::url`] reads; whoever has servers of their
//! own sets those instead.

use std::env;

/// A server that tests need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// PostgreSQL, at `DATABASE_URL`.
    Postgres,
    /// PgBouncer in transaction mode before that PostgreSQL, at `PGBOUNCER_URL`.
    PgBouncer,
    /// MySQL or MariaDB, at `MYSQL_URL`.
    MySql,
    /// One Redis, at `REDIS_URL`.
    Redis,
    /// Three Redis that are a cluster, one of them at `REDIS_CLUSTER_URL`.
    RedisCluster,
    /// DynamoDB or an emulator, at `DYNAMODB_ENDPOINT`.
    DynamoDb,
}

impl Server {
    /// The variable that says where the server is.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "DATABASE_URL",
            Self::PgBouncer => "PGBOUNCER_URL",
            Self::MySql => "MYSQL_URL",
            Self::Redis => "REDIS_URL",
            Self::RedisCluster => "REDIS_CLUSTER_URL",
            Self::DynamoDb => "DYNAMODB_ENDPOINT",
        }
    }

    /// Where the server is. `None`, said aloud, when nobody said so: the test that asks is then not run.
    ///
    /// # Panics
    /// When nobody said so and `IDEMPOTENCY_REQUIRE_STORES` is set: where it is, a test left out is a failure.
    pub fn url(self) -> Option<String> {
        let variable = self.variable();
        let url = env::var(variable).ok().filter(|url| !url.is_empty());
        if url.is_none() {
            assert!(
                env::var_os("IDEMPOTENCY_REQUIRE_STORES").is_none(),
                "{variable} is not set, and IDEMPOTENCY_REQUIRE_STORES demands every server: run scripts/services up"
            );
            eprintln!(
                "NOT RUN: {variable} is not set; run scripts/services up, or set it to a server of your own"
            );
        }
        url
    }
}
