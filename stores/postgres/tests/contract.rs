//! The PostgreSQL store under every law of the suite, on the server's clock: on connections of its own, on pools whose
//! connections have the other isolation levels, and in the way of one behind a transaction pooler.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::sync::Arc;

use idempotency_store_contract::{Bench, Candidate, Time, store_contract};
use idempotency_store_postgres::PostgresStore;
use scene::Database;

struct OnItsOwnConnections(Database);

impl Candidate for OnItsOwnConnections {
    type Store = PostgresStore;

    async fn open(&self) -> Bench<PostgresStore> {
        let (store, _) = self.0.store().await;
        Bench { store: Arc::new(store), time: Time::Real }
    }
}

struct InTransactions(Database);

impl Candidate for InTransactions {
    type Store = PostgresStore;

    async fn open(&self) -> Bench<PostgresStore> {
        let builder = self.0.builder(&self.0.table()).behind_transaction_pooler();
        Bench { store: Arc::new(builder.connect(self.0.url()).await.unwrap()), time: Time::Real }
    }
}

/// On a pool of the caller's, whose connections are set like this.
struct OnAPool(Database, &'static str);

impl Candidate for OnAPool {
    type Store = PostgresStore;

    async fn open(&self) -> Bench<PostgresStore> {
        let pool = self.0.pool(10, self.1).await;
        let store = self.0.builder(&self.0.table()).open(pool).await.unwrap();
        Bench { store: Arc::new(store), time: Time::Real }
    }
}

/// Where there is no server, and need not be, a test ends here.
macro_rules! database {
    () => {
        match Database::reach() {
            Some(database) => database,
            None => return Ok(()),
        }
    };
}

mod own_connections {
    use super::*;
    store_contract!(OnItsOwnConnections(database!()));
}

mod in_transactions {
    use super::*;
    store_contract!(InTransactions(database!()));
}

mod repeatable_read {
    use super::*;
    const SET: &str = "SET default_transaction_isolation = 'repeatable read'; SET TimeZone = 'Asia/Kolkata'";
    store_contract!(OnAPool(database!(), SET));
}

mod serializable {
    use super::*;
    const SET: &str = "SET default_transaction_isolation = 'serializable'; SET TimeZone = 'America/New_York'";
    store_contract!(OnAPool(database!(), SET));
}
