//! Connections: one for each call, and what becomes of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use idempotency_core::{Fate, StoreError, StoreErrorKind};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, postgres::PgRow};
use tokio::{
    sync::oneshot::{self, error::RecvError},
    time::{Instant, timeout_at},
};

use crate::{
    error::{failed, is_worth_keeping, lost_a_conflict, not_applied},
    relay::{Baton, Relay},
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
    relay: Arc<Relay>,
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
        Self { pool, patience, way: Way::Direct, relay: Arc::default(), repeats: Arc::default() }
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

    /// When a call that begins now ends at the latest, however many statements it is.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    pub(crate) async fn open(&self) -> Result<Line, sqlx::Error> {
        self.take_until(self.deadline()).await
    }

    async fn take_until(&self, deadline: Instant) -> Result<Line, sqlx::Error> {
        timeout_at(deadline, self.take()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    async fn take(&self) -> Result<Line, sqlx::Error> {
        Ok(Line { baton: Some(self.relay.take(&self.pool).await?), relay: Arc::clone(&self.relay) })
    }

    /// Sends what `statement` makes on a connection of its own and reads the row it answers; once more, while there is
    /// time, when it lost against others.
    pub(crate) async fn ask<'v>(
        &self,
        deadline: Instant,
        statement: impl Fn() -> Bound<'v>,
    ) -> Result<Option<PgRow>, StoreError> {
        Ok(self.patiently(deadline, Answer::Row, statement).await?.pop())
    }

    /// The same for a statement that writes nothing.
    pub(crate) async fn read<'v>(
        &self,
        deadline: Instant,
        statement: impl Fn() -> Bound<'v>,
    ) -> Result<Option<PgRow>, StoreError> {
        self.ask(deadline, statement).await.map_err(|error| error.with_fate(Fate::NotApplied))
    }

    /// The same for a statement that answers many rows.
    pub(crate) async fn read_all<'v>(
        &self,
        deadline: Instant,
        statement: impl Fn() -> Bound<'v>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let answer = self.patiently(deadline, Answer::Rows, statement).await;
        answer.map_err(|error| error.with_fate(Fate::NotApplied))
    }

    /// Sends a statement once, by a task: a caller may go away at any time, and costs no connection by that. Where it
    /// fails nothing is answered.
    pub(crate) async fn ask_aside(&self, statement: Bound<'static>) -> Result<Option<PgRow>, RecvError> {
        let (caller, answer) = oneshot::channel();
        let lines = self.clone();
        tokio::spawn(async move {
            let deadline = lines.deadline();
            let Ok(mut line) = lines.take_until(deadline).await else { return };
            if caller.is_closed() {
                return line.keep();
            }
            let sent = AtomicBool::new(false);
            let rows = lines.send(line.connection(), Answer::Row, statement, &sent);
            if let Ok(rows) = timeout_at(deadline, rows).await
                && let Ok(mut rows) = line.leave(rows)
            {
                let _ = caller.send(rows.pop()); // unless the caller went away meanwhile
            }
        });
        answer.await
    }

    async fn patiently<'v>(
        &self,
        deadline: Instant,
        answer: Answer,
        statement: impl Fn() -> Bound<'v>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let sent = AtomicBool::new(false);
        let answered = timeout_at(deadline, self.repeatedly(answer, statement, &sent, deadline)).await;
        answered.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::Unavailable, fate(&sent))))
    }

    async fn repeatedly<'v>(
        &self,
        answer: Answer,
        statement: impl Fn() -> Bound<'v>,
        sent: &AtomicBool,
        deadline: Instant,
    ) -> Result<Vec<PgRow>, StoreError> {
        let mut times = 1;
        loop {
            sent.store(false, Ordering::Relaxed);
            let mut line = self.take().await.map_err(not_applied)?;
            let begun = Instant::now();
            let answer = self.send(line.connection(), answer, statement(), sent).await;
            let error = match line.leave(answer) {
                Ok(rows) => return Ok(rows),
                Err(error) => error,
            };
            // Who waited long for a lock would be cut short the next time, and not know what became of it.
            let in_time = Instant::now() + begun.elapsed() < deadline;
            if !(lost_a_conflict(&error) && in_time && times < TIMES) {
                return Err(failed(error, fate(sent)));
            }
            times += 1;
            self.count_a_repeat();
        }
    }

    /// Sends a statement and reads the whole answer; `sent` is set before anything is sent that could be applied.
    async fn send(
        &self,
        connection: &mut PgConnection,
        answer: Answer,
        statement: Bound<'_>,
        sent: &AtomicBool,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let Way::InTransaction { begin } = &self.way else {
            sent.store(true, Ordering::Relaxed);
            return answer.read(connection, statement).await;
        };
        let mut transaction = connection.begin_with(AssertSqlSafe(Arc::clone(begin))).await?;
        let rows = answer.read(&mut transaction, statement.persistent(false)).await?;
        sent.store(true, Ordering::Relaxed);
        transaction.commit().await?;
        Ok(rows)
    }
}

/// What a call that got no answer left behind.
fn fate(sent: &AtomicBool) -> Fate {
    if sent.load(Ordering::Relaxed) { Fate::Unknown } else { Fate::NotApplied }
}

/// What a statement answers: a row for each record that it wrote or read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// One at most.
    Row,
    /// Any number.
    Rows,
}

impl Answer {
    pub(crate) async fn read(
        self,
        connection: &mut PgConnection,
        statement: Bound<'_>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        match self {
            Self::Row => Ok(Vec::from_iter(statement.fetch_optional(connection).await?)),
            Self::Rows => statement.fetch_all(connection).await,
        }
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
    baton: Option<Baton>,
    relay: Arc<Relay>,
}

impl Line {
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.baton.as_mut().expect("a line has its connection until it is kept or dropped").connection
    }

    /// Leaves the connection to other calls, if what it answered says that it can serve them.
    fn leave<T>(self, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        if answer.as_ref().err().is_none_or(is_worth_keeping) {
            self.keep();
        }
        answer
    }

    /// Leaves the connection to other calls.
    pub(crate) fn keep(mut self) {
        if let Some(baton) = self.baton.take() {
            self.relay.pass(baton);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        drop(self.baton.take().map(|baton| baton.connection.detach()));
    }
}
