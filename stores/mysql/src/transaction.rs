//! Endings within a transaction of yours, so that the record and your own rows change together or not at all.

use std::time::Duration;

use idempotency_core::{Keep, Lease, Outcome, Record, Settled, StoreError, machine};
use sqlx::MySqlConnection;

use crate::{
    MySqlStore,
    ending::{completion, explain},
    lines::ask,
    statements::Value,
    store::{overtaken, read},
};

impl MySqlStore {
    /// [`complete`](idempotency_core::Store::complete) in the transaction that `connection` is in: it counts when that commits. Roll back
    /// when it answers [`Fenced`](Settled::Fenced): somebody else has the operation.
    ///
    /// From here to the end of the transaction the record is locked, and copies of the operation wait: let it be the
    /// last statement before the commit, or [`fence_in`](Self::fence_in) the first if nothing may be written in vain.
    ///
    /// # Errors
    /// [`StoreError`] as by [`complete`](idempotency_core::Store::complete), but that nothing is repeated here: a transaction that lost
    /// against others has to be begun anew. Without a commit nothing was applied, whatever the fate says.
    pub async fn complete_in(
        &self,
        connection: &mut MySqlConnection,
        lease: &Lease,
        outcome: &Outcome,
        keep: Keep,
    ) -> Result<Settled, StoreError> {
        self.check_size(outcome)?;
        let law = |record: Option<&Record>, now| machine::complete(record, &lease.holder, outcome, keep, now);
        let values = completion(lease, outcome, keep);
        // The look locks the record, so that a second write meets what the look saw.
        for _ in 0..2 {
            let written = ask(&mut *connection, self.statements.complete.with(values)).await?;
            if written.matched > 0 {
                return Ok(Settled::Applied);
            }
            let address = Value::Bytes(lease.address.as_bytes());
            let found = ask(&mut *connection, self.statements.record_locked.with([address])).await?;
            if let Some(verdict) = explain(read(&found)?.as_ref(), law) {
                return Ok(verdict);
            }
        }
        Err(overtaken())
    }

    /// Makes sure, in the transaction that `connection` is in, that `lease` holds its record, and keeps anybody from
    /// taking it over before that transaction ends. Write nothing and roll back when it answers
    /// [`Fenced`](Settled::Fenced).
    ///
    /// A lease that only lapsed still holds. Copies of the operation wait for the transaction: keep it short.
    ///
    /// # Errors
    /// [`StoreError`] when the record cannot be read.
    pub async fn fence_in(
        &self,
        connection: &mut MySqlConnection,
        lease: &Lease,
    ) -> Result<Settled, StoreError> {
        let address = Value::Bytes(lease.address.as_bytes());
        let found = read(&ask(connection, self.statements.record_locked.with([address])).await?)?;
        let law = |record: Option<&Record>, now| machine::renew(record, &lease.holder, Duration::ZERO, now);
        Ok(explain(found.as_ref(), law).unwrap_or(Settled::Applied)) // what a renewal would write, a lease holds
    }
}
