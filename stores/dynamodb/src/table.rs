//! The table as the store calls it: one conditional write decides, and what it refuses is decided from the item that was
//! there.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use aws_sdk_dynamodb::{Client, operation::update_item::UpdateItemError};
use idempotency_core::{Address, Fate, Record, StoreError, StoreErrorKind, clock::Clock, machine::Step};
use tokio::time::timeout;

use crate::{
    clock::{Reading, ServiceClock},
    error::{self, NoDate},
    item::{self, ADDRESS, Item, b},
    quiet::quietly,
    witness::Witness,
    write::{Filter, Write},
};

/// How often a record may be changed by others between being seen and being replaced. Each time somebody else's write
/// counted, so this many are many callers on one key.
const ROUNDS: usize = 8;

/// One table of one client.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) client: Client,
    pub(crate) name: Arc<str>,
    /// How long a call may take.
    pub(crate) patience: Duration,
    /// The clock that counts instead of the service's.
    pub(crate) given: Option<Arc<dyn Clock>>,
    pub(crate) clock: Arc<ServiceClock>,
}

/// What became of a conditional write.
enum Written {
    /// It was applied; what it returned.
    Applied(Item),
    /// Its condition did not hold of this item, or of none.
    Refused(Option<Item>),
}

impl Table {
    /// A witness for one call.
    pub(crate) fn witness(&self) -> Witness {
        Witness::new(self.clock.clone())
    }

    /// Runs a call within the store's patience. A failure gets the fate that the witness saw.
    pub(crate) async fn bounded<T>(
        &self,
        witness: &Witness,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let done = quietly(timeout(self.patience, call)).await.unwrap_or_else(|late| {
            Err(StoreError::new(StoreErrorKind::Unavailable, Fate::Unknown).with_source(late))
        });
        done.map_err(|error| error.with_fate(witness.fate()))
    }

    /// The time now. It is asked of the service, by reading where no record is, when no answer has told it lately.
    pub(crate) async fn now(&self) -> Result<Reading, StoreError> {
        if let Some(given) = &self.given {
            return Ok(Reading::exact(given.now()));
        }
        if let Some(reading) = self.clock.read() {
            return Ok(reading);
        }
        let nowhere = Address::from_bytes([0; 32]);
        let read = self.client.get_item().table_name(&*self.name).key(ADDRESS, b(nowhere.as_bytes()));
        read.projection_expression(ADDRESS)
            .customize()
            .interceptor(self.witness())
            .send()
            .await
            .map_err(error::failed)?;
        self.clock
            .read()
            .ok_or_else(|| StoreError::new(StoreErrorKind::Unavailable, Fate::NotApplied).with_source(NoDate))
    }

    /// Whether no answer since `reading` has shown that it was wrong.
    pub(crate) fn has_kept(&self, reading: &Reading) -> bool {
        self.given.is_some() || self.clock.has_kept(reading)
    }

    /// Sends `write`, and answers with `granted` when it is applied. When it is not, what stands there is put to `law`:
    /// its verdict, if it writes nothing; otherwise its write takes the place of exactly the record that was seen, or is
    /// decided anew over the one that took that place meanwhile.
    pub(crate) async fn decide<V: Send>(
        &self,
        witness: &Witness,
        address: &Address,
        mut write: Write,
        applied: impl FnOnce(&Item) -> Result<V, StoreError> + Send,
        law: impl Fn(Option<&Record>) -> Step<V> + Send + Sync,
    ) -> Result<V, StoreError> {
        let mut applied = Some(applied);
        let mut foretold = None;
        for _ in 0..ROUNDS {
            let found = match self.write(witness, address, &write).await? {
                Written::Refused(found) => found,
                Written::Applied(changed) => match (foretold, applied.take()) {
                    (Some(verdict), _) => return Ok(verdict),
                    (None, Some(applied)) => return applied(&changed),
                    (None, None) => break,
                },
            };
            let record = found.as_ref().map(item::record).transpose()?.map(|(_, record)| record);
            let Step { write: after, verdict } = law(record.as_ref());
            match after.filter(|after| record.as_ref() != Some(after)) {
                None => return Ok(verdict),
                Some(after) => write = Write::replace(record.as_ref(), &after),
            }
            foretold = Some(verdict);
        }
        Err(StoreError::new(StoreErrorKind::Unavailable, Fate::NotApplied))
    }

    async fn write(
        &self,
        witness: &Witness,
        address: &Address,
        write: &Write,
    ) -> Result<Written, StoreError> {
        use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
        let sent = self
            .client
            .update_item()
            .table_name(&*self.name)
            .key(ADDRESS, b(address.as_bytes()))
            .condition_expression(&*write.condition)
            .update_expression(&*write.update)
            .set_expression_attribute_names(Some(write.names()))
            .set_expression_attribute_values(Some(write.values()))
            .return_values(write.returns.clone())
            .return_values_on_condition_check_failure(AllOld)
            .customize()
            .interceptor(witness.clone())
            .send()
            .await;
        match sent {
            Ok(done) => Ok(Written::Applied(done.attributes.unwrap_or_default())),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refusal)) => {
                    Ok(Written::Refused(refusal.item.clone()))
                }
                _ => Err(error::failed(error)),
            },
        }
    }

    /// The record at `address` as it stands after every write that was answered.
    pub(crate) async fn find(&self, address: &Address) -> Result<Option<Record>, StoreError> {
        let read = self
            .client
            .get_item()
            .table_name(&*self.name)
            .key(ADDRESS, b(address.as_bytes()))
            .consistent_read(true);
        let found = read.customize().interceptor(self.witness()).send().await.map_err(error::failed)?;
        Ok(found.item.as_ref().map(item::record).transpose()?.map(|(_, record)| record))
    }

    /// One page of the items that `filter` lets through, in the service's order, and where the next page starts.
    pub(crate) async fn page(
        &self,
        filter: &Filter,
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let scan = self
            .client
            .scan()
            .table_name(&*self.name)
            .consistent_read(true)
            .set_filter_expression(filter.expression.clone())
            .set_expression_attribute_names(filter.names())
            .set_expression_attribute_values(filter.values())
            .set_exclusive_start_key(start);
        let page = scan.customize().interceptor(self.witness()).send().await.map_err(error::failed)?;
        Ok((page.items.unwrap_or_default(), page.last_evaluated_key))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.name)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}
