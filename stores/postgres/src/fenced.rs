//! Endings that commit with the caller's own writes, or not at all.

use idempotency_core::{Keep, Lease, Outcome, Record, Settled, StoreError, clock::Timestamp, machine};
use sqlx::{PgConnection, postgres::PgRow};

use crate::{
    PostgresStore,
    error::not_applied,
    lines::Answer,
    row,
    statements::Bound,
    store::{check_size, ended_with, explain, held, is_flagged, overtaken},
    waking::told,
};

/// How often a statement is tried whose record others change before it is read why nothing was written.
const TIMES: u32 = 20;

impl PostgresStore {
    /// Completes a run within `transaction`: its own writes and its outcome commit together, or neither does.
    ///
    /// [`Settled::Fenced`] says that the run was taken over, or ended before: roll back, or the effect happens twice.
    /// Call it last, right before the commit: from here on renewals and claims of this key wait for the transaction's end.
    ///
    /// A commit that fails without an answer may have happened. Do not complete then, which would count if it did not;
    /// [release](idempotency_core::Store::release) the lease as unknown, which is fenced off if it did.
    ///
    /// `transaction` must be one on the database of this store. Waiters on other hosts are told when it commits, those of
    /// this process find out by looking.
    ///
    /// # Errors
    /// [`StoreError`], whose fate is always [`NotApplied`](idempotency_core::Fate::NotApplied): what is not committed
    /// was not applied. The transaction then is of no more use. Under REPEATABLE READ and SERIALIZABLE a renewal since
    /// the transaction began is such an error, SQLSTATE 40001; [`fence_in`](Self::fence_in) at its beginning prevents it.
    pub async fn complete_in(
        &self,
        transaction: &mut PgConnection,
        lease: &Lease,
        outcome: &Outcome,
        keep: Keep,
    ) -> Result<Settled, StoreError> {
        check_size(outcome)?;
        for _ in 0..TIMES {
            let complete = ended_with(held(&self.statements.complete, lease), outcome, keep);
            if let Some(written) = self.ask_in(transaction, complete).await? {
                if is_flagged(&written) {
                    self.notify_in(transaction, lease).await?;
                }
                return Ok(Settled::Applied);
            }
            let found = self.standing_in(transaction, lease).await?;
            let law =
                |record: Option<&Record>, now| machine::complete(record, &lease.holder, outcome, keep, now);
            if let Some(verdict) = explain(found.as_ref(), law) {
                return Ok(verdict);
            }
        }
        Err(overtaken())
    }

    /// Locks the record for the rest of `transaction` if the lease still holds it, so that nobody can take the run over
    /// before the transaction ends. [`Settled::Fenced`] says that somebody did before, or that the run has ended.
    ///
    /// For transactions whose writes must not even be tried by a run that was taken over, and for those under REPEATABLE
    /// READ or SERIALIZABLE. The lease cannot be renewed meanwhile: keep the transaction shorter than it.
    ///
    /// # Errors
    /// As [`complete_in`](Self::complete_in).
    pub async fn fence_in(
        &self,
        transaction: &mut PgConnection,
        lease: &Lease,
    ) -> Result<Settled, StoreError> {
        for _ in 0..TIMES {
            if self.ask_in(transaction, held(&self.statements.fence, lease)).await?.is_some() {
                return Ok(Settled::Applied);
            }
            let found = self.standing_in(transaction, lease).await?;
            // Whose lease could be renewed holds the record.
            let law = |record: Option<&Record>, now| {
                machine::renew(record, &lease.holder, std::time::Duration::ZERO, now)
            };
            if let Some(verdict) = explain(found.as_ref(), law) {
                return Ok(verdict);
            }
        }
        Err(overtaken())
    }

    async fn standing_in(
        &self,
        transaction: &mut PgConnection,
        lease: &Lease,
    ) -> Result<Option<(Record, Timestamp)>, StoreError> {
        let standing = self.statements.standing.query().bind(lease.address.as_bytes().as_slice());
        let row = self.ask_in(transaction, standing).await?;
        Ok(row.map(|row| row::record(&row, &lease.address)).transpose()?)
    }

    /// Told with the commit.
    async fn notify_in(&self, transaction: &mut PgConnection, lease: &Lease) -> Result<(), StoreError> {
        let Some(channel) = self.waking.channel() else { return Ok(()) };
        let notify = self.statements.notify.query().bind(channel).bind(vec![told(&lease.address)]);
        self.ask_in(transaction, notify).await.map(drop)
    }

    async fn ask_in(
        &self,
        transaction: &mut PgConnection,
        statement: Bound<'_>,
    ) -> Result<Option<PgRow>, StoreError> {
        let statement = statement.persistent(self.lines.are_direct());
        Ok(Answer::Row.read(transaction, statement).await.map_err(not_applied)?.pop())
    }
}
