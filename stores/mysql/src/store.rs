//! The store: each call binds its values to one deciding statement.

use std::{iter, sync::Arc, time::Duration};

use idempotency_core::{
    Address, Bells, Bid, Claim, Fate, Keep, Lease, Notify, Operation, Outcome, Phase, Record, Release,
    Settled, Store, StoreError, StoreErrorKind, Vacant,
    clock::{Timestamp, as_micros},
    columns::{form_code, integer, on_lapse_code},
    machine::{self, Step},
};
use sqlx::{MySqlPool, Row};

use crate::{
    MySqlStoreBuilder, OpenError,
    lines::{Answer, Lines},
    row,
    server::Claims,
    statements::{PURGE_BATCH, Statement, Statements, Value},
};

/// How often a transition is tried whose record others change between a statement and the look at what it met.
const TIMES: u32 = 20;

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
    max_outcome_bytes: usize,
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
        let previous = op.previous().map_or(fingerprint, |previous| previous.to_bytes());
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
        let mut waited = false;
        for _ in 0..TIMES {
            let Some((record, now)) = self.claimed(op, &values).await? else { continue };
            match machine::claim(Some(&record), op, bid, now) {
                Step { write: None, verdict } => return Ok(verdict),
                Step { verdict, .. } if is_held(&record, op, bid) => {
                    // The time of a fresh record is read before its insert, which may wait for another to be undone.
                    // The same claim once more, which changes nothing else, gives it its whole lease.
                    if waited || !has_waited(&record, bid, now) {
                        return Ok(verdict);
                    }
                    waited = true;
                }
                Step { .. } => {} // it was free by the time it was read
            }
        }
        Err(overtaken())
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        let found = self.record_at(op.address()).await?;
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

    /// Removes by statements of at most 500 records, between which others get their turn. When one fails after others
    /// succeeded, the answer counts those, and the next call meets the failure.
    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        let mut removed = 0;
        while removed < at_most {
            let batch = PURGE_BATCH.min(at_most - removed);
            match self.purge_batch(batch).await {
                Ok(Purged { found, removed: count }) => {
                    removed += count;
                    if found < batch || count == 0 {
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
        self.max_outcome_bytes
    }
}

impl MySqlStore {
    /// Sends a claim. What stands at its address afterwards, or nothing if it was removed since.
    async fn claimed(
        &self,
        op: &Operation,
        values: &[Value<'_>; 10],
    ) -> Result<Option<(Record, Timestamp)>, StoreError> {
        let answer = match self.claims {
            Claims::Returning => self.lines.ask(|| self.statements.claim_returning.with(*values)).await,
            Claims::ThenRead => {
                let address = Value::Bytes(op.address().as_bytes());
                let values = || values.iter().copied().chain([address]);
                self.lines.ask(|| self.statements.claim_then_record.spelt(values())).await
            }
        };
        if matches!(&answer, Err(error) if error.kind == StoreErrorKind::Corrupt) {
            // MariaDB checks a record that a claim met and leaves alone. Reading it tells what is wrong with it.
            self.record_at(op.address()).await?;
        }
        Ok(read(&answer?)?)
    }

    /// Sends the deciding write of an ending. If it matches nothing, `law` says why.
    pub(crate) async fn settle(
        &self,
        address: &Address,
        write: &Statement,
        values: &[Value<'_>],
        law: impl Fn(Option<&Record>, Timestamp) -> Step<Settled>,
    ) -> Result<Settled, StoreError> {
        for _ in 0..TIMES {
            if self.lines.ask(|| write.with(values.iter().copied())).await?.matched > 0 {
                return Ok(Settled::Applied);
            }
            let found = self.record_at(address).await?;
            if let Some(verdict) = explain(found, &law) {
                return Ok(verdict);
            }
        }
        Err(overtaken())
    }

    pub(crate) async fn record_at(
        &self,
        address: &Address,
    ) -> Result<Option<(Record, Timestamp)>, StoreError> {
        let address = Value::Bytes(address.as_bytes());
        Ok(read(&self.lines.ask(|| self.statements.record.with([address])).await?)?)
    }

    /// Removes what is due, at most a batch.
    async fn purge_batch(&self, at_most: u32) -> Result<Purged, StoreError> {
        let due = self.lines.ask(|| self.statements.due.with([Value::Integer(at_most.into())])).await?;
        let addresses: Vec<&[u8]> = due.rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
        let found = u32::try_from(addresses.len()).unwrap_or(at_most);
        let Some(last) = addresses.last() else { return Ok(Purged { found, removed: 0 }) };
        // Always as many as the statement has room for.
        let places = || addresses.iter().chain(iter::repeat(last)).take(PURGE_BATCH as usize);
        let values = || places().map(|address| Value::Bytes(address));
        let done = self.lines.ask(|| self.statements.remove.spelt(values())).await?;
        Ok(Purged { found, removed: u32::try_from(done.matched).unwrap_or(at_most) })
    }

    pub(crate) fn check_size(&self, outcome: &Outcome) -> Result<(), StoreError> {
        if outcome.bytes.len() <= self.max_outcome_bytes {
            Ok(())
        } else {
            Err(StoreError::new(StoreErrorKind::TooLarge, Fate::NotApplied))
        }
    }

    pub(crate) fn ring(&self, address: &Address) {
        self.bells.ring(address);
    }
}

/// What one batch of a purge came to.
struct Purged {
    found: u32,
    removed: u32,
}

/// Wakes for endings by this store and its clones; those of another process are found by looking.
impl Notify for MySqlStore {
    async fn ended(&self, address: &Address) {
        self.bells.rung(address).await;
    }
}

/// The values of `sql/complete.sql`.
pub(crate) fn completion<'v>(lease: &'v Lease, outcome: &'v Outcome, keep: Keep) -> [Value<'v>; 9] {
    let [replay, replay_again, reject, reject_again, form, media, bytes] = ended_with(outcome, keep);
    [
        replay,
        replay_again,
        reject,
        reject_again,
        form,
        media,
        bytes,
        Value::Bytes(lease.address.as_bytes()),
        Value::Bytes(lease.holder.as_bytes()),
    ]
}

/// What a completed record has, as `sql/complete.sql` and `sql/resolve_applied.sql` take it.
pub(crate) fn ended_with(outcome: &Outcome, keep: Keep) -> [Value<'_>; 7] {
    let replay = Value::Integer(integer(as_micros(keep.replay)));
    let reject = Value::Integer(integer(as_micros(keep.then_reject)));
    let (form, media) = (Value::Integer(form_code(outcome.form)), Value::Integer(i64::from(outcome.media.0)));
    [replay, replay, reject, reject, form, media, Value::Bytes(&outcome.bytes)]
}

/// The record an answer holds.
pub(crate) fn read(answer: &Answer) -> Result<Option<(Record, Timestamp)>, idempotency_core::CorruptRecord> {
    answer.rows.last().map(row::record_and_time).transpose()
}

/// What the law says of a record that an ending did not change. Nothing, if it changed since so that it would now.
pub(crate) fn explain(
    found: Option<(Record, Timestamp)>,
    law: impl Fn(Option<&Record>, Timestamp) -> Step<Settled>,
) -> Option<Settled> {
    let now = found.as_ref().map_or(Timestamp::from_micros(0), |(_, now)| *now); // nothing depends on it
    match law(found.as_ref().map(|(record, _)| record), now) {
        Step { write: None, verdict } => Some(verdict),
        Step { write: Some(_), .. } => None,
    }
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
fn overtaken() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, Fate::NotApplied)
}
