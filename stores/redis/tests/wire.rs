//! The Redis store on a line that breaks in every place.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_services::Server;
use idempotency_store_contract::{
    wire::{TIME_LIMIT, Wired},
    wire_faults,
};
use idempotency_store_redis::{OpenError, RedisStore};
use scene::Records;

struct OnALine(Option<Records>);

impl Wired for OnALine {
    type Store = RedisStore;

    fn server(&self) -> Option<String> {
        self.0.as_ref().and_then(|_| Server::Redis.address())
    }

    async fn open(&self, address: &str) -> RedisStore {
        let (records, url) = (self.0.as_ref().unwrap(), Server::Redis.url_at(address).unwrap());
        loop {
            let builder = RedisStore::builder().prefix(records.prefix()).patience(TIME_LIMIT);
            match builder.connect(&url).await {
                Ok(store) => return store,
                Err(OpenError::Unavailable(_)) => {} // a busy machine takes longer than that to connect
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

wire_faults!(OnALine(Records::on_the_server()));
