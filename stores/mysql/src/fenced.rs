//! Endings that commit with the caller's own writes, or not at all.

use std::time::Duration;

use idempotency_core::{Fate, Keep, Lease, Outcome, Record, Settled, StoreError, machine};
use sqlx::{Execute, MySql, MySqlConnection};

use crate::{
    MySqlStore,
    ending::{completion, explain},
    lines::{Answer, ask},
    statements::Value,
    store::{overtaken, read},
};

impl MySqlStore {
    /// Completes a run within `transaction`: its own writes and its outcome commit together, or neither does.
    ///
    /// [`Settled::Fenced`] says that the run was taken over, or ended before: roll back, or the effect happens twice.
    /// Call it last, right before the commit: from here on the record is locked, and claims, renewals and endings of it
    /// wait for the transaction to end.
    ///
    /// A commit that fails without an answer may have happened. Do not complete then, which would count if it did not;
    /// [release](idempotency_core::Store::release) the lease as unknown, which is fenced off if it did.
    ///
    /// `transaction` must be one on the database of this store. Waiters find out about its commit by looking.
    ///
    /// # Errors
    /// [`StoreError`], whose fate is always [`NotApplied`](Fate::NotApplied): what is not committed was not applied. The
    /// transaction then is of no more use. Nothing is repeated here: one that lost against another
    /// ([`Unavailable`](idempotency_core::StoreErrorKind::Unavailable)) has to be begun anew.
    pub async fn complete_in(
        &self,
        transaction: &mut MySqlConnection,
        lease: &Lease,
        outcome: &Outcome,
        keep: Keep,
    ) -> Result<Settled, StoreError> {
        self.check_size(outcome)?;
        let values = completion(lease, outcome, keep);
        // The look locks the record, so that a second write meets what the look saw.
        for _ in 0..2 {
            let written = ask_in(transaction, self.statements.complete.with(values)).await?;
            if written.matched > 0 {
                return Ok(Settled::Applied);
            }
            let address = Value::Bytes(lease.address.as_bytes());
            let found = ask_in(transaction, self.statements.record_locked.with([address])).await?;
            let law =
                |record: Option<&Record>, now| machine::complete(record, &lease.holder, outcome, keep, now);
            if let Some(verdict) = explain(read(&found)?.as_ref(), law) {
                return Ok(verdict);
            }
        }
        Err(overtaken())
    }

    /// Locks the record for the rest of `transaction` if the lease still holds it, so that nobody can take the run over
    /// before the transaction ends. [`Settled::Fenced`] says that somebody did before, or that the run has ended.
    ///
    /// For transactions whose writes must not even be tried by a run that was taken over. The lease cannot be renewed
    /// meanwhile: keep the transaction shorter than it.
    ///
    /// # Errors
    /// As [`complete_in`](Self::complete_in).
    pub async fn fence_in(
        &self,
        transaction: &mut MySqlConnection,
        lease: &Lease,
    ) -> Result<Settled, StoreError> {
        let address = Value::Bytes(lease.address.as_bytes());
        let found = read(&ask_in(transaction, self.statements.record_locked.with([address])).await?)?;
        let law = |record: Option<&Record>, now| machine::renew(record, &lease.holder, Duration::ZERO, now);
        Ok(explain(found.as_ref(), law).unwrap_or(Settled::Applied)) // whose lease could be renewed holds the record
    }
}

async fn ask_in<'q, E>(transaction: &mut MySqlConnection, statement: E) -> Result<Answer, StoreError>
where
    E: Execute<'q, MySql> + 'q,
{
    let answer = ask(transaction, statement).await;
    answer.map_err(|cut| StoreError::from(cut).with_fate(Fate::NotApplied))
}
