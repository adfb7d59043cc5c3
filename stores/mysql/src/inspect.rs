//! The port for operators.

use idempotency_core::{
    Address, Fence, Holder, Inspect, Record, Resolution, Select, Settled, StoreError, machine,
};

use crate::{MySqlStore, ending::ended_with, row, statements::Value};

impl Inspect for MySqlStore {
    async fn find(&self, address: &Address) -> Result<Option<Record>, StoreError> {
        Ok(self.record_at(self.lines.deadline(), address).await?.map(|(record, _)| record))
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
        let after = Value::Bytes(after.map_or(&[], |address| address.as_bytes()));
        let values = [after, Value::Integer(at_most.into())];
        let page = self.lines.read(self.lines.deadline(), || statement.with(values)).await?;
        page.rows.iter().map(|row| Ok(row::record(row)?)).collect()
    }

    async fn resolve(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> Result<Settled, StoreError> {
        let law = |record: Option<&Record>, now| machine::resolve(record, fence, resolution, now);
        let fence = Value::Integer(i64::try_from(fence.as_u64()).unwrap_or(-1)); // a fence no column holds equals none
        let at = Value::Bytes(address.as_bytes());
        let settled = match resolution {
            Resolution::Applied(outcome, keep) => {
                self.check_size(outcome)?;
                let nobody = Value::Bytes(Holder::RESOLVED.as_bytes());
                let mut values = vec![nobody];
                values.extend(ended_with(outcome, *keep));
                values.extend([at, fence]);
                self.settle(address, &self.statements.resolve_applied, &values, law).await
            }
            Resolution::NotApplied => {
                self.settle(address, &self.statements.resolve_not_applied, &[at, fence], law).await
            }
        };
        self.ring(address);
        settled
    }
}
