//! The servers that tests need: where they are, and private ones to kill.
//!
//! `scripts/services up` starts them and prints the variables that [`Server::url`] reads; whoever has servers of their
//! own sets those instead. A test that kills its server starts one of its own, a [`PostgresServer`], a
//! [`MariaDbServer`] or a [`RedisServer`]: a process on a free port, with its data in a temporary folder.

use std::{env, ops::Range, path::PathBuf};

mod mariadb;
mod postgres;
mod program;
mod redis;
mod running;

pub use mariadb::MariaDbServer;
pub use postgres::{PostgresServer, Replication};
pub use redis::{Persistence, RedisServer};

/// The program that gives another program another clock; `None`, said aloud, when it is not installed.
///
/// # Panics
/// When it is not installed and `IDEMPOTENCY_REQUIRE_STORES` is set: where it is, a test left out is a failure.
pub fn faketime() -> Option<PathBuf> {
    program::find(["faketime"]).map(|[faketime]| faketime)
}

/// What databases are called here, and in MariaDB their user and its password.
const DATABASE: &str = "idempotency";

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

    /// Where the server is, as `host:port`, without the rest of its URL; `None` as [`url`](Self::url) says.
    ///
    /// # Panics
    /// Like [`url`](Self::url).
    pub fn address(self) -> Option<String> {
        self.url().map(|url| format!("{}:{}", host_of(&url), port_of(&url).unwrap_or(self.standard_port())))
    }

    /// The server's URL with `address`, `host:port`, in the place of its own: for a proxy before it.
    ///
    /// # Panics
    /// Like [`url`](Self::url).
    pub fn url_at(self, address: &str) -> Option<String> {
        self.url().map(|url| {
            let place = authority(&url);
            format!("{}{address}{}", &url[..place.start], &url[place.end..])
        })
    }

    /// The port of a URL that names none.
    const fn standard_port(self) -> u16 {
        match self {
            Self::Postgres => 5432,
            Self::PgBouncer => 6432,
            Self::MySql => 3306,
            Self::Redis | Self::RedisCluster => 6379,
            Self::DynamoDb => 80,
        }
    }
}

/// Where `host:port` stands in a URL.
fn authority(url: &str) -> Range<usize> {
    let start = url.find("://").map_or(0, |scheme| scheme + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |path| start + path);
    let start = url[start..end].rfind('@').map_or(start, |user| start + user + 1);
    start..end
}

fn port_of(url: &str) -> Option<u16> {
    url[authority(url)].rsplit_once(':').and_then(|(_, port)| port.parse().ok())
}

fn host_of(url: &str) -> &str {
    let address = &url[authority(url)];
    match address.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_every_kind_of_url() {
        for (url, host, port) in [
            ("postgres://me:p@ss@db.example:27101/records?sslmode=disable", "db.example", Some(27101)),
            ("redis://127.0.0.1:6380/", "127.0.0.1", Some(6380)),
            ("http://127.0.0.1:8000", "127.0.0.1", Some(8000)),
            ("mysql://me@db/records", "db", None),
            ("redis://[::1]", "[::1]", None),
            ("redis://[::1]:7000?db=1", "[::1]", Some(7000)),
        ] {
            assert_eq!((host_of(url), port_of(url)), (host, port), "{url}");
        }
    }
}
