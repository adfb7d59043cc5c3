//! What the tests of this crate share: a server, tables that are gone after a test, operations and bids.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use idempotency_core::{
    Address, Bid, Claim, Door, Fingerprint, Holder, Keep, Key, Lease, Media, OnLapse, Operation, Outcome,
    Part, Scope, Store,
};
use idempotency_services::Server;
use idempotency_store_contract::processes::block_on;
use idempotency_store_postgres::{PostgresStore, PostgresStoreBuilder};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, PgPool, postgres::PgPoolOptions};

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// A database, and the schema that a test has in it: it is dropped with this.
pub(crate) struct Database {
    url: String,
    schema: String,
    tables: AtomicUsize,
}

impl Database {
    /// The database of `DATABASE_URL`, if there is one.
    pub(crate) fn reach() -> Option<Self> {
        Server::Postgres.url().map(Self::at)
    }

    pub(crate) fn at(url: String) -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let schema = format!("idempotency_test_{}_{number}", std::process::id());
        Self { url, schema, tables: AtomicUsize::new(0) }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// The name of a table that nobody else has in the schema.
    pub(crate) fn table(&self) -> String {
        format!("t{}", self.tables.fetch_add(1, Ordering::Relaxed))
    }

    /// What opens a store in the schema of this test.
    pub(crate) fn builder(&self, table: &str) -> PostgresStoreBuilder {
        // A busy machine is not what these tests are about.
        let patience = Duration::from_secs(30);
        PostgresStore::builder().schema(&self.schema).table(table).patience(patience)
    }

    /// A store on a table of its own, and that table.
    pub(crate) async fn store(&self) -> (PostgresStore, String) {
        let table = self.table();
        (self.store_on(&table).await, table)
    }

    pub(crate) async fn store_on(&self, table: &str) -> PostgresStore {
        self.builder(table).connect(&self.url).await.unwrap()
    }

    /// A connection of the application's own.
    pub(crate) async fn beside(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// A pool of the application's own, whose connections begin with `set`.
    pub(crate) async fn pool(&self, connections: u32, set: &'static str) -> PgPool {
        PgPoolOptions::new()
            .max_connections(connections)
            .after_connect(move |connection, _| {
                Box::pin(async move { connection.execute(sqlx::raw_sql(set)).await.map(drop) })
            })
            .connect(&self.url)
            .await
            .unwrap()
    }

    /// Runs statements of a test; `{t}` is the table.
    pub(crate) async fn run(&self, connection: &mut PgConnection, table: &str, statements: &str) {
        let statements = self.named(table, statements);
        connection.execute(sqlx::raw_sql(AssertSqlSafe(statements))).await.unwrap();
    }

    /// A number that a statement of a test answers.
    pub(crate) async fn number(&self, connection: &mut PgConnection, table: &str, statement: &str) -> i64 {
        let statement = AssertSqlSafe(self.named(table, statement));
        sqlx::query_scalar(statement).persistent(false).fetch_one(connection).await.unwrap()
    }

    pub(crate) fn named(&self, table: &str, statements: &str) -> String {
        statements.replace("{t}", &format!("{}.{table}", self.schema)).replace("{s}", &self.schema)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (url, schema) = (self.url.clone(), self.schema.clone());
        // A test may be async, and nothing can be awaited here.
        let dropped = std::thread::spawn(move || {
            block_on(async {
                let Ok(mut connection) = PgConnection::connect(&url).await else { return }; // a killed server's
                let drop = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
                connection.execute(sqlx::raw_sql(AssertSqlSafe(drop))).await.unwrap();
            });
        });
        dropped.join().unwrap();
    }
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

pub(crate) async fn claim(store: &PostgresStore, key: &str) -> Lease {
    granted(store.claim(&operation(key, b"body"), &bid()).await.unwrap())
}
