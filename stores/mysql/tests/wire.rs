//! The MySQL store under every law of broken lines: a proxy stands between it and the server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_services::Server;
use idempotency_store_contract::{
    wire::{TIME_LIMIT, Wired},
    wire_faults,
};
use idempotency_store_mysql::{MySqlStore, MySqlStoreBuilder};
use scene::Database;

/// Both stores of a law on one table, which is gone with this.
struct Far {
    database: Option<Database>,
    table: String,
    builder: fn() -> MySqlStoreBuilder,
}

impl Far {
    fn new(builder: fn() -> MySqlStoreBuilder) -> Self {
        let database = Database::reach();
        let table = database.as_ref().map(Database::table).unwrap_or_default();
        Self { database, table, builder }
    }
}

impl Wired for Far {
    type Store = MySqlStore;

    fn server(&self) -> Option<String> {
        self.database.as_ref().and_then(|_| Server::MySql.address())
    }

    async fn open(&self, address: &str) -> MySqlStore {
        let url = Server::MySql.url_at(address).unwrap();
        (self.builder)().table(&self.table).patience(TIME_LIMIT).connections(1).connect(&url).await.unwrap()
    }
}

mod own_connections {
    use super::*;
    wire_faults!(Far::new(MySqlStore::builder));
}

mod without_returning {
    use super::*;
    wire_faults!(Far::new(|| MySqlStore::builder().without_returning()));
}
