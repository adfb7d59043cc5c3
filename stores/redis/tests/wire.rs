//! The Redis store on a line that breaks in every place.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_services::Server;
use idempotency_store_contract::{
    wire::{TIME_LIMIT, Wired},
    wire_faults,
};
use idempotency_store_redis::RedisStore;
use scene::Records;

struct OnALine(Option<Records>);

impl Wired for OnALine {
    type Store = RedisStore;

    fn server(&self) -> Option<String> {
        self.0.as_ref().and_then(|_| Server::Redis.address())
    }

    async fn open(&self, address: &str) -> RedisStore {
        let builder = RedisStore::builder().patience(TIME_LIMIT * 4 / 5);
        let url = Server::Redis.url_at(address).unwrap();
        self.0.as_ref().unwrap().open_at(builder, &url).await
    }
}

wire_faults!(OnALine(Records::on_the_server()));
