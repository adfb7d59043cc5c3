//! Connections: one for each call, and what becomes of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use idempotency_core::{Fate, StoreError, StoreErrorKind};
use sqlx::{
    AssertSqlSafe, Connection, PgConnection, PgPool, Postgres, pool::PoolConnection, postgres::PgRow,
};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    error::{is_worth_keeping, lost_a_conflict, not_applied, sent},
    statements::Bound,
};

/// How often a statement is sent that loses against others. One of those who met went on each time.
const TIMES: u32 = 20;

/// The pool, what stands between it and the server, and how long a call takes at most.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    pool: PgPool,
    patience: Duration,
    way: Way,
    repeats: Arc<AtomicU64>,
}

/// How a statement gets to the server.
#[derive(Debug, Clone)]
enum Way {
    /// By itself: it commits by itself.
    Direct,
    /// Between this and a commit: what a transaction-pooling proxy is sent outside of one, it may send on to different
    /// servers, the words to one and the values to another.
    InTransaction { begin: Arc<str> },
}

impl Lines {
    pub(crate) fn direct(pool: PgPool, patience: Duration) -> Self {
        Self { pool, patience, way: Way::Direct, repeats: Arc::default() }
    }

    pub(crate) fn in_transactions(pool: PgPool, patience: Duration) -> Self {
        let limit = lock_timeout(patience).as_millis();
        let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {limit}");
        Self { way: Way::InTransaction { begin: begin.into() }, ..Self::direct(pool, patience) }
    }

    pub(crate) const fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Whether the server is known to send what a connection listens to.
    pub(crate) const fn are_direct(&self) -> bool {
        matches!(self.way, Way::Direct)
    }

    pub(crate) fn repeats(&self) -> u64 {
        self.repeats.load(Ordering::Relaxed)
    }

    pub(crate) fn count_a_repeat(&self) {
        self.repeats.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) async fn open(&self) -> Result<Line, sqlx::Error> {
        self.open_until(Instant::now() + self.patience).await
    }

    async fn open_until(&self, deadline: Instant) -> Result<Line, sqlx::Error> {
        let connection = timeout_at(deadline, self.pool.acquire()).await;
        let connection = connection.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
        Ok(Line { connection: Some(connection), patience: self.patience })
    }

    /// Sends a statement that writes nothing, as [`ask`](Self::ask) does.
    pub(crate) async fn read<'v>(&self, statement: impl Fn() -> Bound<'v>) -> Result<Answer, StoreError> {
        self.ask(statement).await.map_err(|error| error.with_fate(Fate::NotApplied))
    }

    /// Sends what `statement` makes on a connection of its own and reads the whole answer; once more, while there is
    /// time, when it lost against others.
    pub(crate) async fn ask<'v>(&self, statement: impl Fn() -> Bound<'v>) -> Result<Answer, StoreError> {
        let deadline = Instant::now() + self.patience;
        let mut times = 1;
        loop {
            let mut line = self.open_until(deadline).await.map_err(not_applied)?;
            let begun = Instant::now();
            match self.send(line.connection(), statement(), deadline).await {
                Ok(answer) => {
                    line.keep();
                    return Ok(answer);
                }
                Err(cut) => {
                    if cut.leaves_the_line_usable() {
                        line.keep();
                    }
                    // Who waited long for a lock would be cut short the next time, and not know what became of it.
                    let in_time = Instant::now() + begun.elapsed() < deadline;
                    if !(cut.is_conflict() && in_time && times < TIMES) {
                        return Err(cut.into());
                    }
                    times += 1;
                    self.count_a_repeat();
                }
            }
        }
    }

    async fn send(
        &self,
        connection: &mut PgConnection,
        statement: Bound<'_>,
        deadline: Instant,
    ) -> Result<Answer, Cut> {
        let Way::InTransaction { begin } = &self.way else {
            return match timeout_at(deadline, answer(connection, statement)).await {
                Ok(answer) => answer.map_err(|error| Cut::Sent(Some(error))),
                Err(_) => Err(Cut::Sent(None)),
            };
        };
        let answered = async {
            let mut transaction = connection.begin_with(AssertSqlSafe(Arc::clone(begin))).await?;
            let answer = answer(&mut transaction, statement.persistent(false)).await?;
            Ok((transaction, answer))
        };
        let (transaction, answer) = match timeout_at(deadline, answered).await {
            Ok(answered) => answered.map_err(|error| Cut::Before(Some(error)))?,
            Err(_) => return Err(Cut::Before(None)),
        };
        match timeout_at(deadline, transaction.commit()).await {
            Ok(committed) => committed.map_err(|error| Cut::Sent(Some(error)))?,
            Err(_) => return Err(Cut::Sent(None)),
        }
        Ok(answer)
    }
}

/// How long the server waits for a lock on behalf of a call that takes `patience` at most: there is time left for it to
/// answer that nothing was applied.
pub(crate) fn lock_timeout(patience: Duration) -> Duration {
    (patience / 2).max(Duration::from_millis(1))
}

/// A connection that is closed when it is dropped before the answer was read: nobody else shall wait for that.
#[derive(Debug)]
pub(crate) struct Line {
    connection: Option<PoolConnection<Postgres>>,
    patience: Duration,
}

impl Line {
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
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

/// What cut a call short: an error, or the end of its patience.
#[derive(Debug)]
enum Cut {
    /// Before anything was sent that could be applied.
    Before(Option<sqlx::Error>),
    /// After that.
    Sent(Option<sqlx::Error>),
}

impl Cut {
    const fn error(&self) -> Option<&sqlx::Error> {
        match self {
            Self::Before(error) | Self::Sent(error) => error.as_ref(),
        }
    }

    fn is_conflict(&self) -> bool {
        self.error().is_some_and(lost_a_conflict)
    }

    fn leaves_the_line_usable(&self) -> bool {
        self.error().is_some_and(is_worth_keeping)
    }
}

impl From<Cut> for StoreError {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Before(Some(error)) => not_applied(error),
            Cut::Before(None) => Self::new(StoreErrorKind::Unavailable, Fate::NotApplied),
            Cut::Sent(Some(error)) => sent(error),
            Cut::Sent(None) => Self::new(StoreErrorKind::Unavailable, Fate::Unknown),
        }
    }
}

/// What a statement answered: a row for each record that it wrote or read.
pub(crate) type Answer = Vec<PgRow>;

/// Sends a statement and reads the whole answer.
pub(crate) async fn answer(
    connection: &mut PgConnection,
    statement: Bound<'_>,
) -> Result<Answer, sqlx::Error> {
    statement.fetch_all(connection).await
}
