//! The port for operators, and the one that wakes waiters.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use idempotency_core::{
    Address, Fence, Holder, Inspect, Notify, Record, Resolution, Select, Settled, StoreError, machine,
};
use sqlx::Row;
use tokio::time::timeout;

use crate::{
    PostgresStore, row,
    store::{check_size, ended_with},
};

/// How soon to look at a record that somebody was changing when it was to be flagged.
const SOON: Duration = Duration::from_millis(25);

impl Inspect for PostgresStore {
    async fn find(&self, address: &Address) -> Result<Option<Record>, StoreError> {
        let found = self.record_at(self.lines.deadline(), &self.statements.record, address).await?;
        Ok(found.map(|(record, _)| record))
    }

    /// Fails as [`Corrupt`](idempotency_core::StoreErrorKind::Corrupt) where the page holds a record that cannot be read:
    /// leaving it out would hide it. Its source, a [`CorruptRecord`](idempotency_core::CorruptRecord), names the address
    /// to go on after.
    async fn list(
        &self,
        select: Select,
        after: Option<&Address>,
        at_most: u32,
    ) -> Result<Vec<(Address, Record)>, StoreError> {
        let statement = match select {
            Select::All => &self.statements.list,
            Select::InDoubt => &self.statements.list_in_doubt,
        };
        let after = after.map_or(&[][..], |address| address.as_bytes());
        let page = || statement.planned_anew().bind(after).bind(i64::from(at_most));
        let page = self.lines.read_all(self.lines.deadline(), page).await?;
        page.iter().map(|row| Ok(row::listed(row)?)).collect()
    }

    async fn resolve(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> Result<Settled, StoreError> {
        let law = |record: Option<&Record>, now| machine::resolve(record, fence, resolution, now);
        let fence = i64::try_from(fence.as_u64()).unwrap_or(-1); // a fence no column holds equals none
        let at = |statement: &crate::statements::Statement| {
            statement.query().bind(address.as_bytes().as_slice()).bind(fence)
        };
        let ended = match resolution {
            Resolution::Applied(outcome, keep) => {
                check_size(outcome)?;
                let applied = || {
                    ended_with(at(&self.statements.resolve_applied), outcome, *keep)
                        .bind(Holder::RESOLVED.as_bytes().as_slice())
                };
                self.settle(address, applied, law).await
            }
            Resolution::NotApplied => {
                self.settle(address, || at(&self.statements.resolve_not_applied), law).await
            }
        };
        self.tell(address, ended)
    }
}

/// Wakes for endings by this store and its clones, and for those of other processes, which the waiting record is flagged
/// for and one connection listens to. Behind a [transaction
/// pooler](crate::PostgresStoreBuilder::behind_transaction_pooler) those are found by looking.
impl Notify for PostgresStore {
    async fn ended(&self, address: &Address) {
        let mut rung = pin!(self.waking.bells().rung(address));
        // Hears what rings from now on, so that no ending after the flag is missed.
        if poll_fn(|cx| Poll::Ready(rung.as_mut().poll(cx).is_ready())).await {
            return;
        }
        if !self.waking.listen() {
            return rung.await;
        }
        let wait = self.statements.wait.query().bind(address.as_bytes().to_vec());
        // An engine gives up each wait after a moment.
        match self.lines.ask_aside(wait).await {
            Ok(None) => {} // it is not in flight
            Ok(Some(row)) if !row.try_get(0).unwrap_or(true) => {
                let _ = timeout(SOON, rung).await; // either is a reason to look
            }
            Ok(_) | Err(_) => rung.await,
        }
    }
}
