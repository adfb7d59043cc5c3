//! The DynamoDB store when the line to the service breaks.
//!
//! The emulator answers a few dozen calls a second, so laws make few at once here, and one law has it at a time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{env, fs::File, time::Duration};

use aws_sdk_dynamodb::Client;
use idempotency_core::{Claim, Settled, Store, clock::SystemClock};
use idempotency_services::Server;
use idempotency_store_contract::{
    wire::{Fault, Proxy, Wired},
    wire_faults,
};
use idempotency_store_dynamodb::DynamoDbStore;
use scene::{DAY, PATIENCE, Place, Trips, bid, config, granted, keep, operation, outcome};

struct OverALine {
    place: Option<Place>,
    /// Locked for as long as the law lasts.
    _turn: File,
}

impl OverALine {
    fn in_turn() -> Self {
        let turn = File::create(env::temp_dir().join("idempotency-dynamodb-wire.turn")).unwrap();
        turn.lock().unwrap();
        Self { place: Place::find(), _turn: turn }
    }
}

impl Wired for OverALine {
    type Store = DynamoDbStore;

    fn server(&self) -> Option<String> {
        self.place.as_ref()?;
        Server::DynamoDb.address()
    }

    /// Over the line that breaks a call gives up as soon as it has to; over the other it waits for its turn. Both stores
    /// have one clock: two readings of the service's may be a second apart, and a lease of a millisecond is taken over.
    async fn open(&self, address: &str) -> DynamoDbStore {
        let place = self.place.as_ref().unwrap();
        let patience = if self.server().as_deref() == Some(address) { PATIENCE } else { self.time_limit() };
        place.open().await; // makes sure of the table
        let client = Client::from_conf(config(&format!("http://{address}")).build());
        let builder = DynamoDbStore::builder(client).table(&*place.table).takeover_margin(Duration::ZERO);
        builder.patience(patience).clock(SystemClock).open().await.unwrap()
    }

    fn time_limit(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn recovery(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn callers(&self) -> usize {
        4
    }
}

wire_faults!(OverALine::in_turn());

/// A store whose first attempt at each call loses its reply; the SDK sends it again.
async fn losing_replies(place: &Place) -> (DynamoDbStore, Proxy, Trips) {
    let proxy = Proxy::before(&Server::DynamoDb.address().unwrap()).await.unwrap();
    let trips = Trips::default();
    let config = config(&format!("http://{}", proxy.address())).interceptor(trips.clone());
    let store = place.builder_with(config).open().await.unwrap();
    trips.take();
    (store, proxy, trips)
}

#[tokio::test]
async fn what_the_sdk_sends_again_meets_its_own_write_as_its_own() {
    let Some(place) = Place::find() else { return };
    let (store, proxy, trips) = losing_replies(&place).await;
    let (op, bid) = (operation("k", b"body"), bid());
    let again = |trips: &Trips| assert_eq!(trips.take(), 2, "the reply was lost, and the request sent again");

    proxy.strike(Fault::CutAfter, 1..=1);
    let lease = granted(store.claim(&op, &bid).await.unwrap());
    again(&trips);
    assert_eq!((lease.holder, lease.attempt), (bid.holder, 1));
    let fence = place.item(op.address()).await.map(|item| scene::number(&item, "fence").unwrap());
    assert_eq!(fence, Some(lease.fence.as_u64()));

    proxy.strike(Fault::CutAfter, 1..=1);
    assert_eq!(store.renew(&lease, bid.lease).await.unwrap(), Settled::Applied);
    trips.take();
    proxy.strike(Fault::CutAfter, 1..=1);
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    again(&trips);
    assert_eq!(store.claim(&op, &scene::bid()).await.unwrap(), Claim::Completed(outcome()));
}
