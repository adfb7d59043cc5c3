//! The DynamoDB store when the line to the service breaks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use idempotency_services::Server;
use idempotency_store_contract::{
    wire::{TIME_LIMIT, Wired},
    wire_faults,
};
use idempotency_store_dynamodb::DynamoDbStore;
use scene::{Place, config};

struct OverALine(Option<Place>);

impl Wired for OverALine {
    type Store = DynamoDbStore;

    fn server(&self) -> Option<String> {
        self.0.as_ref()?;
        Server::DynamoDb.address()
    }

    async fn open(&self, address: &str) -> DynamoDbStore {
        let place = self.0.as_ref().unwrap();
        place.open().await; // makes sure of the table, whatever befalls the line
        let client = Client::from_conf(config(&format!("http://{address}")).build());
        let builder = DynamoDbStore::builder(client).table(&*place.table);
        builder.patience(TIME_LIMIT).takeover_margin(Duration::ZERO).open().await.unwrap()
    }
}

wire_faults!(OverALine(Place::find()));
