//! The MySQL store under every law of the suite, on the server's clock: with connections of its own, in the way of a
//! server without `RETURNING`, and on a pool whose connections are set as MySQL sets them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::sync::Arc;

use idempotency_store_contract::{Bench, Candidate, Time, store_contract};
use idempotency_store_mysql::MySqlStore;
use scene::Database;

struct OnItsOwnConnections(Database);

impl Candidate for OnItsOwnConnections {
    type Store = MySqlStore;

    async fn open(&self) -> Bench<MySqlStore> {
        let (store, _) = self.0.store().await;
        Bench { store: Arc::new(store), time: Time::Real }
    }
}

struct WithoutReturning(Database);

impl Candidate for WithoutReturning {
    type Store = MySqlStore;

    async fn open(&self) -> Bench<MySqlStore> {
        let builder = scene::builder().table(self.0.table()).without_returning();
        Bench { store: Arc::new(builder.connect(self.0.url()).await.unwrap()), time: Time::Real }
    }
}

struct OnAPoolOfYours(Database);

impl Candidate for OnAPoolOfYours {
    type Store = MySqlStore;

    async fn open(&self) -> Bench<MySqlStore> {
        let set = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET time_zone = '-09:30'";
        let store = self.0.store_on_pool(scene::builder(), set).await;
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

mod without_returning {
    use super::*;
    store_contract!(WithoutReturning(database!()));
}

mod pool_of_yours {
    use super::*;
    store_contract!(OnAPoolOfYours(database!()));
}
