//! The store: each call binds its values to one deciding statement.

use std::{sync::Arc, time::Duration};

use idempotency_core::{
    Address, Bells, Bid, Claim, CorruptRecord, Fate, Fingerprint, Keep, Lease, Notify, Operation, Outcome,
    Phase, Record, Release, Settled, Store, StoreError, StoreErrorKind, Vacant,
    clock::{Timestamp, as_micros},
    columns::{integer, on_lapse_code},
    machine::{self, Step},
};
use sqlx::MySqlPool;
use tokio::time::Instant;

use crate::{
    MySqlStoreBuilder, OpenError,
    ending::completion,
    lines::{Answer, Lines},
    row,
    server::Claims,
    statements::{Statements, Value},
};

/// How often a transition is tried whose record others change between a statement and the look at what it met.
pub(crate) const TIMES: u32 = 20;

/// A grant whose time is older than this when it is answered waited for somebody to undo what he wrote.
const WAITED: Duration = Duration::from_millis(200);

/// What a statement and a row have beside the outcome, generously.
const BESIDE_OUTCOME: usize = 4 * 1024;

/// Idempotency records in MySQL or MariaDB. Clones share its connections.
#[derive(Debug, Clone)]
pub struct MySqlStore {
    pub(crate) lines: Lines,
    pub(crate) statements: Arc<Statements>,
    bells: Arc<Bells>,
    claims: Claims,
    pub(crate) max_outcome_bytes: usize,
    owns_its_pool: bool,
}

impl MySqlStore {
    /// The longest outcome, where the server's `max_allowed_packet` is larger: a bound that keeps one outcome from
    /// holding up everybody else's.
    pub const MAX_OUTCOME_BYTES: usize = 16 * 1024 * 1024;

    pub(crate) fn open(lines: Lines, statements: Statements, claims: Claims, max_packet: usize) -> Self {
        Self {
            lines,
            statements: Arc::new(statements),
            bells: Arc::default(),
            claims,
            max_outcome_bytes: max_packet.saturating_sub(BESIDE_OUTCOME).min(Self::MAX_OUTCOME_BYTES),
            owns_its_pool: false,
        }
    }

    pub(crate) fn owning_its_pool(self) -> Self {
        Self { owns_its_pool: true, ..self }
    }

    /// Opens the store on a pool of yours, with the defaults of [`builder`](Self::builder).
    ///
    /// # Errors
    /// [`OpenError`] when the server does not answer, refuses, or is set so that the store could not keep its word, or
    /// when the schema is of another version.
    pub async fn new(pool: MySqlPool) -> Result<Self, OpenError> {
        Self::builder().open(pool).await
    }

    /// Opens the store on connections of its own to the database at `url`, `mysql://user:password@host/database`, with
    /// the defaults of [`builder`](Self::builder).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub async fn connect(url: &str) -> Result<Self, OpenError> {
        Self::builder().connect(url).await
    }

    /// Starts from the defaults: the table `idempotency_records`, made where it is absent; 1.5 s of patience; 10
    /// connections.
    pub fn builder() -> MySqlStoreBuilder {
        MySqlStoreBuilder::new()
    }

    /// How many statements were sent once more since the store was opened: because they lost against others (1213, 1205
    /// and their like), because others changed what they met before it was read, or because a first grant had waited.
    pub fn repeats(&self) -> u64 {
        self.lines.repeats()
    }

    /// Waits for the calls that run and closes the connections that the store opened itself; later calls fail as
    /// [`Unavailable`](StoreErrorKind::Unavailable). A pool of yours stays as it is, and so does the store on it.
    pub async fn close(&self) {
        if self.owns_its_pool {
            self.lines.pool().close().await;
        }
    }
}

impl Store for MySqlStore {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        let fingerprint = op.fingerprint().to_bytes();
        let previous = op.previous().map_or(fingerprint, Fingerprint::to_bytes);
        let previous = Value::Bytes(&previous[1..33]);
        let lease = Value::Integer(integer(as_micros(bid.lease)));
        let values = [
            Value::Bytes(op.address().as_bytes()),
            Value::Bytes(bid.holder.as_bytes()),
            Value::Integer(on_lapse_code(bid.on_lapse)),
            Value::Integer(integer(as_micros(bid.retention))),
            Value::Bytes(&fingerprint),
            lease,
            previous,
            previous,
            lease,
            lease,
        ];
        let deadline = self.lines.deadline();
        let mut granted = None;
        for time in 0..TIMES {
            if time > 0 {
                self.lines.repeated();
            }
            let (record, now) = match (self.claimed(deadline, op, &values).await, granted.take()) {
                (Ok(Some(found)), _) => found,
                (Ok(None), _) => continue, // it was granted, and is over and removed already
                (Err(_), Some(before)) => return Ok(before),
                (Err(error), None) => return Err(error),
            };
            match machine::claim(Some(&record), op, bid, now) {
                Step { write: None, verdict } => return Ok(verdict),
                // The time of a fresh record is read before its insert, which may wait for another to be undone. The
                // same claim once more, which changes nothing else, gives it its whole lease.
                Step { verdict, .. } if is_held(&record, op, bid) => match has_waited(&record, bid, now) {
                    true => granted = Some(verdict),
                    false => return Ok(verdict),
                },
                Step { .. } => {} // it was free by the time it was read
            }
        }
        granted.ok_or_else(overtaken)
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        let found = self.record_at(self.lines.deadline(), op.address()).await?;
        Ok(found.map_or(Claim::Granted(Vacant), |(record, now)| machine::look(Some(&record), op, now)))
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        let micros = Value::Integer(integer(as_micros(term)));
        let values =
            [micros, micros, Value::Bytes(lease.address.as_bytes()), Value::Bytes(lease.holder.as_bytes())];
        let law = |record: Option<&Record>, now| machine::renew(record, &lease.holder, term, now);
        self.settle(&lease.address, &self.statements.renew, &values, law).await
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        self.check_size(outcome)?;
        let law = |record: Option<&Record>, now| machine::complete(record, &lease.holder, outcome, keep, now);
        let values = completion(lease, outcome, keep);
        let settled = self.settle(&lease.address, &self.statements.complete, &values, law).await;
        self.bells.ring(&lease.address);
        settled
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        let statement = match why {
            Release::NotApplied => &self.statements.release_not_applied,
            Release::Unknown => &self.statements.release_unknown,
        };
        let values = [Value::Bytes(lease.address.as_bytes()), Value::Bytes(lease.holder.as_bytes())];
        let law = |record: Option<&Record>, now| machine::release(record, &lease.holder, why, now);
        let settled = self.settle(&lease.address, statement, &values, law).await;
        self.bells.ring(&lease.address);
        settled
    }

    /// Removes by statements of at most 200 records, between which others get their turn. When one fails after others
    /// succeeded, the answer counts those, and the next call meets the failure.
    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        self.purge_in_batches(at_most).await
    }

    fn max_outcome_bytes(&self) -> usize {
        self.max_outcome_bytes
    }
}

impl MySqlStore {
    /// Sends a claim. What stands at its address afterwards, or nothing if it was removed since.
    async fn claimed(
        &self,
        deadline: Instant,
        op: &Operation,
        values: &[Value<'_>; 10],
    ) -> Result<Option<(Record, Timestamp)>, StoreError> {
        let answer = match self.claims {
            Claims::Returning => {
                self.lines.ask(deadline, || self.statements.claim_returning.with(*values)).await
            }
            Claims::ThenRead => {
                let address = Value::Bytes(op.address().as_bytes());
                let values = || values.iter().copied().chain([address]);
                self.lines.ask(deadline, || self.statements.claim_then_record.spelt(values())).await
            }
        };
        if matches!(&answer, Err(error) if error.kind == StoreErrorKind::Corrupt) {
            // MariaDB checks a record that a claim met and leaves alone. Reading it tells what is wrong with it.
            self.record_at(deadline, op.address()).await?;
        }
        Ok(read(&answer?)?)
    }

    pub(crate) async fn record_at(
        &self,
        deadline: Instant,
        address: &Address,
    ) -> Result<Option<(Record, Timestamp)>, StoreError> {
        let address = Value::Bytes(address.as_bytes());
        Ok(read(&self.lines.read(deadline, || self.statements.record.with([address])).await?)?)
    }

    pub(crate) fn ring(&self, address: &Address) {
        self.bells.ring(address);
    }
}

/// Wakes for endings by this store and its clones; those of another process are found by looking.
impl Notify for MySqlStore {
    async fn ended(&self, address: &Address) {
        self.bells.rung(address).await;
    }
}

/// The record an answer holds.
pub(crate) fn read(answer: &Answer) -> Result<Option<(Record, Timestamp)>, CorruptRecord> {
    answer.rows.last().map(row::record_and_time).transpose()
}

/// Whether a record is in flight under this bid: the claim before, which left it so, granted or adopted it.
fn is_held(record: &Record, op: &Operation, bid: &Bid) -> bool {
    record.holder == bid.holder
        && matches!(&record.phase, Phase::InFlight { fingerprint, .. } if op.accepts(fingerprint))
}

/// Whether a grant's lease began noticeably before it was answered.
fn has_waited(record: &Record, bid: &Bid, now: Timestamp) -> bool {
    match record.phase {
        Phase::InFlight { until, .. } => until.plus(WAITED) < now.plus(bid.lease),
        _ => false,
    }
}

/// Others changed the record each time: nothing of this call was applied.
pub(crate) fn overtaken() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, Fate::NotApplied)
}
