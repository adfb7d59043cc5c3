//! What opening a store makes of a table, and when it refuses.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{error::Error, time::Duration};

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableDescription,
    TimeToLiveDescription, TimeToLiveSpecification, TimeToLiveStatus,
};
use idempotency_core::{Fate, Store, StoreError, StoreErrorKind};
use idempotency_store_dynamodb::{DynamoDbStore, OpenError, Unfit};
use scene::{Place, bid, claim, config, operation};
use tokio::task::JoinSet;

impl Place {
    async fn create(&self, keys: &[(&str, KeyType, ScalarAttributeType)]) {
        let mut create = self.beside.create_table().table_name(&self.table);
        for (name, kind, typed) in keys {
            let key = KeySchemaElement::builder().attribute_name(*name).key_type(kind.clone());
            let attribute =
                AttributeDefinition::builder().attribute_name(*name).attribute_type(typed.clone());
            create =
                create.key_schema(key.build().unwrap()).attribute_definitions(attribute.build().unwrap());
        }
        create.billing_mode(BillingMode::PayPerRequest).send().await.unwrap();
    }

    async fn expire_by(&self, attribute: &str) {
        let by = TimeToLiveSpecification::builder().enabled(true).attribute_name(attribute).build().unwrap();
        let update = self.beside.update_time_to_live().table_name(&self.table);
        update.time_to_live_specification(by).send().await.unwrap();
    }

    async fn described(&self) -> TableDescription {
        self.beside.describe_table().table_name(&self.table).send().await.unwrap().table.unwrap()
    }

    async fn expiry(&self) -> TimeToLiveDescription {
        let describe = self.beside.describe_time_to_live().table_name(&self.table);
        describe.send().await.unwrap().time_to_live_description.unwrap()
    }

    /// A builder that does not make the table.
    fn plain(&self) -> idempotency_store_dynamodb::DynamoDbStoreBuilder {
        let client = aws_sdk_dynamodb::Client::from_conf(config(&self.url).build());
        DynamoDbStore::builder(client).table(&*self.table)
    }
}

fn assert_made(described: &TableDescription, expiry: &TimeToLiveDescription) {
    let [key] = described.key_schema() else { panic!("{described:?}") };
    assert_eq!((key.attribute_name(), key.key_type()), ("address", &KeyType::Hash));
    let [address] = described.attribute_definitions() else { panic!("{described:?}") };
    assert_eq!(address.attribute_type(), &ScalarAttributeType::B);
    let mode = described.billing_mode_summary().and_then(|summary| summary.billing_mode());
    assert_eq!(mode, Some(&BillingMode::PayPerRequest));
    assert_eq!(expiry.attribute_name(), Some("expires_at"));
    let status = expiry.time_to_live_status().unwrap();
    assert!(matches!(status, TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling), "{status:?}");
}

#[tokio::test]
async fn many_stores_may_ensure_a_table_at_once() {
    let Some(place) = Place::find() else { return };
    let mut stores = JoinSet::new();
    for _ in 0..8 {
        let builder = place.builder();
        stores.spawn(async move { builder.open().await });
    }
    for opened in stores.join_all().await {
        opened.unwrap();
    }
    assert_made(&place.described().await, &place.expiry().await);
}

#[tokio::test]
async fn a_table_that_is_there_is_given_its_expiry_and_keeps_its_records() {
    let Some(place) = Place::find() else { return };
    place.create(&[("address", KeyType::Hash, ScalarAttributeType::B)]).await;
    let lease = claim(&place.plain().patience(scene::PATIENCE).open().await.unwrap(), "k").await;
    for _ in 0..2 {
        let store = place.open().await;
        assert_made(&place.described().await, &place.expiry().await);
        let settled = store.renew(&lease, scene::DAY).await.unwrap();
        assert_eq!(settled, idempotency_core::Settled::Applied);
    }
}

#[tokio::test]
async fn an_absent_table_is_named_and_not_made() {
    let Some(place) = Place::find() else { return };
    let error = place.plain().open().await.unwrap_err();
    assert!(matches!(&error, OpenError::Absent { table } if *table == place.table), "{error:?}");
    assert!(place.beside.describe_table().table_name(&place.table).send().await.is_err(), "it was made");
    let error = StoreError::from(error);
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Schema, Fate::NotApplied));
    assert!(error.source().unwrap().is::<OpenError>());
}

#[tokio::test]
async fn a_table_with_another_key_is_refused() {
    use KeyType::{Hash, Range};
    use ScalarAttributeType::{B, S};
    for keys in [
        &[("address", Hash, S)][..],
        &[("id", Hash, B)][..],
        &[("address", Hash, B), ("created", Range, S)][..],
    ] {
        let Some(place) = Place::find() else { return };
        place.create(keys).await;
        for opened in [place.plain().open().await, place.builder().open().await] {
            let error = opened.unwrap_err();
            assert!(matches!(error, OpenError::Unfit { why: Unfit::Key, .. }), "{keys:?}: {error:?}");
            assert_eq!(StoreError::from(error).kind, StoreErrorKind::Schema);
        }
    }
}

#[tokio::test]
async fn a_table_that_expires_items_by_something_else_is_refused() {
    let Some(place) = Place::find() else { return };
    place.create(&[("address", KeyType::Hash, ScalarAttributeType::B)]).await;
    place.expire_by("deleted_at").await;
    let error = place.builder().open().await.unwrap_err();
    let OpenError::Unfit { why: Unfit::Expiry { attribute }, .. } = &error else { panic!("{error:?}") };
    assert_eq!(attribute, "deleted_at");
    assert!(error.to_string().contains("by \"deleted_at\" instead of \"expires_at\""), "{error}");
}

#[tokio::test]
async fn a_table_deleted_under_a_running_store_is_a_schema_error() {
    let Some(place) = Place::find() else { return };
    let store = place.open().await;
    let lease = claim(&store, "k").await;
    place.beside.delete_table().table_name(&place.table).send().await.unwrap();
    let op = operation("k", b"body");
    let failed = [
        store.claim(&op, &bid()).await.unwrap_err(),
        store.look(&op).await.unwrap_err(),
        store.renew(&lease, scene::DAY).await.unwrap_err(),
    ];
    for error in failed {
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Schema, Fate::NotApplied));
    }
}

#[tokio::test]
async fn a_service_out_of_reach_is_unavailable() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let place = Place::at(&format!("http://{address}"), "idempotency");
    let error = place.plain().patience(Duration::from_millis(500)).open().await.unwrap_err();
    assert!(matches!(error, OpenError::Unavailable(_)), "{error:?}");
    let store = DynamoDbStore::new(place.beside.clone());
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
}
