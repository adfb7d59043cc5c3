//! The table: whether it fits, and how it comes to be.

use std::time::Duration;

use aws_sdk_dynamodb::{
    error::BuildError,
    operation::{create_table::CreateTableError, describe_table::DescribeTableError},
    types::{
        AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableDescription,
        TableStatus, TimeToLiveDescription, TimeToLiveSpecification, TimeToLiveStatus,
    },
};
use tokio::time::{Instant, sleep};

use crate::{
    OpenError, Unfit,
    error::not_opened,
    item::{ADDRESS, EXPIRES_AT},
    quiet::quietly,
    table::Table,
};

/// How long a new table is waited for.
const CREATION: Duration = Duration::from_secs(60);

/// How often it is looked at meanwhile: the service tells nobody when it is ready.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What to do where there is no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenAbsent {
    Create,
    Refuse,
}

/// Makes sure that the table can be used. Safe from many processes at once.
pub(crate) async fn prepare(table: &Table, when_absent: WhenAbsent) -> Result<(), OpenError> {
    match when_absent {
        WhenAbsent::Refuse => check(table, &look(table).await?.ok_or_else(|| absent(table))?),
        WhenAbsent::Create => {
            if look(table).await?.is_none() {
                create(table).await?;
            }
            await_active(table).await?;
            ensure_expiry(table).await
        }
    }
}

async fn look(table: &Table) -> Result<Option<TableDescription>, OpenError> {
    let look = table.client.describe_table().table_name(&*table.name).customize();
    match quietly(look.interceptor(table.witness()).send()).await {
        Ok(found) => Ok(found.table),
        Err(error) => match error.as_service_error() {
            Some(DescribeTableError::ResourceNotFoundException(_)) => Ok(None),
            _ => Err(not_opened(error)),
        },
    }
}

fn absent(table: &Table) -> OpenError {
    OpenError::Absent { table: table.name.to_string() }
}

fn check(table: &Table, found: &TableDescription) -> Result<(), OpenError> {
    let unfit = |why| OpenError::Unfit { table: table.name.to_string(), why };
    let key_is_address = match found.key_schema() {
        [key] => key.attribute_name() == ADDRESS && *key.key_type() == KeyType::Hash,
        _ => false,
    };
    let address_is_binary = found.attribute_definitions().iter().any(|attribute| {
        attribute.attribute_name() == ADDRESS && *attribute.attribute_type() == ScalarAttributeType::B
    });
    if !key_is_address || !address_is_binary {
        return Err(unfit(Unfit::Key));
    }
    match found.table_status() {
        None | Some(TableStatus::Active | TableStatus::Updating) => Ok(()),
        Some(state) => Err(unfit(Unfit::State { state: state.as_str().to_owned() })),
    }
}

async fn create(table: &Table) -> Result<(), OpenError> {
    let refused = |error: BuildError| OpenError::Refused(error.into());
    let key = KeySchemaElement::builder().attribute_name(ADDRESS).key_type(KeyType::Hash).build();
    let address =
        AttributeDefinition::builder().attribute_name(ADDRESS).attribute_type(ScalarAttributeType::B).build();
    let create = table
        .client
        .create_table()
        .table_name(&*table.name)
        .key_schema(key.map_err(refused)?)
        .attribute_definitions(address.map_err(refused)?)
        .billing_mode(BillingMode::PayPerRequest);
    match quietly(create.send()).await {
        Ok(_) => Ok(()),
        Err(error) => match error.as_service_error() {
            Some(CreateTableError::ResourceInUseException(_)) => Ok(()), // another process was faster
            _ => Err(not_opened(error)),
        },
    }
}

async fn await_active(table: &Table) -> Result<(), OpenError> {
    let deadline = Instant::now() + CREATION;
    loop {
        let found = look(table).await?;
        let is_made = |found: &TableDescription| found.table_status() != Some(&TableStatus::Creating);
        match found {
            Some(found) if is_made(&found) || Instant::now() >= deadline => return check(table, &found),
            None if Instant::now() >= deadline => return Err(absent(table)),
            _ => sleep(LOOK_AGAIN).await,
        }
    }
}

async fn ensure_expiry(table: &Table) -> Result<(), OpenError> {
    if expires(table).await? {
        return Ok(());
    }
    let refused = |error: BuildError| OpenError::Refused(error.into());
    let by = TimeToLiveSpecification::builder().enabled(true).attribute_name(EXPIRES_AT).build();
    let update = table.client.update_time_to_live().table_name(&*table.name);
    let updated = quietly(update.time_to_live_specification(by.map_err(refused)?).send()).await;
    match updated {
        Ok(_) => Ok(()),
        Err(_) if expires(table).await? => Ok(()), // another process was faster
        Err(error) => Err(not_opened(error)),
    }
}

/// Whether the table expires items by the attribute of this store, now or soon.
async fn expires(table: &Table) -> Result<bool, OpenError> {
    let describe = table.client.describe_time_to_live().table_name(&*table.name);
    let found = quietly(describe.send()).await.map_err(not_opened)?.time_to_live_description;
    match found {
        Some(TimeToLiveDescription {
            time_to_live_status: Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling),
            attribute_name,
            ..
        }) => match attribute_name {
            Some(attribute) if attribute != EXPIRES_AT => {
                Err(OpenError::Unfit { table: table.name.to_string(), why: Unfit::Expiry { attribute } })
            }
            _ => Ok(true),
        },
        _ => Ok(false),
    }
}
