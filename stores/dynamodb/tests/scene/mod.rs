//! What the tests of this crate share: the emulator, operations, bids, and a client beside the store's.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    collections::HashMap,
    process,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::{
    Client, Config,
    config::{
        BehaviorVersion, Builder, ConfigBag, Credentials, Intercept, Region, RuntimeComponents,
        interceptors::BeforeTransmitInterceptorContextRef, retry::RetryConfig,
    },
    error::BoxError,
    primitives::Blob,
    types::AttributeValue,
};
use idempotency_core::{
    Address, Bid, Claim, Door, Fingerprint, Holder, Keep, Key, Lease, Media, OnLapse, Operation, Outcome,
    Part, Scope, Store,
    clock::{ManualClock, Timestamp},
};
use idempotency_services::Server;
use idempotency_store_dynamodb::{DynamoDbStore, DynamoDbStoreBuilder};

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// The seconds at which a clock that a test moves begins: in the year 2100, so that a DynamoDB which expires items by its
/// own clock lets those of the test be.
pub(crate) const LATER: u64 = 4_102_444_800;

/// The emulator takes one call at a time, and every test has it at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Item = HashMap<String, AttributeValue>;

/// A table of the emulator that nobody else has.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) table: String,
    /// A client of the test's own, beside the store's.
    pub(crate) beside: Client,
}

impl Place {
    /// `None`, said aloud, when there is no emulator.
    pub(crate) fn find() -> Option<Self> {
        Server::DynamoDb.url().map(|url| Self::at(&url, &table()))
    }

    pub(crate) fn at(url: &str, table: &str) -> Self {
        let beside = Client::from_conf(config(url).build());
        Self { url: url.to_owned(), table: table.to_owned(), beside }
    }

    pub(crate) fn builder(&self) -> DynamoDbStoreBuilder {
        self.builder_with(config(&self.url))
    }

    pub(crate) fn builder_with(&self, config: Builder) -> DynamoDbStoreBuilder {
        let builder = DynamoDbStore::builder(Client::from_conf(config.build()));
        builder.table(&*self.table).patience(PATIENCE).ensure_table()
    }

    pub(crate) async fn open(&self) -> DynamoDbStore {
        self.builder().open().await.unwrap()
    }

    /// The item that stands at `address`, as it is.
    pub(crate) async fn item(&self, address: &Address) -> Option<Item> {
        let read = self.beside.get_item().table_name(&self.table).key("address", b(address.as_bytes()));
        read.consistent_read(true).send().await.unwrap().item
    }

    /// Puts an item there, whatever stood in its place.
    pub(crate) async fn put(&self, item: Item) {
        let put = self.beside.put_item().table_name(&self.table).set_item(Some(item));
        put.send().await.unwrap();
    }
}

/// A client's settings. Its requests are sent again soon.
pub(crate) fn config(url: &str) -> Builder {
    let retries = RetryConfig::standard().with_initial_backoff(Duration::from_millis(10));
    Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(url)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(retries)
}

/// A name that no other table has.
fn table() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("idempotency-{}-{now}-{number}", process::id())
}

/// Counts the requests that leave a client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trips(Arc<AtomicUsize>);

impl Trips {
    /// How many requests left since the last call of this.
    pub(crate) fn take(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

impl Intercept for Trips {
    fn name(&self) -> &'static str {
        "Trips"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A clock that stands [`LATER`], and so much after, until the test moves it.
pub(crate) fn manual_clock(micros: u64) -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_micros(LATER * 1_000_000 + micros)))
}

pub(crate) fn b(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

pub(crate) fn n(number: i128) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// The number in an attribute that has one.
pub(crate) fn number(item: &Item, name: &str) -> Option<u64> {
    item.get(name).map(|value| value.as_n().unwrap().parse().unwrap())
}

pub(crate) fn operation(key: &str, body: &[u8]) -> Operation {
    let address = Address::new(Door::Http, &Scope::shared(), &Key::new(key).unwrap());
    Operation::new(address, Fingerprint::builder().part(Part::Body, body).build())
}

pub(crate) fn bid() -> Bid {
    Bid { holder: Holder::draw(), lease: DAY, retention: DAY, on_lapse: OnLapse::TakeOver }
}

pub(crate) fn keep(replay: Duration) -> Keep {
    Keep { replay, then_reject: Duration::ZERO }
}

pub(crate) fn outcome() -> Outcome {
    Outcome::whole(Media(1), "done")
}

pub(crate) fn granted(claim: Claim<Lease>) -> Lease {
    match claim {
        Claim::Granted(lease) => lease,
        refused => panic!("not granted: {refused:?}"),
    }
}

pub(crate) async fn claim(store: &DynamoDbStore, key: &str) -> Lease {
    granted(store.claim(&operation(key, b"body"), &bid()).await.unwrap())
}
