//! Opening a store: what may be chosen, and how its connections are set.

use std::{fmt, time::Duration};

use sqlx::{
    ConnectOptions, Connection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    OpenError, PostgresStore,
    lines::{Lines, lock_timeout},
    names::Names,
    schema::{self, WhenAbsent},
    statements::Statements,
    waking::Waking,
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

/// What may be chosen before a [`PostgresStore`] is opened.
#[must_use]
pub struct PostgresStoreBuilder {
    schema: Option<String>,
    table: String,
    patience: Duration,
    connections: u32,
    when_absent: WhenAbsent,
    transactions_are_pooled: bool,
    listens: bool,
}

impl PostgresStoreBuilder {
    pub(crate) fn new() -> Self {
        Self {
            schema: None,
            table: Names::RECORDS.to_owned(),
            patience: PATIENCE,
            connections: CONNECTIONS,
            when_absent: WhenAbsent::Create,
            transactions_are_pooled: false,
            listens: true,
        }
    }

    /// The schema that holds the tables: one to 63 ASCII letters, digits and underscores. Unless set, the first of the
    /// connections' `search_path` that exists, `public` as a rule; it is asked for once, when the store is opened.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = Some(name.into());
        self
    }

    /// The table that holds the records, `idempotency_records` unless set: one to 48 ASCII letters, digits and
    /// underscores, told apart by their case. Stores with tables of their own share nothing.
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.table = name.into();
        self
    }

    /// How long a call takes at most: 1.5 s unless set, at most an hour. One that got no connection by then was not
    /// applied; of one that got no answer nobody knows. Connections that the store opens itself wait for a row that
    /// somebody holds locked for half as long, after which nothing was applied either. Keep it below the engine's store
    /// timeout (2 s), or a call that would be told so is cut short instead.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience.min(MOST_PATIENCE);
        self
    }

    /// How many connections [`connect`](Self::connect) opens at most, the one that listens not counted: 10 unless set.
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

    /// For a PgBouncer in transaction mode, or any proxy that gives a connection to another client after each
    /// transaction. Without this such a proxy hands out other clients' answers, and nothing fails.
    ///
    /// Each statement then stands in a transaction of its own, which takes four round trips instead of one, nothing is
    /// kept prepared, and nothing is listened to: waiters find out by looking.
    pub fn behind_transaction_pooler(mut self) -> Self {
        self.transactions_are_pooled = true;
        self
    }

    /// Opens no connection to listen on. Waiters are then woken by endings through this store and its clones alone, and
    /// find out about others by looking.
    pub fn without_listening(mut self) -> Self {
        self.listens = false;
        self
    }

    /// Opens the store on connections of its own to the database at `url`, `postgres://user:password@host/database`.
    ///
    /// # Errors
    /// [`OpenError`] when the server does not answer or refuses, or when the schema is of another version.
    pub async fn connect(self, url: &str) -> Result<PostgresStore, OpenError> {
        let options: PgConnectOptions =
            url.parse().map_err(|error: sqlx::Error| OpenError::Refused(error.into()))?;
        let pool = self.pool().connect_lazy_with(self.set(options));
        let opened = self.open(pool.clone()).await;
        if opened.is_err() {
            pool.close().await;
        }
        opened.map(PostgresStore::owning_its_pool)
    }

    /// Opens the store on a pool of yours, and leaves its connections set as they are.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn open(self, pool: PgPool) -> Result<PostgresStore, OpenError> {
        let records = Names::records(&self.table)?.to_owned();
        let named = self.schema.as_deref().map(Names::schema).transpose()?.map(ToOwned::to_owned);
        let lines = match self.transactions_are_pooled {
            true => Lines::in_transactions(pool, self.patience),
            false => Lines::direct(pool, self.patience),
        };
        let mut line = lines.open().await?;
        let prepared = schema::prepare(line.connection(), named, records, self.when_absent).await?;
        line.keep();
        let statements = Statements::on(&prepared.names);
        let channel = (self.listens && lines.are_direct()).then_some(prepared.channel);
        let waking = Waking::new(lines.clone(), statements.notify.clone(), channel);
        Ok(PostgresStore::open(lines, statements, waking))
    }

    fn set(&self, options: PgConnectOptions) -> PgConnectOptions {
        let options = options.disable_statement_logging();
        if self.transactions_are_pooled {
            // PgBouncer knows no settings at start-up but a few.
            return options.extra_float_digits(None);
        }
        let limit = format!("{}ms", lock_timeout(self.patience).as_millis());
        options
            .options([("lock_timeout", limit.as_str()), ("default_transaction_isolation", "read committed")])
    }

    fn pool(&self) -> PgPoolOptions {
        PgPoolOptions::new()
            .max_connections(self.connections)
            .acquire_timeout(self.patience)
            .test_before_acquire(false)
            .before_acquire(|connection, rested| {
                Box::pin(async move { Ok(rested.idle_for < REST || connection.ping().await.is_ok()) })
            })
    }
}

impl fmt::Debug for PostgresStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStoreBuilder")
            .field("schema", &self.schema)
            .field("table", &self.table)
            .field("patience", &self.patience)
            .field("connections", &self.connections)
            .field("when_absent", &self.when_absent)
            .finish_non_exhaustive()
    }
}
