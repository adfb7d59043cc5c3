//! The store as an operator sees it.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use idempotency_core::{Address, Fence, Inspect, Record, Resolution, Select, Settled, StoreError};

use crate::{
    DynamoDbStore,
    item::{self, ADDRESS, Item},
    write::Filter,
};

impl Inspect for DynamoDbStore {
    async fn find(&self, address: &Address) -> Result<Option<Record>, StoreError> {
        self.table.bounded(&self.table.witness(), self.table.find(address)).await
    }

    /// Scans the whole table for each page, since DynamoDB keeps items in an order of its own: it costs what reading
    /// every record costs, and the store's patience is for each of the service's pages of 1 MB.
    ///
    /// Fails as [`Corrupt`](idempotency_core::StoreErrorKind::Corrupt) where the page holds a record that cannot be read:
    /// leaving it out would hide it. Its source, a [`CorruptRecord`](idempotency_core::CorruptRecord), names the address
    /// to go on after.
    async fn list(
        &self,
        select: Select,
        after: Option<&Address>,
        at_most: u32,
    ) -> Result<Vec<(Address, Record)>, StoreError> {
        let witness = self.table.witness();
        let in_doubt_at = match select {
            Select::All => None,
            Select::InDoubt => {
                let now = async { Ok(self.table.now().await?.now) };
                Some(self.table.bounded(&witness, now).await?)
            }
        };
        let filter = Filter::new(after, in_doubt_at);
        let mut first = First { items: BTreeMap::new(), at_most: at_most as usize };
        let mut start = None;
        loop {
            let page = self.table.page(&filter, start);
            let (items, next) = self.table.bounded(&witness, page).await?;
            items.into_iter().for_each(|item| first.add(item));
            start = next;
            if start.is_none() {
                return first.items.values().map(|item| Ok(item::record(item)?)).collect();
            }
        }
    }

    async fn resolve(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> Result<Settled, StoreError> {
        self.resolve_doubt(address, fence, resolution).await
    }
}

/// The items with the smallest addresses.
struct First {
    items: BTreeMap<Vec<u8>, Item>,
    at_most: usize,
}

impl First {
    fn add(&mut self, item: Item) {
        let Some(AttributeValue::B(address)) = item.get(ADDRESS) else { return };
        self.items.insert(address.as_ref().to_vec(), item);
        if self.items.len() > self.at_most {
            self.items.pop_last();
        }
    }
}
