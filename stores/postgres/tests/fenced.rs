//! The writes of a run and its outcome, in one transaction.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{error::Error, time::Duration};

use idempotency_core::{
    Bid, Claim, Fate, Inspect, Keep, Lease, Outcome, Phase, PhaseName, Release, Settled, Store,
    StoreErrorKind,
};
use idempotency_store_postgres::PostgresStore;
use scene::{DAY, Database, bid, claim, granted, keep, operation, outcome};
use sqlx::{Acquire, PgConnection, PgPool};

const LEVELS: [&str; 3] = [
    "SET default_transaction_isolation = 'read committed'",
    "SET default_transaction_isolation = 'repeatable read'",
    "SET default_transaction_isolation = 'serializable'",
];

/// A store beside the orders of an application, and the application's connections.
struct Shop {
    database: Database,
    store: PostgresStore,
    pool: PgPool,
}

impl Shop {
    async fn open(level: &'static str) -> Option<Self> {
        let database = Database::reach()?;
        let pool = database.pool(5, level).await;
        let store = database.builder("t").patience(Duration::from_secs(20)).open(pool.clone()).await.unwrap();
        database.run(&mut database.beside().await, "t", "CREATE TABLE {s}.orders (buyer text)").await;
        Some(Self { database, store, pool })
    }

    async fn order(&self, transaction: &mut PgConnection) {
        self.database.run(transaction, "t", "INSERT INTO {s}.orders VALUES ('alice')").await;
    }

    async fn orders(&self) -> i64 {
        let count = "SELECT count(*) FROM {s}.orders";
        self.database.number(&mut self.database.beside().await, "t", count).await
    }

    /// Ends when a statement on the store's table waits for a lock.
    async fn somebody_waits(&self) {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE wait_event_type = 'Lock' AND query LIKE '%\"{s}\".%'";
        let mut beside = self.database.beside().await;
        while self.database.number(&mut beside, "t", waiting).await == 0 {}
    }

    /// The run of another holder, after this lease lapsed.
    async fn taken_over(&self, key: &str) -> (Lease, Lease) {
        let op = operation(key, b"body");
        let lapsing = Bid { lease: Duration::ZERO, ..bid() };
        let lost = granted(self.store.claim(&op, &lapsing).await.unwrap());
        (lost, granted(self.store.claim(&op, &bid()).await.unwrap()))
    }
}

#[tokio::test]
async fn what_a_run_wrote_and_its_outcome_commit_together() {
    for level in LEVELS {
        let Some(shop) = Shop::open(level).await else { return };
        let lease = claim(&shop.store, "k").await;
        let mut transaction = shop.pool.begin().await.unwrap();
        assert_eq!(shop.store.fence_in(&mut transaction, &lease).await.unwrap(), Settled::Applied);
        shop.order(&mut transaction).await;
        let keep = Keep { replay: DAY, then_reject: DAY };
        let settled = shop.store.complete_in(&mut transaction, &lease, &outcome(), keep).await.unwrap();
        assert_eq!(settled, Settled::Applied);
        // Nobody sees either before.
        let verdict = shop.store.look(&operation("k", b"body")).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        assert_eq!(shop.orders().await, 0);

        transaction.commit().await.unwrap();
        assert_eq!(shop.orders().await, 1);
        let verdict = shop.store.claim(&operation("k", b"body"), &bid()).await.unwrap();
        assert_eq!(verdict, Claim::Completed(outcome()));
        let record = shop.store.find(&lease.address).await.unwrap().unwrap();
        let Phase::Completed { until, gone, .. } = record.phase else { panic!("{record:?}") };
        assert_eq!(gone, until.plus(DAY));
        // A door that completes what is completed hears that it counts.
        assert_eq!(
            shop.store.complete(&lease, &Outcome::whole(outcome().media, "again"), keep).await.unwrap(),
            Settled::Applied
        );
    }
}

#[tokio::test]
async fn what_is_rolled_back_never_was() {
    let Some(shop) = Shop::open(LEVELS[0]).await else { return };
    let lease = claim(&shop.store, "k").await;
    let mut transaction = shop.pool.begin().await.unwrap();
    shop.order(&mut transaction).await;
    let _ = shop.store.complete_in(&mut transaction, &lease, &outcome(), keep(DAY)).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(shop.orders().await, 0);
    let record = shop.store.find(&lease.address).await.unwrap().unwrap();
    assert_eq!(record.phase.name(), PhaseName::InFlight);
    assert_eq!(shop.store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Applied);
}

#[tokio::test]
async fn a_run_that_was_taken_over_commits_nothing() {
    for level in LEVELS {
        let Some(shop) = Shop::open(level).await else { return };
        let (lost, _) = shop.taken_over("k").await;
        let mut transaction = shop.pool.begin().await.unwrap();
        let fenced = shop.store.fence_in(&mut transaction, &lost).await.unwrap();
        assert!(matches!(fenced, Settled::Fenced(Some(standing)) if standing.phase == PhaseName::InFlight));
        let fenced = shop.store.complete_in(&mut transaction, &lost, &outcome(), keep(DAY)).await.unwrap();
        assert!(matches!(fenced, Settled::Fenced(Some(standing)) if standing.fence > lost.fence));
        // The transaction is the caller's, and whole: what it does now is up to it.
        shop.order(&mut transaction).await;
        transaction.commit().await.unwrap();
        let verdict = shop.store.look(&operation("k", b"body")).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
    }
}

#[tokio::test]
async fn what_ended_or_never_began_is_fenced_and_repeating_an_ending_counts() {
    let Some(shop) = Shop::open(LEVELS[0]).await else { return };
    let [completed, released, doubt] = [
        claim(&shop.store, "completed").await,
        claim(&shop.store, "released").await,
        claim(&shop.store, "doubt").await,
    ];
    let _ = shop.store.complete(&completed, &outcome(), keep(DAY)).await.unwrap();
    let _ = shop.store.release(&released, Release::NotApplied).await.unwrap();
    let _ = shop.store.release(&doubt, Release::Unknown).await.unwrap();
    let absent = Lease::unconfirmed(*operation("absent", b"").address(), bid().holder);
    let mut transaction = shop.pool.begin().await.unwrap();
    for (lease, may_complete) in [(completed, true), (released, false), (doubt, true), (absent, false)] {
        let fenced = shop.store.fence_in(&mut transaction, &lease).await.unwrap();
        assert!(matches!(fenced, Settled::Fenced(_)), "{fenced:?}");
        let settled = shop.store.complete_in(&mut transaction, &lease, &outcome(), keep(DAY)).await.unwrap();
        assert_eq!(settled == Settled::Applied, may_complete, "{settled:?}");
    }
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn nobody_takes_a_run_over_while_a_transaction_holds_its_record() {
    let Some(shop) = Shop::open(LEVELS[0]).await else { return };
    let op = operation("k", b"body");
    let lapsed = Bid { lease: Duration::ZERO, ..bid() };
    let lease = granted(shop.store.claim(&op, &lapsed).await.unwrap());
    let mut transaction = shop.pool.begin().await.unwrap();
    assert_eq!(shop.store.fence_in(&mut transaction, &lease).await.unwrap(), Settled::Applied);

    // On connections of its own a claim that wants the record is told soon that it cannot have it.
    let impatient = shop.database.builder("t").patience(Duration::from_secs(2));
    let impatient = impatient.connect(shop.database.url()).await.unwrap();
    let error = impatient.claim(&op, &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");

    let rival = tokio::spawn({
        let (store, op) = (shop.store.clone(), op.clone());
        async move { store.claim(&op, &bid()).await.unwrap() }
    });
    shop.somebody_waits().await;
    shop.order(&mut transaction).await;
    let settled = shop.store.complete_in(&mut transaction, &lease, &outcome(), keep(DAY)).await.unwrap();
    assert_eq!(settled, Settled::Applied);
    transaction.commit().await.unwrap();
    assert_eq!(rival.await.unwrap(), Claim::Completed(outcome()));
    assert_eq!(shop.orders().await, 1);
}

/// A copy that arrives between the completion and the commit gets the outcome, or runs if there is none after all.
#[tokio::test]
async fn a_claim_waits_for_the_commit_of_a_completion() {
    for commits in [true, false] {
        let Some(shop) = Shop::open(LEVELS[0]).await else { return };
        let lease = claim(&shop.store, "k").await;
        let mut transaction = shop.pool.begin().await.unwrap();
        let _ = shop.store.complete_in(&mut transaction, &lease, &outcome(), keep(DAY)).await.unwrap();
        let copy = tokio::spawn({
            let store = shop.store.clone();
            async move { store.claim(&operation("k", b"body"), &bid()).await.unwrap() }
        });
        shop.somebody_waits().await;
        if commits {
            transaction.commit().await.unwrap();
            assert_eq!(copy.await.unwrap(), Claim::Completed(outcome()));
        } else {
            transaction.rollback().await.unwrap();
            let verdict = copy.await.unwrap();
            assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        }
    }
}

/// Under snapshots a renewal since the transaction began fails it, unless its record was locked first.
#[tokio::test]
async fn a_renewal_fails_a_transaction_with_a_snapshot_that_is_older() {
    for level in &LEVELS[1..] {
        let Some(shop) = Shop::open(level).await else { return };
        let lease = claim(&shop.store, "k").await;
        let mut transaction = shop.pool.begin().await.unwrap();
        shop.order(&mut transaction).await;
        assert_eq!(shop.store.renew(&lease, 2 * DAY).await.unwrap(), Settled::Applied);
        let error =
            shop.store.complete_in(&mut transaction, &lease, &outcome(), keep(DAY)).await.unwrap_err();
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
        let cause = error.source().unwrap().downcast_ref::<sqlx::Error>().unwrap();
        assert_eq!(cause.as_database_error().unwrap().code().unwrap(), "40001");
        transaction.rollback().await.unwrap();
        assert_eq!(shop.orders().await, 0);
    }
}

#[tokio::test]
async fn an_outcome_that_is_too_long_is_refused_before_it_spoils_the_transaction() {
    let Some(shop) = Shop::open(LEVELS[0]).await else { return };
    let lease = claim(&shop.store, "k").await;
    let mut transaction = shop.pool.begin().await.unwrap();
    let long = Outcome::whole(outcome().media, vec![0; PostgresStore::MAX_OUTCOME_BYTES + 1]);
    let error = shop.store.complete_in(&mut transaction, &lease, &long, keep(DAY)).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::TooLarge, Fate::NotApplied));
    let settled = shop.store.complete_in(&mut transaction, &lease, &outcome(), keep(DAY)).await.unwrap();
    assert_eq!(settled, Settled::Applied);
    transaction.commit().await.unwrap();
}

/// A savepoint is a transaction to what is called within it.
#[tokio::test]
async fn a_savepoint_takes_a_completion_back() {
    let Some(shop) = Shop::open(LEVELS[0]).await else { return };
    let lease = claim(&shop.store, "k").await;
    let mut transaction = shop.pool.begin().await.unwrap();
    let mut inner = transaction.begin().await.unwrap();
    let _ = shop.store.complete_in(&mut inner, &lease, &outcome(), keep(DAY)).await.unwrap();
    inner.rollback().await.unwrap();
    assert_eq!(shop.store.fence_in(&mut transaction, &lease).await.unwrap(), Settled::Applied);
    transaction.commit().await.unwrap();
}
