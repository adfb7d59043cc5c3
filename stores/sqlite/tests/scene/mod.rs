//! What the tests of this crate share: operations, bids, and a connection beside the store's.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{path::Path, time::Duration};

use idempotency_core::{
    Address, Bid, Claim, Door, Fingerprint, Holder, Keep, Key, Lease, Media, OnLapse, Operation, Outcome,
    Part, Scope, Store,
};
use idempotency_store_sqlite::SqliteStore;
use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

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

pub(crate) async fn claim(store: &SqliteStore, key: &str) -> Lease {
    granted(store.claim(&operation(key, b"body"), &bid()).await.unwrap())
}

/// A connection of the application's own to the same file.
pub(crate) async fn beside(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.unwrap()
}

/// Runs statements of a test.
pub(crate) async fn run(connection: &mut SqliteConnection, statements: &'static str) {
    sqlx::raw_sql(statements).execute(connection).await.unwrap();
}
