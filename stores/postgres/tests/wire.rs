//! The PostgreSQL store on a line that breaks in every place: straight to the server, and to a transaction pooler
//! before it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_services::Server;
use idempotency_store_contract::{
    wire::{TIME_LIMIT, Wired},
    wire_faults,
};
use idempotency_store_postgres::{PostgresStore, PostgresStoreBuilder};
use scene::Database;

/// Both stores of a law on one table, which is gone with this.
struct OnALine {
    database: Option<Database>,
    server: Server,
    builder: fn(PostgresStoreBuilder) -> PostgresStoreBuilder,
}

impl OnALine {
    fn to(server: Server, builder: fn(PostgresStoreBuilder) -> PostgresStoreBuilder) -> Self {
        Self { database: Database::reach(), server, builder }
    }
}

impl Wired for OnALine {
    type Store = PostgresStore;

    fn server(&self) -> Option<String> {
        self.database.as_ref().and_then(|_| self.server.address())
    }

    async fn open(&self, address: &str) -> PostgresStore {
        let builder = self.database.as_ref().unwrap().builder("records").patience(TIME_LIMIT);
        let url = self.server.url_at(address).unwrap();
        (self.builder)(builder).connect(&url).await.unwrap()
    }
}

mod own_connections {
    use super::*;
    wire_faults!(OnALine::to(Server::Postgres, |builder| builder));
}

mod behind_a_pooler {
    use super::*;
    wire_faults!(OnALine::to(Server::PgBouncer, PostgresStoreBuilder::behind_transaction_pooler));
}
