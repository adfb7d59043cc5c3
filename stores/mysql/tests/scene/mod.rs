//! What the tests of this crate share: a server, tables that are gone after a test, operations and bids.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use idempotency_core::{
    Address, Bid, Claim, Door, Fingerprint, Holder, Keep, Key, Lease, Media, OnLapse, Operation, Outcome,
    Part, Scope, Store,
};
use idempotency_services::Server;
use idempotency_store_contract::processes::block_on;
use idempotency_store_mysql::{MySqlStore, MySqlStoreBuilder};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, MySqlPool, mysql::MySqlPoolOptions};

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// What a store of a test is opened by, with patience for a busy machine.
pub(crate) fn builder() -> MySqlStoreBuilder {
    MySqlStore::builder().patience(Duration::from_secs(30))
}

/// A database, and the tables a test has in it: they are dropped with this.
pub(crate) struct Database {
    url: String,
    tables: Mutex<Vec<String>>,
}

impl Database {
    /// The database of `MYSQL_URL`, if there is one.
    pub(crate) fn reach() -> Option<Self> {
        Some(Self { url: Server::MySql.url()?, tables: Mutex::default() })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The name of a table that nobody else has.
    pub(crate) fn table(&self) -> String {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let table =
            format!("idempotency_test_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        self.tables.lock().unwrap().push(table.clone());
        table
    }

    /// A store on a table of its own, and that table.
    pub(crate) async fn store(&self) -> (MySqlStore, String) {
        let table = self.table();
        (self.store_on(&table).await, table)
    }

    pub(crate) async fn store_on(&self, table: &str) -> MySqlStore {
        builder().table(table).connect(&self.url).await.unwrap()
    }

    /// A connection of the application's own.
    pub(crate) async fn beside(&self) -> MySqlConnection {
        MySqlConnection::connect(&self.url).await.unwrap()
    }

    /// A pool of the application's own, whose connections begin with `set`.
    pub(crate) async fn pool(&self, set: &'static str) -> MySqlPool {
        MySqlPoolOptions::new()
            .max_connections(50)
            .after_connect(move |connection, _| {
                Box::pin(async move { connection.execute(sqlx::raw_sql(set)).await.map(drop) })
            })
            .connect(&self.url)
            .await
            .unwrap()
    }

    /// A store on a table of its own and on such a pool.
    pub(crate) async fn store_on_pool(&self, builder: MySqlStoreBuilder, set: &'static str) -> MySqlStore {
        builder.table(self.table()).open(self.pool(set).await).await.unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let tables = std::mem::take(&mut *self.tables.lock().unwrap());
        let url = self.url.clone();
        // A test may be async, and nothing can be awaited here.
        let dropped = std::thread::spawn(move || {
            block_on(async {
                let mut connection = MySqlConnection::connect(&url).await.unwrap();
                for table in tables {
                    let drop = format!("DROP TABLE IF EXISTS `{table}`");
                    connection.execute(sqlx::raw_sql(AssertSqlSafe(drop))).await.unwrap();
                    let version = sqlx::query("DELETE FROM idempotency_schema WHERE records = ?");
                    let _ = version.bind(table.as_bytes()).execute(&mut connection).await; // may not be there
                }
            });
        });
        dropped.join().unwrap();
    }
}

/// Runs statements of a test; `{t}` is the table.
pub(crate) async fn run(connection: &mut MySqlConnection, table: &str, statements: &str) {
    let statements = statements.replace("{t}", &format!("`{table}`"));
    connection.execute(sqlx::raw_sql(AssertSqlSafe(statements))).await.unwrap();
}

pub(crate) fn operation(key: &str, body: &[u8]) -> Operation {
    let address = Address::new(Door::Http, &Scope::shared(), &Key::new(key).unwrap());
    Operation::new(address, Fingerprint::builder().part(Part::Body, body).build())
}

pub(crate) fn bid() -> Bid {
    Bid { holder: Holder::draw(), lease: DAY, retention: DAY, on_lapse: OnLapse::TakeOver }
}

pub(crate) fn keep(replay: Duration) -> Keep {
    Keep { replay, then_reject: Duration::ZERO }
}

pub(crate) fn outcome() -> Outcome {
    Outcome::whole(Media(1), "done")
}

pub(crate) fn granted(claim: Claim<Lease>) -> Lease {
    match claim {
        Claim::Granted(lease) => lease,
        refused => panic!("not granted: {refused:?}"),
    }
}

pub(crate) async fn claim(store: &MySqlStore, key: &str) -> Lease {
    granted(store.claim(&operation(key, b"body"), &bid()).await.unwrap())
}
