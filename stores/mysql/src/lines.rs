//! Connections: one for each call, and what becomes of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::TryStreamExt;
use idempotency_core::{Fate, StoreError, StoreErrorKind};
use sqlx::{
    Either, Execute, Executor, MySql, MySqlConnection, MySqlPool, mysql::MySqlRow, pool::PoolConnection,
};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout, timeout_at},
};

use crate::error::{is_worth_keeping, lost_a_conflict, not_sent, sent};

/// How often a statement is sent that loses against others. One of those who met went on each time.
const TIMES: u32 = 20;

/// The pool, and how long a call takes at most.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    pool: MySqlPool,
    patience: Duration,
    repeats: Arc<AtomicU64>,
}

impl Lines {
    pub(crate) fn new(pool: MySqlPool, patience: Duration) -> Self {
        Self { pool, patience, repeats: Arc::default() }
    }

    pub(crate) const fn pool(&self) -> &MySqlPool {
        &self.pool
    }

    /// How many statements were sent once more.
    pub(crate) fn repeats(&self) -> u64 {
        self.repeats.load(Ordering::Relaxed)
    }

    /// Counts a statement that is sent once more.
    pub(crate) fn repeated(&self) {
        self.repeats.fetch_add(1, Ordering::Relaxed);
    }

    /// When a call that begins now ends at the latest, however many statements it is.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    pub(crate) async fn open(&self) -> Result<Line, sqlx::Error> {
        self.open_until(self.deadline()).await
    }

    async fn open_until(&self, deadline: Instant) -> Result<Line, sqlx::Error> {
        timeout_at(deadline, self.take()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// A connection from the pool. While the pool grows, that may be a new one, and it is made though the call that asked
    /// for it gives up: a server too busy to answer in time would be asked for nothing but new connections otherwise.
    async fn take(&self) -> Result<Line, sqlx::Error> {
        let (pool, patience) = (self.pool.clone(), self.patience);
        let taken = async move { Ok(Line { connection: Some(pool.acquire().await?), patience }) };
        if self.pool.size() >= self.pool.options().get_max_connections() {
            return taken.await;
        }
        let (give, given) = oneshot::channel();
        tokio::spawn(async move {
            if let Err(Ok(unwanted)) = give.send(taken.await) {
                unwanted.keep();
            }
        });
        given.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
    }

    /// [`ask`](Self::ask) for what writes nothing, however it fails.
    pub(crate) async fn read<'q, E>(
        &self,
        deadline: Instant,
        statement: impl Fn() -> E,
    ) -> Result<Answer, StoreError>
    where
        E: Execute<'q, MySql> + 'q,
    {
        self.ask(deadline, statement).await.map_err(|error| error.with_fate(Fate::NotApplied))
    }

    /// Sends what `statement` makes on a connection of its own and reads the whole answer; once more, while there is
    /// time, when it lost against others.
    pub(crate) async fn ask<'q, E>(
        &self,
        deadline: Instant,
        statement: impl Fn() -> E,
    ) -> Result<Answer, StoreError>
    where
        E: Execute<'q, MySql> + 'q,
    {
        let mut times = 1;
        loop {
            let mut line = self.open_until(deadline).await.map_err(not_sent)?;
            let begun = Instant::now();
            let answer = timeout_at(deadline, ask(line.connection(), statement())).await;
            match answer.map_err(|_| too_late())? {
                Ok(answer) => {
                    line.keep();
                    return Ok(answer);
                }
                Err(cut) => {
                    if is_worth_keeping(&cut.error) {
                        line.keep();
                    }
                    // Who waited long for a lock would be cut short the next time, and not know what became of it.
                    let in_time = Instant::now() + begun.elapsed() < deadline;
                    if !(cut.is_conflict() && in_time && times < TIMES) {
                        return Err(cut.into());
                    }
                    times += 1;
                    self.repeated();
                }
            }
        }
    }
}

/// A connection that is closed when it is dropped before the answer was read: the driver may have stopped within a
/// packet, and would take the rest of it for the next caller's answer.
#[derive(Debug)]
pub(crate) struct Line {
    connection: Option<PoolConnection<MySql>>,
    patience: Duration,
}

impl Line {
    pub(crate) fn connection(&mut self) -> &mut MySqlConnection {
        self.connection.as_mut().expect("a line has its connection until it is kept or dropped")
    }

    /// Gives the connection back to its pool. The pool asks first whether it still lives, and would wait for the answer
    /// for ever.
    pub(crate) fn keep(mut self) {
        if let Some(mut connection) = self.connection.take() {
            tokio::spawn(timeout(self.patience, connection.return_to_pool()));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        drop(self.connection.take().map(PoolConnection::detach));
    }
}

/// What a statement, or several, answered.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<MySqlRow>,
    /// How many rows were found to write, those among them that were left as they were.
    pub(crate) matched: u64,
}

/// What cut an answer short.
#[derive(Debug)]
pub(crate) struct Cut {
    error: sqlx::Error,
    /// Whether a statement before the one that failed may have written.
    late: bool,
}

impl Cut {
    fn is_conflict(&self) -> bool {
        !self.late && lost_a_conflict(&self.error)
    }
}

impl From<Cut> for StoreError {
    fn from(Cut { error, late }: Cut) -> Self {
        let error = sent(error);
        if late { error.with_fate(Fate::Unknown) } else { error }
    }
}

/// Sends a statement and reads the whole answer.
pub(crate) async fn ask<'q, E>(connection: &mut MySqlConnection, statement: E) -> Result<Answer, Cut>
where
    E: Execute<'q, MySql> + 'q,
{
    let mut answer = Answer::default();
    let mut parts = connection.fetch_many(statement);
    loop {
        match parts.try_next().await {
            Ok(Some(Either::Right(row))) => answer.rows.push(row),
            Ok(Some(Either::Left(done))) => answer.matched += done.rows_affected(),
            Ok(None) => return Ok(answer),
            Err(error) => return Err(Cut { error, late: answer.matched > 0 }),
        }
    }
}

/// No answer in time: nobody knows what became of the statement.
fn too_late() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, Fate::Unknown)
}
