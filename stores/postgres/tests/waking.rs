//! Waiters are woken by endings in other processes, and whoever has no waiter tells nobody.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
    time::{Duration, Instant},
};

use idempotency_core::{
    Address, Bid, Claim, Engine, Inspect, Notify, OnLapse, Operation, Release, Resolution, Settled, Store,
    policy::{Bounds, Terms},
};
use idempotency_store_postgres::PostgresStore;
use scene::{DAY, Database, bid, claim, granted, keep, operation, outcome};
use sqlx::postgres::PgListener;
use tokio::time::timeout;

/// Longer than a busy machine takes to wake anybody.
const LONG: Duration = Duration::from_secs(20);

fn address(key: &str) -> Address {
    *operation(key, b"body").address()
}

async fn flagged(database: &Database, table: &str) -> i64 {
    database.number(&mut database.beside().await, table, "SELECT count(*) FROM {t} WHERE waited").await
}

/// How many connections listen for the table's endings.
async fn listeners(database: &Database, table: &str) -> i64 {
    let listening = "SELECT count(*) FROM pg_stat_activity
                     WHERE query = 'LISTEN \"idempotency_' || '{t}'::regclass::oid || '\"'";
    database.number(&mut database.beside().await, table, listening).await
}

async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < LONG, "{what}");
    }
}

/// Lets a store listen. When it begins to, it wakes everybody, for what ended before.
async fn listening(database: &Database, table: &str) -> PostgresStore {
    let store = database.store_on(table).await;
    let lease = claim(&store, "nobody ends it").await;
    timeout(LONG, store.ended(&lease.address)).await.expect("it wakes when it begins to listen");
    database.run(&mut database.beside().await, table, "DELETE FROM {t}").await;
    store
}

/// Waits on `store` until the record is flagged, then `end`s it elsewhere: that wakes.
async fn wakes(database: &Database, table: &str, store: &PostgresStore, key: &str, end: impl AsyncFnOnce()) {
    let address = address(key);
    let waiter = tokio::spawn({
        let store = store.clone();
        async move { store.ended(&address).await }
    });
    until("the record is flagged", async || flagged(database, table).await == 1).await;
    assert!(!waiter.is_finished(), "{key}: it was woken for nothing");
    end().await;
    timeout(LONG, waiter).await.expect(key).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_ending_in_another_process_wakes_who_waits() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let (here, elsewhere) = (listening(&database, &table).await, database.store_on(&table).await);
    let lease = claim(&elsewhere, "completed").await;
    let end = async || {
        assert_eq!(elsewhere.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    };
    wakes(&database, &table, &here, "completed", end).await;
    database.run(&mut database.beside().await, &table, "DELETE FROM {t}").await;
    for why in [Release::NotApplied, Release::Unknown] {
        let lease = claim(&elsewhere, "released").await;
        let end = async || {
            assert_eq!(elsewhere.release(&lease, why).await.unwrap(), Settled::Applied);
        };
        wakes(&database, &table, &here, "released", end).await;
        database.run(&mut database.beside().await, &table, "DELETE FROM {t}").await;
    }
    for resolution in [Resolution::Applied(outcome(), keep(DAY)), Resolution::NotApplied] {
        let op = operation("resolved", b"body");
        let held = Bid { lease: Duration::ZERO, on_lapse: OnLapse::Hold, ..bid() };
        let lease = granted(elsewhere.claim(&op, &held).await.unwrap());
        let end = async || {
            let resolved = elsewhere.resolve(&lease.address, lease.fence, &resolution).await.unwrap();
            assert_eq!(resolved, Settled::Applied);
        };
        wakes(&database, &table, &here, "resolved", end).await;
        database.run(&mut database.beside().await, &table, "DELETE FROM {t}").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ending_within_a_transaction_wakes_when_it_commits() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let (here, elsewhere) = (listening(&database, &table).await, database.store_on(&table).await);
    let lease = claim(&elsewhere, "k").await;
    let end = async || {
        let pool = database.pool(1, "SELECT 1").await;
        let mut transaction = pool.begin().await.unwrap();
        let settled = elsewhere.complete_in(&mut transaction, &lease, &outcome(), keep(DAY)).await.unwrap();
        assert_eq!(settled, Settled::Applied);
        transaction.commit().await.unwrap();
    };
    wakes(&database, &table, &here, "k", end).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_ending_of_a_record_that_somebody_waits_for_is_told() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let (here, elsewhere) = (listening(&database, &table).await, database.store_on(&table).await);
    let channel = format!(
        "idempotency_{}",
        database.number(&mut database.beside().await, &table, "SELECT '{t}'::regclass::oid::bigint").await
    );
    let mut listener = PgListener::connect(database.url()).await.unwrap();
    listener.listen(&channel).await.unwrap();

    let (quiet, loud) = (claim(&elsewhere, "quiet").await, claim(&elsewhere, "loud").await);
    let _ = elsewhere.complete(&quiet, &outcome(), keep(DAY)).await.unwrap();
    let end = async || {
        let _ = elsewhere.complete(&loud, &outcome(), keep(DAY)).await.unwrap();
    };
    wakes(&database, &table, &here, "loud", end).await;
    let told = timeout(LONG, listener.recv()).await.unwrap().unwrap();
    assert_eq!(told.payload(), loud.address.to_string(), "the first ending that is told");

    // The flag goes with the grant it was for.
    let again = operation("again", b"body");
    let lease = claim(&elsewhere, "again").await;
    database.run(&mut database.beside().await, &table, "UPDATE {t} SET waited = true").await;
    let _ = elsewhere.release(&lease, Release::NotApplied).await.unwrap();
    granted(elsewhere.claim(&again, &bid()).await.unwrap());
    let of_again = "SELECT count(*) FROM {t} WHERE waited AND phase = 1";
    assert_eq!(database.number(&mut database.beside().await, &table, of_again).await, 0);
}

#[tokio::test]
async fn who_waits_for_what_is_not_in_flight_waits_for_nothing() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    let completed = claim(&store, "completed").await;
    let _ = store.complete(&completed, &outcome(), keep(DAY)).await.unwrap();
    for key in ["absent", "completed"] {
        timeout(LONG, store.ended(&address(key))).await.expect(key);
    }
    assert_eq!(flagged(&database, &table).await, 0);

    // One that somebody is changing may not be flagged in time, and is looked at again soon.
    claim(&store, "locked").await;
    let mut other = database.beside().await;
    database.run(&mut other, &table, "BEGIN; SELECT FROM {t} WHERE phase = 1 FOR UPDATE").await;
    timeout(LONG, store.ended(&address("locked"))).await.expect("it waits for no lock");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ending_here_wakes_at_once_and_without_listening_too() {
    let Some(database) = Database::reach() else { return };
    let builders = [
        database.builder(&database.table()),
        database.builder(&database.table()).without_listening(),
        database.builder(&database.table()).behind_transaction_pooler(),
    ];
    for builder in builders {
        let store = builder.connect(database.url()).await.unwrap();
        let lease = claim(&store, "k").await;
        let mut ended = pin!(store.ended(&lease.address));
        assert!(is_pending(ended.as_mut()).await);
        let _ = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
        timeout(LONG, ended).await.unwrap();
    }
}

async fn is_pending(mut future: Pin<&mut impl Future<Output = ()>>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_lost_the_connection_it_listens_on_looks_again_and_listens_again() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let (here, elsewhere) = (listening(&database, &table).await, database.store_on(&table).await);
    let lease = claim(&elsewhere, "k").await;
    let lost = async || {
        let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                    WHERE query = 'LISTEN \"idempotency_' || '{t}'::regclass::oid || '\"'";
        assert_eq!(database.number(&mut database.beside().await, &table, kill).await, 1);
    };
    wakes(&database, &table, &here, "k", lost).await;

    let end = async || {
        let _ = elsewhere.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
    };
    wakes(&database, &table, &here, "k", end).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_listens_on_one_connection_and_only_while_it_is_there() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let store = database.store_on(&table).await;
    let lease = claim(&store, "k").await;
    assert_eq!(listeners(&database, &table).await, 0, "nobody waits yet");
    let waiters: Vec<_> = (0..20)
        .map(|_| {
            let (store, address) = (store.clone(), lease.address);
            tokio::spawn(async move { store.ended(&address).await })
        })
        .collect();
    until("it listens", async || listeners(&database, &table).await > 0).await;
    assert_eq!(listeners(&database, &table).await, 1);
    let _ = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
    for waiter in waiters {
        timeout(LONG, waiter).await.unwrap().unwrap();
    }
    drop(store);
    until("it listens no more", async || listeners(&database, &table).await == 0).await;
}

/// Of two engines in two processes, one runs and the other waits for it, much shorter than it would between two looks.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_s_waiter_hears_of_a_run_on_another_host() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let engine = async || {
        let store = database.store_on(&table).await;
        Engine::new(store.clone(), Bounds::default()).woken_by(store)
    };
    let (here, elsewhere) = (engine().await, engine().await);
    let op = operation("k", b"body");
    let Claim::Granted(permit) = elsewhere.claim(&op, &Terms::default()).await.unwrap() else { panic!() };
    let waiter = tokio::spawn({
        let (here, op): (_, Operation) = (here.clone(), op.clone());
        async move { here.claim_within(&op, &Terms::default(), LONG).await.unwrap() }
    });
    until("the record is flagged", async || flagged(&database, &table).await == 1).await;
    let _ = permit.complete(outcome(), outcome).await;
    let verdict = timeout(LONG, waiter).await.unwrap().unwrap();
    assert!(matches!(verdict, Claim::Completed(_)), "{}", verdict.name());
}
