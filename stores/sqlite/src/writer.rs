//! The one writing connection, the turns its callers take, and a transition from `BEGIN IMMEDIATE` to its end.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use idempotency_core::{
    Address, CorruptRecord, Record, Settled, StoreError,
    clock::{Clock, Timestamp},
    columns::{integer, natural},
    machine::Step,
};
use sqlx::{
    Row, Sqlite, SqliteConnection, SqlitePool, Transaction,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout_at},
};

use crate::{
    error::{is_busy, not_applied, unknown},
    row,
};

/// How soon a held lock is asked for again: about as long as a commit takes, and little work while it lasts.
const ASK_AGAIN: Duration = Duration::from_millis(1);

#[derive(Clone)]
pub(crate) struct Writer {
    pool: SqlitePool,
    turns: Arc<Semaphore>,
    patience: Duration,
    clock: Option<Arc<dyn Clock>>,
}

impl Writer {
    pub(crate) fn new(pool: SqlitePool, patience: Duration, clock: Option<Arc<dyn Clock>>) -> Self {
        Self { pool, turns: Arc::new(Semaphore::new(1)), patience, clock }
    }

    pub(crate) const fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// The time the overriding clock says; `None` leaves it to the database.
    pub(crate) fn clock_now(&self) -> Option<Timestamp> {
        self.clock.as_ref().map(Clock::now)
    }

    /// Waits for its turn and for the write lock, then reads the clock.
    pub(crate) async fn begin(&self) -> Result<Transition, sqlx::Error> {
        let begin = async {
            let turns = Arc::clone(&self.turns);
            let turn = turns.acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
            let mut tx = self.while_busy(|| self.pool.begin_with("BEGIN IMMEDIATE")).await?;
            let now = match self.clock_now() {
                Some(now) => now,
                None => {
                    let micros =
                        sqlx::query_scalar(include_str!("../sql/clock.sql")).fetch_one(&mut *tx).await?;
                    Timestamp::from_micros(natural(micros))
                }
            };
            Ok(Transition { tx, now, _turn: turn })
        };
        timeout_at(Instant::now() + self.patience, begin).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Tries again while somebody else holds the lock, for as long as the store's patience lasts.
    pub(crate) async fn while_busy<T, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T, sqlx::Error>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        let deadline = Instant::now() + self.patience;
        loop {
            match attempt().await {
                Err(error) if is_busy(&error) && Instant::now() < deadline => sleep(ASK_AGAIN).await,
                done => return done,
            }
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("patience", &self.patience).finish_non_exhaustive()
    }
}

/// A transaction that holds the write lock. Dropped, it rolls back.
pub(crate) struct Transition {
    tx: Transaction<'static, Sqlite>,
    now: Timestamp,
    _turn: OwnedSemaphorePermit,
}

impl Transition {
    /// The one reading of the store's clock all its statements use.
    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.tx
    }

    /// Runs the deciding `write` of an ending. If it changes nothing, `law` says why.
    pub(crate) async fn settle(
        mut self,
        address: &Address,
        write: Query<'_, Sqlite, SqliteArguments>,
        law: impl FnOnce(Option<&Record>) -> Step<Settled>,
    ) -> Result<Settled, StoreError> {
        let done = write.execute(&mut *self.tx).await.map_err(not_applied)?;
        if done.rows_affected() == 0 {
            return self.explain(address, law).await;
        }
        self.commit().await?;
        Ok(Settled::Applied)
    }

    /// The verdict of the law on what stands at `address`, after the deciding write changed nothing there.
    pub(crate) async fn explain<V>(
        mut self,
        address: &Address,
        law: impl FnOnce(Option<&Record>) -> Step<V>,
    ) -> Result<V, StoreError> {
        let found =
            record_at(address, Some(self.now)).fetch_optional(&mut *self.tx).await.map_err(not_applied)?;
        let record = found.as_ref().map(row::record).transpose()?.map(|(_, record)| record);
        match law(record.as_ref()) {
            Step { write: None, verdict } => Ok(verdict),
            // Only a row whose columns contradict its `readable` column gets here.
            Step { write: Some(_), .. } => Err(CorruptRecord::at_column("readable").at(*address).into()),
        }
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        self.tx.commit().await.map_err(unknown)
    }
}

/// The query for the record at `address`, with the time `now` or, without it, the database's.
pub(crate) fn record_at(address: &Address, now: Option<Timestamp>) -> Query<'_, Sqlite, SqliteArguments> {
    sqlx::query(include_str!("../sql/record.sql"))
        .bind(address.as_bytes().as_slice())
        .bind(now.map(|now| integer(now.as_micros())))
}

/// The time at which a row of [`record_at`] was read.
pub(crate) fn read_at(row: &SqliteRow) -> Result<Timestamp, sqlx::Error> {
    row.try_get("now").map(|micros| Timestamp::from_micros(natural(micros)))
}
