//! Opening a store: what may be chosen, and how its connections are set.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use idempotency_core::clock::Clock;
use sqlx::{
    ConnectOptions, Connection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous},
};

use crate::{
    OpenError, SqliteStore,
    schema::{self, WhenAbsent},
    writer::Writer,
};

/// Below the 2 s an engine gives a store call, with room for the commit.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Longer than anybody waits, and within what SQLite and the runtime's timers can hold.
const MOST_PATIENCE: Duration = Duration::from_secs(3_600);

/// Readers never wait for one another or for the writer; beyond a few they only cost memory.
const READERS: u32 = 4;

/// What may be chosen before a [`SqliteStore`] is opened.
#[must_use]
pub struct SqliteStoreBuilder {
    patience: Duration,
    clock: Option<Arc<dyn Clock>>,
    when_absent: WhenAbsent,
}

impl SqliteStoreBuilder {
    pub(crate) const fn new() -> Self {
        Self { patience: PATIENCE, clock: None, when_absent: WhenAbsent::Create }
    }

    /// How long a call waits to begin, for its turn in this process and for the lock that other processes hold
    /// together: 1.5 s unless set, at most an hour. Keep it below the engine's store timeout (2 s), or a call that
    /// would be told that nothing was applied is cut short instead.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience.min(MOST_PATIENCE);
        self
    }

    /// Reads the time from `clock` instead of the database. For tests: processes that share a file must share a clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Refuses a file that is not there or has no idempotency schema, where otherwise both are created. For tools,
    /// whose user may mistype a path.
    pub fn existing_only(mut self) -> Self {
        self.when_absent = WhenAbsent::Refuse;
        self
    }

    /// Opens the store in the file at `path`.
    ///
    /// # Errors
    /// [`OpenError`] when there is no usable database, it stays locked, or its schema is of another version.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore, OpenError> {
        // SQLite reads a relative ":memory:" or "file:" as something else than a file of that name.
        let path = std::path::absolute(path).map_err(|error| OpenError::Unopenable(error.into()))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .synchronous(SqliteSynchronous::Full)
            .disable_statement_logging();
        // The writer's waits are the store's own: SQLite's would hold the connection after a call was dropped.
        let writer = options
            .clone()
            .busy_timeout(Duration::ZERO)
            .create_if_missing(self.when_absent == WhenAbsent::Create);
        let writer = self.pool(1).connect_lazy_with(writer);
        let readers = options.busy_timeout(self.patience).pragma("query_only", "ON");
        let readers = self.pool(READERS).connect_lazy_with(readers);
        self.prepare(writer, readers).await
    }

    /// Opens a store in memory that is gone with its last clone. For tests: one connection reads and writes.
    ///
    /// # Errors
    /// [`OpenError`] when no memory is left, or under [`existing_only`](Self::existing_only).
    pub async fn open_in_memory(self) -> Result<SqliteStore, OpenError> {
        let options = SqliteConnectOptions::new().in_memory(true).disable_statement_logging();
        let pool = self.pool(1).connect_lazy_with(options);
        self.prepare(pool.clone(), pool).await
    }

    async fn prepare(self, writer: SqlitePool, readers: SqlitePool) -> Result<SqliteStore, OpenError> {
        let writer = Writer::new(writer, self.patience, self.clock);
        schema::prepare(&writer, self.when_absent).await?;
        Ok(SqliteStore::new(writer, readers))
    }

    fn pool(&self, connections: u32) -> SqlitePoolOptions {
        SqlitePoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(self.patience)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            // A full disk ends a transaction behind the driver's back, which then believes it open for ever.
            .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
    }
}

impl fmt::Debug for SqliteStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStoreBuilder")
            .field("patience", &self.patience)
            .field("when_absent", &self.when_absent)
            .finish_non_exhaustive()
    }
}
