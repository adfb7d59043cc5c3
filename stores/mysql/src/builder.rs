//! Opening a store: what may be chosen, and how its connections are set.

use std::{fmt, sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, MySqlPool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};

use crate::{
    MySqlStore, OpenError,
    lines::Lines,
    schema::{self, WhenAbsent},
    server::{Claims, Server},
    statements::Statements,
    table::Table,
};

/// Below the 2 s an engine gives a store call.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Longer than anybody waits, and within what the server and the runtime's timers can hold.
const MOST_PATIENCE: Duration = Duration::from_secs(3_600);

/// As many as the driver's pools have.
const CONNECTIONS: u32 = 10;

/// How long a connection may rest before it is asked whether it still lives. Asking each time would double every call's
/// round trips; one that died sooner costs a call whose fate is unknown.
const REST: Duration = Duration::from_secs(5);

/// What may be chosen before a [`MySqlStore`] is opened.
#[must_use]
pub struct MySqlStoreBuilder {
    table: String,
    patience: Duration,
    connections: u32,
    when_absent: WhenAbsent,
    claims: Option<Claims>,
}

impl MySqlStoreBuilder {
    pub(crate) fn new() -> Self {
        Self {
            table: Table::DEFAULT.to_owned(),
            patience: PATIENCE,
            connections: CONNECTIONS,
            when_absent: WhenAbsent::Create,
            claims: None,
        }
    }

    /// The table that holds the records, `idempotency_records` unless set: one to 64 ASCII letters, digits and
    /// underscores, in the database that the connections use, and not `idempotency_schema`, which holds the versions.
    /// Stores with tables of their own share nothing.
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.table = name.into();
        self
    }

    /// How long a call takes at most: 1.5 s unless set, at most an hour. One that got no connection by then was not
    /// applied; of one that got no answer nobody knows. Connections that the store opens itself wait for a row that
    /// somebody holds locked for that many whole seconds, and at least one, after which nothing was applied either.
    /// Keep it below the engine's store timeout (2 s), or a call that would be told so is cut short instead.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience.min(MOST_PATIENCE);
        self
    }

    /// How many connections [`connect`](Self::connect) opens at most: 10 unless set.
    pub fn connections(mut self, at_most: u32) -> Self {
        self.connections = at_most.max(1);
        self
    }

    /// Refuses a database that has no idempotency schema, where otherwise it is created. For tools, whose user may
    /// mistype a name, and for services whose user may not create tables.
    pub fn existing_only(mut self) -> Self {
        self.when_absent = WhenAbsent::Refuse;
        self
    }

    /// Sends a claim in the way that MySQL needs, as two statements in one packet, to MariaDB too, which would answer
    /// from one. For tests, and for proxies that do not know `INSERT ... RETURNING`.
    pub fn without_returning(mut self) -> Self {
        self.claims = Some(Claims::ThenRead);
        self
    }

    /// Opens the store on connections of its own to the database at `url`, `mysql://user:password@host/database`.
    ///
    /// # Errors
    /// [`OpenError`] when the server does not answer, refuses, or is set so that the store could not keep its word, or
    /// when the schema is of another version.
    pub async fn connect(self, url: &str) -> Result<MySqlStore, OpenError> {
        let options: MySqlConnectOptions =
            url.parse().map_err(|error: sqlx::Error| OpenError::Refused(error.into()))?;
        let pool = self.pool().connect_lazy_with(options.disable_statement_logging());
        let opened = self.open(pool.clone()).await;
        if opened.is_err() {
            pool.close().await;
        }
        opened.map(MySqlStore::owning_its_pool)
    }

    /// Opens the store on a pool of yours, and leaves its connections set as they are.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn open(self, pool: MySqlPool) -> Result<MySqlStore, OpenError> {
        let table = Table::named(&self.table)?;
        let statements = Statements::on(&table);
        let lines = Lines::new(pool, self.patience);
        let mut line = lines.open().await?;
        let server = Server::probe(line.connection()).await?;
        schema::prepare(line.connection(), &table, self.when_absent, self.patience).await?;
        let claims = match self.claims {
            Some(claims) => claims,
            None => Claims::best(line.connection(), &statements).await?,
        };
        line.keep();
        Ok(MySqlStore::open(lines, statements, claims, server.max_packet))
    }

    fn pool(&self) -> MySqlPoolOptions {
        let seconds = self.patience.as_secs().max(1);
        // READ COMMITTED locks records and not the gaps between them.
        let set: Arc<str> = format!(
            "SET autocommit = 1, innodb_lock_wait_timeout = {seconds}; \
             SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
        )
        .into();
        MySqlPoolOptions::new()
            .max_connections(self.connections)
            .acquire_timeout(self.patience)
            .after_connect(move |connection, _| {
                let set = Arc::clone(&set);
                Box::pin(async move { connection.execute(sqlx::raw_sql(AssertSqlSafe(set))).await.map(drop) })
            })
            .test_before_acquire(false)
            .before_acquire(|connection, rested| {
                Box::pin(async move { Ok(rested.idle_for < REST || connection.ping().await.is_ok()) })
            })
    }
}

impl fmt::Debug for MySqlStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlStoreBuilder")
            .field("table", &self.table)
            .field("patience", &self.patience)
            .field("connections", &self.connections)
            .field("when_absent", &self.when_absent)
            .finish_non_exhaustive()
    }
}
