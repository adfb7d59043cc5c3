//! The store: each call binds its values to one deciding statement.

use std::{path::Path, sync::Arc, time::Duration};

use idempotency_core::{
    Address, Bells, Bid, Claim, Fate, Fence, Holder, Inspect, Keep, Lease, Notify, Operation, Outcome,
    Record, Release, Resolution, Select, Settled, Store, StoreError, StoreErrorKind, Vacant,
    clock::{Timestamp, as_micros},
    columns::{form_code, integer, natural, on_lapse_code},
    machine,
};
use sqlx::SqlitePool;

use crate::{
    OpenError, SqliteLedger, SqliteStoreBuilder,
    error::not_applied,
    row,
    writer::{Writer, read_at, record_at},
};

/// How many records one purging transaction removes: few enough that a claim hardly waits for it.
const PURGE_BATCH: u32 = 500;

/// Idempotency records in a SQLite file. Clones share its connections.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    writer: Writer,
    readers: SqlitePool,
    bells: Arc<Bells>,
}

impl SqliteStore {
    /// The longest outcome. SQLite could hold 1 GB, but every other writer waits while one outcome is synced to disk.
    pub const MAX_OUTCOME_BYTES: usize = 16 * 1024 * 1024;

    pub(crate) fn new(writer: Writer, readers: SqlitePool) -> Self {
        Self { writer, readers, bells: Arc::default() }
    }

    /// Opens the store in the file at `path` with the defaults of [`builder`](Self::builder); file and tables are
    /// created where they are absent.
    ///
    /// # Errors
    /// [`OpenError`] when there is no usable database, it stays locked, or its schema is of another version.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::builder().open(path).await
    }

    /// Starts from the defaults: 1.5 s of patience, the database's clock, absent file and tables created.
    pub const fn builder() -> SqliteStoreBuilder {
        SqliteStoreBuilder::new()
    }

    /// The ledgers of agents in the same file; their tables are made where they are absent.
    ///
    /// # Errors
    /// [`OpenError`] when the file stays locked or cannot be written.
    pub async fn ledger(&self) -> Result<SqliteLedger, OpenError> {
        SqliteLedger::open(self.writer.clone(), self.readers.clone()).await
    }

    /// Waits for the calls that run and closes the connections; later calls fail as
    /// [`Unavailable`](StoreErrorKind::Unavailable). The last process to close the file folds its log into it.
    pub async fn close(&self) {
        self.writer.pool().close().await;
        self.readers.close().await;
    }
}

impl Store for SqliteStore {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        let address = *op.address();
        let mut transition = self.writer.begin().await.map_err(not_applied)?;
        let now = transition.now();
        let granted = sqlx::query_as(include_str!("../sql/claim.sql"))
            .bind(address.as_bytes().as_slice())
            .bind(op.fingerprint().to_bytes().to_vec())
            .bind(bid.holder.as_bytes().as_slice())
            .bind(on_lapse_code(bid.on_lapse))
            .bind(integer(as_micros(bid.retention)))
            .bind(integer(now.as_micros()))
            .bind(integer(now.plus(bid.lease).as_micros()))
            .bind(op.previous().map(|previous| previous.to_bytes().to_vec()))
            .fetch_optional(transition.connection())
            .await
            .map_err(not_applied)?;
        let Some((fence, attempt)) = granted else {
            return transition.explain(&address, |record| machine::claim(record, op, bid, now)).await;
        };
        transition.commit().await?;
        let fence = Fence::from_u64(natural(fence));
        Ok(Claim::Granted(Lease { address, holder: bid.holder, fence, attempt }))
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        let query = record_at(op.address(), self.writer.clock_now());
        let Some(row) = query.fetch_optional(&self.readers).await.map_err(not_applied)? else {
            return Ok(Claim::Granted(Vacant));
        };
        let (_, record) = row::record(&row)?;
        Ok(machine::look(Some(&record), op, read_at(&row).map_err(not_applied)?))
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        let transition = self.writer.begin().await.map_err(not_applied)?;
        let now = transition.now();
        let write = sqlx::query(include_str!("../sql/renew.sql"))
            .bind(lease.address.as_bytes().as_slice())
            .bind(lease.holder.as_bytes().as_slice())
            .bind(integer(now.plus(term).as_micros()));
        let law = |record: Option<&Record>| machine::renew(record, &lease.holder, term, now);
        transition.settle(&lease.address, write, law).await
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        check_size(outcome)?;
        let transition = self.writer.begin().await.map_err(not_applied)?;
        let now = transition.now();
        let (until, gone) = kept(keep, now);
        let write = sqlx::query(include_str!("../sql/complete.sql"))
            .bind(lease.address.as_bytes().as_slice())
            .bind(lease.holder.as_bytes().as_slice())
            .bind(until)
            .bind(gone)
            .bind(form_code(outcome.form))
            .bind(outcome.media.0)
            .bind(&outcome.bytes[..]);
        let law = |record: Option<&Record>| machine::complete(record, &lease.holder, outcome, keep, now);
        let settled = transition.settle(&lease.address, write, law).await;
        self.bells.ring(&lease.address);
        settled
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        let transition = self.writer.begin().await.map_err(not_applied)?;
        let now = transition.now();
        let statement = match why {
            Release::NotApplied => include_str!("../sql/release_not_applied.sql"),
            Release::Unknown => include_str!("../sql/release_unknown.sql"),
        };
        let write = sqlx::query(statement)
            .bind(lease.address.as_bytes().as_slice())
            .bind(lease.holder.as_bytes().as_slice())
            .bind(integer(now.as_micros()));
        let law = |record: Option<&Record>| machine::release(record, &lease.holder, why, now);
        let settled = transition.settle(&lease.address, write, law).await;
        self.bells.ring(&lease.address);
        settled
    }

    /// Removes in transactions of 500 records, between which others get their turn. When one fails after others
    /// succeeded, the answer counts those, and the next call meets the failure.
    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        let mut removed = 0;
        while removed < at_most {
            let batch = PURGE_BATCH.min(at_most - removed);
            match self.purge_batch(batch).await {
                Ok(count) if count < batch => return Ok(removed + count),
                Ok(count) => removed += count,
                Err(error) if removed == 0 => return Err(error),
                Err(_) => return Ok(removed),
            }
        }
        Ok(removed)
    }

    fn max_outcome_bytes(&self) -> usize {
        Self::MAX_OUTCOME_BYTES
    }
}

impl SqliteStore {
    async fn purge_batch(&self, at_most: u32) -> Result<u32, StoreError> {
        let mut transition = self.writer.begin().await.map_err(not_applied)?;
        let done = sqlx::query(include_str!("../sql/purge.sql"))
            .bind(integer(transition.now().as_micros()))
            .bind(at_most)
            .execute(transition.connection())
            .await
            .map_err(not_applied)?;
        transition.commit().await?;
        Ok(u32::try_from(done.rows_affected()).unwrap_or(at_most))
    }
}

/// Wakes for endings by this store and its clones; those of another process are found by looking.
impl Notify for SqliteStore {
    async fn ended(&self, address: &Address) {
        self.bells.rung(address).await;
    }
}

impl Inspect for SqliteStore {
    async fn find(&self, address: &Address) -> Result<Option<Record>, StoreError> {
        let query = record_at(address, self.writer.clock_now());
        let found = query.fetch_optional(&self.readers).await.map_err(not_applied)?;
        Ok(found.as_ref().map(row::record).transpose()?.map(|(_, record)| record))
    }

    /// Fails as [`Corrupt`](StoreErrorKind::Corrupt) where the page holds a record that cannot be read: leaving it out
    /// would hide it. Its source, a [`CorruptRecord`](idempotency_core::CorruptRecord), names the address to go on after.
    async fn list(
        &self,
        select: Select,
        after: Option<&Address>,
        at_most: u32,
    ) -> Result<Vec<(Address, Record)>, StoreError> {
        let statement = match select {
            Select::All => include_str!("../sql/list.sql"),
            Select::InDoubt => include_str!("../sql/list_in_doubt.sql"),
        };
        let rows = sqlx::query(statement)
            .bind(after.map(|address| address.as_bytes().as_slice()))
            .bind(at_most)
            .bind(self.writer.clock_now().map(|now| integer(now.as_micros())))
            .fetch_all(&self.readers)
            .await
            .map_err(not_applied)?;
        rows.iter().map(|row| Ok(row::record(row)?)).collect()
    }

    async fn resolve(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> Result<Settled, StoreError> {
        if let Resolution::Applied(outcome, _) = resolution {
            check_size(outcome)?;
        }
        let transition = self.writer.begin().await.map_err(not_applied)?;
        let now = transition.now();
        let statement = match resolution {
            Resolution::Applied(..) => include_str!("../sql/resolve_applied.sql"),
            Resolution::NotApplied => include_str!("../sql/resolve_not_applied.sql"),
        };
        let mut write = sqlx::query(statement)
            .bind(address.as_bytes().as_slice())
            .bind(i64::try_from(fence.as_u64()).ok()) // a fence no column holds equals none
            .bind(integer(now.as_micros()));
        if let Resolution::Applied(outcome, keep) = resolution {
            let (until, gone) = kept(*keep, now);
            write = write
                .bind(until)
                .bind(gone)
                .bind(form_code(outcome.form))
                .bind(outcome.media.0)
                .bind(&outcome.bytes[..])
                .bind(Holder::RESOLVED.as_bytes().as_slice());
        }
        let law = |record: Option<&Record>| machine::resolve(record, fence, resolution, now);
        let settled = transition.settle(address, write, law).await;
        self.bells.ring(address);
        settled
    }
}

fn check_size(outcome: &Outcome) -> Result<(), StoreError> {
    if outcome.bytes.len() <= SqliteStore::MAX_OUTCOME_BYTES {
        Ok(())
    } else {
        Err(StoreError::new(StoreErrorKind::TooLarge, Fate::NotApplied))
    }
}

fn kept(keep: Keep, now: Timestamp) -> (i64, i64) {
    let until = now.plus(keep.replay);
    (integer(until.as_micros()), integer(until.plus(keep.then_reject).as_micros()))
}

#[cfg(test)]
mod tests;
