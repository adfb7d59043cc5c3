//! The store: each call binds its values to one deciding statement.

use std::{fmt, sync::Arc, time::Duration};

use idempotency_core::{
    Address, Bid, Claim, Fate, Fingerprint, Keep, Lease, OnLapse, Operation, Outcome, Record, Release,
    Settled, Store, StoreError, StoreErrorKind, Vacant,
    clock::{Timestamp, as_micros},
    columns::{form_code, integer, on_lapse_code},
    machine::{self, Step},
};
use sqlx::{PgPool, Row, postgres::PgRow};
use tokio::time::Instant;

use crate::{
    OpenError, PostgresStoreBuilder,
    lines::Lines,
    row::{self, Claimed},
    statements::{Bound, Statement, Statements},
    waking::Waking,
};

/// How often a transition is tried whose record others change between a statement and the look at what it met.
const TIMES: u32 = 20;

/// A fresh grant that has stood for longer when it is answered waited for somebody to undo what he inserted.
const WAITED: Duration = Duration::from_millis(200);

/// `sql/never.sql`.
const NEVER: i64 = 1 << 61;

/// How many records one purging statement looks at: few enough that a claim hardly waits for it.
const PURGE_BATCH: u32 = 500;

/// Idempotency records in PostgreSQL. Clones share its connections.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) lines: Lines,
    pub(crate) statements: Arc<Statements>,
    pub(crate) waking: Arc<Waking>,
    owns_its_pool: bool,
}

impl PostgresStore {
    /// The longest outcome: a bound that keeps one outcome from holding up everybody else's.
    pub const MAX_OUTCOME_BYTES: usize = 16 * 1024 * 1024;

    pub(crate) fn open(lines: Lines, statements: Statements, waking: Waking) -> Self {
        Self { lines, statements: Arc::new(statements), waking: Arc::new(waking), owns_its_pool: false }
    }

    pub(crate) fn owning_its_pool(self) -> Self {
        Self { owns_its_pool: true, ..self }
    }

    /// Opens the store on a pool of yours, with the defaults of [`builder`](Self::builder).
    ///
    /// # Errors
    /// [`OpenError`] when the server does not answer or refuses, or when the schema is of another version.
    pub async fn new(pool: PgPool) -> Result<Self, OpenError> {
        Self::builder().open(pool).await
    }

    /// Opens the store on connections of its own to the database at `url`, `postgres://user:password@host/database`, with
    /// the defaults of [`builder`](Self::builder).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub async fn connect(url: &str) -> Result<Self, OpenError> {
        Self::builder().connect(url).await
    }

    /// Starts from the defaults: the table `idempotency_records` in the schema that connections use, made where it is
    /// absent; 1.5 s of patience; 10 connections, and one to listen on once somebody waits.
    pub fn builder() -> PostgresStoreBuilder {
        PostgresStoreBuilder::new()
    }

    /// The pool that the store calls its server through: for transactions that [`complete_in`](Self::complete_in) ends.
    pub const fn pool(&self) -> &PgPool {
        self.lines.pool()
    }

    /// How many statements were sent once more since the store was opened, because they lost against others
    /// (SQLSTATE 40001 or 40P01) or because what they met was gone before it was read.
    pub fn repeats(&self) -> u64 {
        self.lines.repeats()
    }

    /// Waits for the calls that run and closes the connections that the store opened itself; later calls fail as
    /// [`Unavailable`](StoreErrorKind::Unavailable). A pool of yours stays as it is, and so does the store on it, but for
    /// listening.
    pub async fn close(&self) {
        self.waking.stop();
        if self.owns_its_pool {
            self.lines.pool().close().await;
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl Store for PostgresStore {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        let address = *op.address();
        let fingerprint = op.fingerprint().to_bytes();
        let previous = op.previous().map(Fingerprint::to_bytes);
        let due = match bid.on_lapse {
            OnLapse::TakeOver => term(bid.retention),
            OnLapse::Hold => NEVER,
        };
        let claim = || {
            let claim = self.statements.claim.query().bind(address.as_bytes().as_slice());
            let claim = claim.bind(fingerprint.as_slice()).bind(bid.holder.as_bytes().as_slice());
            let claim =
                claim.bind(small(on_lapse_code(bid.on_lapse))).bind(integer(as_micros(bid.retention)));
            claim.bind(term(bid.lease)).bind(previous.as_ref().map(<[u8; 105]>::as_slice)).bind(due)
        };
        let deadline = self.lines.deadline();
        let mut granted = None;
        for _ in 0..TIMES {
            let row = match (self.lines.ask(deadline, claim).await, granted.take()) {
                (Ok(row), _) => row,
                (Err(_), Some(before)) => return Ok(Claim::Granted(before)),
                (Err(error), None) => return Err(error),
            };
            match row.map_or(Ok(Claimed::Nothing), |row| Claimed::read(&row, &address))? {
                Claimed::Granted { fence, attempt, stood } => {
                    let lease = Lease { address, holder: bid.holder, fence, attempt };
                    if stood <= WAITED {
                        return Ok(Claim::Granted(lease));
                    }
                    // The time of a fresh record is read before its insert, which may wait for another to be undone. The
                    // same claim once more, which changes nothing else, gives it its whole lease.
                    granted = Some(lease);
                }
                Claimed::Refused(record, now) => {
                    let Step { write, verdict } = machine::claim(Some(&record), op, bid, now);
                    // Else it was free by the time it was read.
                    if write.is_none() {
                        return Ok(verdict);
                    }
                }
                Claimed::Nothing => {}
            }
            self.lines.count_a_repeat();
        }
        granted.map(Claim::Granted).ok_or_else(overtaken)
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        let found = self.record_at(self.lines.deadline(), &self.statements.record, op.address()).await?;
        Ok(found.map_or(Claim::Granted(Vacant), |(record, now)| machine::look(Some(&record), op, now)))
    }

    async fn renew(&self, lease: &Lease, length: Duration) -> Result<Settled, StoreError> {
        let renew = || held(&self.statements.renew, lease).bind(term(length));
        let law = |record: Option<&Record>, now| machine::renew(record, &lease.holder, length, now);
        self.settle(&lease.address, renew, law).await.map(|(settled, _)| settled)
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        check_size(outcome)?;
        let complete = || ended_with(held(&self.statements.complete, lease), outcome, keep);
        let law = |record: Option<&Record>, now| machine::complete(record, &lease.holder, outcome, keep, now);
        let ended = self.settle(&lease.address, complete, law).await;
        self.tell(&lease.address, ended)
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        let statement = match why {
            Release::NotApplied => &self.statements.release_not_applied,
            Release::Unknown => &self.statements.release_unknown,
        };
        let law = |record: Option<&Record>, now| machine::release(record, &lease.holder, why, now);
        let ended = self.settle(&lease.address, || held(statement, lease), law).await;
        self.tell(&lease.address, ended)
    }

    /// Removes by statements that look at 500 records at most, between which others get their turn. When one fails after
    /// others succeeded, the answer counts those, and the next call meets the failure.
    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        let mut removed = 0;
        while removed < at_most {
            let batch = PURGE_BATCH.min(at_most - removed);
            match self.purge_batch(batch).await {
                Ok(Purged { looked_at, removed: count }) => {
                    removed += count;
                    if looked_at < batch {
                        break;
                    }
                }
                Err(error) if removed == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(removed)
    }

    fn max_outcome_bytes(&self) -> usize {
        Self::MAX_OUTCOME_BYTES
    }
}

/// Whether somebody waits for what ended.
pub(crate) type Flagged = bool;

impl PostgresStore {
    /// Sends the deciding write of an ending. If it writes nothing, `law` says why.
    pub(crate) async fn settle<'v>(
        &self,
        address: &Address,
        write: impl Fn() -> Bound<'v>,
        law: impl Fn(Option<&Record>, Timestamp) -> Step<Settled>,
    ) -> Result<(Settled, Flagged), StoreError> {
        let deadline = self.lines.deadline();
        for _ in 0..TIMES {
            if let Some(written) = self.lines.ask(deadline, &write).await? {
                return Ok((Settled::Applied, is_flagged(&written)));
            }
            let found = self.record_at(deadline, &self.statements.standing, address).await?;
            if let Some(verdict) = explain(found.as_ref(), &law) {
                return Ok((verdict, false));
            }
            self.lines.count_a_repeat();
        }
        Err(overtaken())
    }

    /// Wakes who waits for the record at `address`, here and, if it is flagged, elsewhere.
    pub(crate) fn tell(
        &self,
        address: &Address,
        ended: Result<(Settled, Flagged), StoreError>,
    ) -> Result<Settled, StoreError> {
        self.waking.bells().ring(address);
        let (settled, flagged) = ended?;
        if flagged {
            self.waking.tell(address);
        }
        Ok(settled)
    }

    pub(crate) async fn record_at(
        &self,
        deadline: Instant,
        statement: &Statement,
        address: &Address,
    ) -> Result<Option<(Record, Timestamp)>, StoreError> {
        let row = self.lines.read(deadline, || statement.query().bind(address.as_bytes().as_slice())).await?;
        Ok(row.map(|row| row::record(&row, address)).transpose()?)
    }

    async fn purge_batch(&self, at_most: u32) -> Result<Purged, StoreError> {
        let purge = || self.statements.purge.planned_anew().bind(i64::from(at_most));
        let row = self.lines.ask(self.lines.deadline(), purge).await?;
        let count = |column| row.as_ref().and_then(|row| row.try_get::<i64, _>(column).ok()).unwrap_or(0);
        let [looked_at, removed] = [0, 1].map(|column| u32::try_from(count(column)).unwrap_or(at_most));
        Ok(Purged { looked_at, removed })
    }
}

/// What one batch of a purge came to.
struct Purged {
    looked_at: u32,
    removed: u32,
}

/// A statement about the record at the lease's address and its holder.
pub(crate) fn held<'v>(statement: &Statement, lease: &'v Lease) -> Bound<'v> {
    statement.query().bind(lease.address.as_bytes().as_slice()).bind(lease.holder.as_bytes().as_slice())
}

/// Binds what a completed record has, as `sql/complete.sql` and `sql/resolve_applied.sql` take it.
pub(crate) fn ended_with<'v>(statement: Bound<'v>, outcome: &'v Outcome, keep: Keep) -> Bound<'v> {
    statement
        .bind(term(keep.replay))
        .bind(term(keep.replay.saturating_add(keep.then_reject)))
        .bind(small(form_code(outcome.form)))
        .bind(i32::from(outcome.media.0))
        .bind(&outcome.bytes[..])
}

pub(crate) fn check_size(outcome: &Outcome) -> Result<(), StoreError> {
    if outcome.bytes.len() <= PostgresStore::MAX_OUTCOME_BYTES {
        Ok(())
    } else {
        Err(StoreError::new(StoreErrorKind::TooLarge, Fate::NotApplied))
    }
}

/// What the law says of a record that an ending did not change. Nothing, if it changed since so that it would now.
pub(crate) fn explain(
    found: Option<&(Record, Timestamp)>,
    law: impl Fn(Option<&Record>, Timestamp) -> Step<Settled>,
) -> Option<Settled> {
    let now = found.map_or(Timestamp::from_micros(0), |(_, now)| *now); // nothing depends on it
    match law(found.map(|(record, _)| record), now) {
        Step { write: None, verdict } => Some(verdict),
        Step { write: Some(_), .. } => None,
    }
}

/// What an ending's statement returns.
pub(crate) fn is_flagged(written: &PgRow) -> Flagged {
    written.try_get(0).unwrap_or(false)
}

/// Others changed the record each time: nothing of this call was applied.
pub(crate) fn overtaken() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, Fate::NotApplied)
}

/// A duration in microseconds that no sum with the time makes too large.
fn term(length: Duration) -> i64 {
    integer(as_micros(length)).min(NEVER)
}

fn small(code: i64) -> i16 {
    i16::try_from(code).unwrap_or(i16::MAX) // which no statement accepts
}
