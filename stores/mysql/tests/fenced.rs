//! The record and the application's own rows change together, or not at all.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{
    Bid, Claim, Fate, Inspect, Lease, OnLapse, PhaseName, Release, Settled, Store, StoreErrorKind,
};
use idempotency_store_mysql::MySqlStore;
use scene::{DAY, Database, bid, builder, claim, granted, keep, operation, outcome, run};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection};

const BRIEF: Duration = Duration::from_millis(20);

/// A store, and beside it a table of the application's.
struct Shop {
    database: Database,
    store: MySqlStore,
    table: String,
    orders: String,
}

impl Shop {
    async fn open() -> Option<Self> {
        let database = Database::reach()?;
        let (table, orders) = (database.table(), database.table());
        let store = builder().table(&table).connect(database.url()).await.unwrap();
        run(&mut database.beside().await, &orders, "CREATE TABLE {t} (id INT) ENGINE = InnoDB").await;
        Some(Self { database, store, table, orders })
    }

    async fn order(&self, connection: &mut MySqlConnection) {
        run(connection, &self.orders, "INSERT INTO {t} VALUES (7)").await;
    }

    async fn orders(&self) -> i64 {
        let count = format!("SELECT COUNT(*) FROM `{}`", self.orders);
        let mut connection = self.database.beside().await;
        sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(&mut connection).await.unwrap()
    }

    async fn lapsed(&self, key: &str) -> Lease {
        let op = operation(key, b"body");
        let lease = granted(self.store.claim(&op, &Bid { lease: BRIEF, ..bid() }).await.unwrap());
        tokio::time::sleep(BRIEF * 2).await;
        lease
    }
}

#[tokio::test]
async fn a_commit_stores_the_order_and_its_outcome() {
    let Some(shop) = Shop::open().await else { return };
    let lease = claim(&shop.store, "k").await;
    let mut connection = shop.database.beside().await;
    let mut tx = connection.begin().await.unwrap();
    assert_eq!(shop.store.fence_in(&mut tx, &lease).await.unwrap(), Settled::Applied);
    shop.order(&mut tx).await;
    let settled = shop.store.complete_in(&mut tx, &lease, &outcome(), keep(DAY)).await.unwrap();
    assert_eq!(settled, Settled::Applied);
    let seen = shop.store.find(&lease.address).await.unwrap().unwrap();
    assert_eq!(seen.phase.name(), PhaseName::InFlight, "nothing is seen before the commit");
    tx.commit().await.unwrap();

    let verdict = shop.store.claim(&operation("k", b"body"), &bid()).await.unwrap();
    assert_eq!((verdict, shop.orders().await), (Claim::Completed(outcome()), 1));
    // The reply to the commit may be lost: the outcome is there, and the completion counts once more.
    let mut tx = connection.begin().await.unwrap();
    let settled = shop.store.complete_in(&mut tx, &lease, &outcome(), keep(DAY)).await.unwrap();
    assert_eq!(settled, Settled::Applied);
}

#[tokio::test]
async fn a_rollback_stores_neither() {
    let Some(shop) = Shop::open().await else { return };
    let lease = claim(&shop.store, "k").await;
    let mut connection = shop.database.beside().await;
    let mut tx = connection.begin().await.unwrap();
    shop.order(&mut tx).await;
    let settled = shop.store.complete_in(&mut tx, &lease, &outcome(), keep(DAY)).await.unwrap();
    assert_eq!(settled, Settled::Applied);
    tx.rollback().await.unwrap();
    let verdict = shop.store.claim(&operation("k", b"body"), &bid()).await.unwrap();
    assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
    assert_eq!(shop.orders().await, 0);
    assert_eq!(shop.store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
}

#[tokio::test]
async fn who_was_taken_over_is_fenced_though_his_transaction_began_before() {
    let Some(shop) = Shop::open().await else { return };
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let mut connection = shop.database.beside().await;
        run(&mut connection, &shop.table, &format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).await;
        let stale = shop.lapsed(level).await;
        let mut tx = connection.begin().await.unwrap();
        // Its snapshot, where there is one, is from now on.
        run(&mut tx, &shop.orders, "SELECT * FROM {t}").await;
        let current = claim(&shop.store, level).await;
        assert!(current.is_takeover());

        let fenced = shop.store.fence_in(&mut tx, &stale).await.unwrap();
        let Settled::Fenced(Some(standing)) = fenced else { panic!("{level}: {fenced:?}") };
        assert_eq!((standing.fence, standing.phase), (current.fence, PhaseName::InFlight));
        let fenced = shop.store.complete_in(&mut tx, &stale, &outcome(), keep(DAY)).await.unwrap();
        assert!(matches!(fenced, Settled::Fenced(Some(_))), "{level}: {fenced:?}");
        tx.rollback().await.unwrap();
        assert_eq!(shop.store.complete(&current, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    }
}

#[tokio::test]
async fn nobody_takes_over_from_a_transaction_that_is_fenced_in() {
    let Some(shop) = Shop::open().await else { return };
    let lease = shop.lapsed("k").await;
    let mut connection = shop.database.beside().await;
    let mut tx = connection.begin().await.unwrap();
    assert_eq!(shop.store.fence_in(&mut tx, &lease).await.unwrap(), Settled::Applied, "it only lapsed");
    let other = tokio::spawn({
        let store = shop.store.clone();
        async move { store.claim(&operation("k", b"body"), &bid()).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await; // in which it would have taken over
    assert!(!other.is_finished());
    shop.order(&mut tx).await;
    let settled = shop.store.complete_in(&mut tx, &lease, &outcome(), keep(DAY)).await.unwrap();
    assert_eq!(settled, Settled::Applied);
    tx.commit().await.unwrap();
    assert_eq!(other.await.unwrap().unwrap(), Claim::Completed(outcome()));
}

#[tokio::test]
async fn what_ended_otherwise_fences_and_what_is_in_doubt_may_be_completed() {
    let Some(shop) = Shop::open().await else { return };
    let mut connection = shop.database.beside().await;
    let released = claim(&shop.store, "released").await;
    let _ = shop.store.release(&released, Release::NotApplied).await.unwrap();
    let hold = Bid { on_lapse: OnLapse::Hold, ..bid() };
    let doubt = granted(shop.store.claim(&operation("doubt", b""), &hold).await.unwrap());
    let _ = shop.store.release(&doubt, Release::Unknown).await.unwrap();
    let absent = Lease { address: *operation("absent", b"").address(), ..released };

    let mut tx = connection.begin().await.unwrap();
    for lease in [&released, &doubt] {
        let fenced = shop.store.fence_in(&mut tx, lease).await.unwrap();
        assert!(matches!(fenced, Settled::Fenced(Some(_))), "{fenced:?}");
    }
    assert_eq!(shop.store.fence_in(&mut tx, &absent).await.unwrap(), Settled::Fenced(None));
    let settled = shop.store.complete_in(&mut tx, &released, &outcome(), keep(DAY)).await.unwrap();
    assert!(matches!(settled, Settled::Fenced(Some(_))), "{settled:?}");
    let settled = shop.store.complete_in(&mut tx, &absent, &outcome(), keep(DAY)).await.unwrap();
    assert_eq!(settled, Settled::Fenced(None));
    let settled = shop.store.complete_in(&mut tx, &doubt, &outcome(), keep(DAY)).await.unwrap();
    assert_eq!(settled, Settled::Applied);
    tx.commit().await.unwrap();
    let verdict = shop.store.claim(&operation("doubt", b""), &bid()).await.unwrap();
    assert_eq!(verdict, Claim::Completed(outcome()));
}

#[tokio::test]
async fn a_transaction_that_lost_to_another_is_told_so() {
    let Some(shop) = Shop::open().await else { return };
    let leases = [claim(&shop.store, "a").await, claim(&shop.store, "b").await];
    let (mut one, mut other) = (shop.database.beside().await, shop.database.beside().await);
    let (mut one, mut other) = (one.begin().await.unwrap(), other.begin().await.unwrap());
    assert_eq!(shop.store.fence_in(&mut one, &leases[0]).await.unwrap(), Settled::Applied);
    assert_eq!(shop.store.fence_in(&mut other, &leases[1]).await.unwrap(), Settled::Applied);
    let done = outcome();
    let (first, second) = tokio::join!(
        shop.store.complete_in(&mut one, &leases[1], &done, keep(DAY)),
        shop.store.complete_in(&mut other, &leases[0], &done, keep(DAY)),
    );
    let (won, lost): (Vec<_>, Vec<_>) = [first, second].into_iter().partition(Result::is_ok);
    let lost = lost.into_iter().next().expect("one of them was chosen").unwrap_err();
    assert_eq!((lost.kind, lost.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{lost:?}");
    assert_eq!(won.into_iter().next().unwrap().unwrap(), Settled::Applied);
}
