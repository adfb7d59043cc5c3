//! Connections: one for each call, and what becomes of it.

use std::time::Duration;

use futures_util::TryStreamExt;
use idempotency_core::{Fate, StoreError};
use sqlx::{
    Either, Execute, Executor, MySql, MySqlConnection, MySqlPool, mysql::MySqlRow, pool::PoolConnection,
};
use tokio::time::{Instant, timeout};

use crate::error::{is_worth_keeping, lost_a_conflict, not_sent, sent};

/// How often a statement is sent that loses against others. One of those who met went on each time.
const TIMES: u32 = 20;

/// The pool, and how long a call waits for one of its connections.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    pool: MySqlPool,
    patience: Duration,
}

impl Lines {
    pub(crate) const fn new(pool: MySqlPool, patience: Duration) -> Self {
        Self { pool, patience }
    }

    pub(crate) const fn pool(&self) -> &MySqlPool {
        &self.pool
    }

    pub(crate) async fn open(&self) -> Result<Line, sqlx::Error> {
        let connection = timeout(self.patience, self.pool.acquire()).await;
        Ok(Line(Some(connection.unwrap_or(Err(sqlx::Error::PoolTimedOut))?)))
    }

    /// Sends what `statement` makes on a connection of its own, once more when it lost against others, and reads the
    /// whole answer.
    pub(crate) async fn ask<'q, E>(&self, statement: impl Fn() -> E) -> Result<Answer, StoreError>
    where
        E: Execute<'q, MySql> + 'q,
    {
        let deadline = Instant::now() + self.patience;
        let mut times = 1;
        loop {
            let mut line = self.open().await.map_err(not_sent)?;
            match ask(line.connection(), statement()).await {
                Ok(answer) => {
                    line.keep();
                    return Ok(answer);
                }
                Err(cut) => {
                    if is_worth_keeping(&cut.error) {
                        line.keep();
                    }
                    if !cut.is_conflict() || times == TIMES || Instant::now() >= deadline {
                        return Err(cut.into());
                    }
                    times += 1;
                }
            }
        }
    }
}

/// A connection that is closed when it is dropped before the answer was read: the driver may have stopped within a
/// packet, and would give the next caller what is left of it.
#[derive(Debug)]
pub(crate) struct Line(Option<PoolConnection<MySql>>);

impl Line {
    pub(crate) fn connection(&mut self) -> &mut MySqlConnection {
        self.0.as_mut().expect("a line has its connection until it is kept or dropped")
    }

    /// Gives the connection back to its pool.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        drop(self.0.take().map(PoolConnection::detach));
    }
}

/// What a statement, or several, answered.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<MySqlRow>,
    /// How many rows the statement found to write, those among them that it left as they were.
    pub(crate) matched: u64,
    statements: u32,
}

/// What cut an answer short.
#[derive(Debug)]
pub(crate) struct Cut {
    error: sqlx::Error,
    /// Whether a statement before it had taken effect.
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
            Ok(Some(Either::Left(done))) => {
                answer.matched += done.rows_affected();
                answer.statements += 1;
            }
            Ok(None) => return Ok(answer),
            Err(error) => return Err(Cut { error, late: answer.statements > 0 }),
        }
    }
}
