//! Connections: what a call takes of them, what it leaves behind, and what others get.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use idempotency_core::{Bid, Claim, Fate, Holder, Lease, Notify, Settled, Store, StoreErrorKind};
use idempotency_services::Server;
use idempotency_store_contract::wire::{Fault, Proxy};
use idempotency_store_postgres::PostgresStoreBuilder;
use scene::{DAY, Database, bid, claim, granted, keep, operation, outcome};
use sqlx::{Executor, postgres::PgPoolOptions};
use tokio::{task::JoinSet, time::timeout};

/// How a store is told to send its statements.
type Way = fn(PostgresStoreBuilder) -> PostgresStoreBuilder;

const SOON: Duration = Duration::from_millis(200);
/// Longer than a busy machine takes for anything here.
const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_call_that_gets_no_connection_was_not_applied() {
    let Some(database) = Database::reach() else { return };
    let pool = database.pool(1, "SELECT 1").await;
    let store = database.builder("t").patience(SOON).open(pool.clone()).await.unwrap();
    let taken = pool.acquire().await.unwrap();
    let begun = Instant::now();
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
    assert!(
        begun.elapsed() < pool.options().get_acquire_timeout(),
        "it waited for as long as the pool would"
    );
    drop(taken);
    claim(&store, "k").await;
}

#[tokio::test]
async fn a_record_that_stays_locked_is_given_up_by_the_server_on_the_store_s_own_connections() {
    let Some(database) = Database::reach() else { return };
    let builders: [Way; 2] = [|builder| builder, PostgresStoreBuilder::behind_transaction_pooler];
    for way in builders {
        let table = database.table();
        let store = way(database.builder(&table).patience(2 * SOON).connections(1));
        let store = store.connect(database.url()).await.unwrap();
        let lease = claim(&store, "k").await;
        let mut other = database.beside().await;
        database.run(&mut other, &table, "BEGIN; SELECT FROM {t} FOR UPDATE").await;
        let error = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap_err();
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");
        let locked = std::error::Error::source(&error).unwrap().downcast_ref::<sqlx::Error>().unwrap();
        assert_eq!(locked.as_database_error().unwrap().code().unwrap(), "55P03");
        claim(&store, "another").await; // on the same connection
        database.run(&mut other, &table, "COMMIT").await;
        assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    }
}

/// A pool of the caller's may let its connections wait for ever: the store does not.
#[tokio::test]
async fn a_record_that_stays_locked_on_a_pool_of_yours_leaves_the_fate_unknown_and_no_connection_waiting() {
    let Some(database) = Database::reach() else { return };
    let pool = database.pool(1, "SET lock_timeout = 0").await;
    let store = database.builder("t").patience(SOON).open(pool.clone()).await.unwrap();
    let lease = claim(&store, "k").await;
    let mut other = database.beside().await;
    database.run(&mut other, "t", "BEGIN; SELECT FROM {t} FOR UPDATE").await;
    let error = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::Unknown));
    pool.acquire().await.expect("the pool has room for another connection");
    database.run(&mut other, "t", "COMMIT").await;
}

/// A call may be several statements: why an ending did not count is read by one of its own.
#[tokio::test]
async fn a_call_of_several_statements_takes_no_longer_than_one() {
    let Some(database) = Database::reach() else { return };
    let proxy = Proxy::before(&Server::Postgres.address().unwrap()).await.unwrap();
    let url = Server::Postgres.url_at(&proxy.address().to_string()).unwrap();
    let patience = 10 * SOON;
    let store = database.builder("t").patience(patience).connections(1).connect(&url).await.unwrap();
    let somebody_else_s = Lease { holder: Holder::draw(), ..claim(&store, "k").await };
    let settled = store.complete(&somebody_else_s, &outcome(), keep(DAY)).await.unwrap();
    assert!(matches!(settled, Settled::Fenced(Some(_))), "{settled:?}");
    proxy.quiet().await;

    proxy.strike(Fault::Delayed(patience * 2 / 5), ..); // either way
    let begun = Instant::now();
    let error = store.complete(&somebody_else_s, &outcome(), keep(DAY)).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
    assert!(begun.elapsed() < patience * 3 / 2, "it took {:?}", begun.elapsed());
}

#[tokio::test]
async fn waiting_for_another_run_holds_no_connection() {
    let Some(database) = Database::reach() else { return };
    let store = database.builder("t").connections(1).connect(database.url()).await.unwrap();
    let lease = claim(&store, "k").await;
    let mut waiters = JoinSet::new();
    for _ in 0..20 {
        let (store, address) = (store.clone(), lease.address);
        waiters.spawn(async move { store.ended(&address).await });
    }
    let mut beside = database.beside().await;
    let flagged = "SELECT count(*) FROM {t} WHERE waited";
    while database.number(&mut beside, "t", flagged).await == 0 {}
    for key in 0..20 {
        claim(&store, &format!("k{key}")).await;
    }
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    waiters.join_all().await;
}

/// Polls `future` at most `polls` times, then drops it. Whether it ended by itself.
async fn drop_after(polls: u32, future: impl Future) -> bool {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_dropped_at_any_point_leaves_no_transaction_and_its_copy_is_granted() {
    let Some(database) = Database::reach() else { return };
    // A claim takes two polls, and more if it is several exchanges with the server.
    let ways: [(u32, Way); 2] =
        [(4, |builder| builder), (12, PostgresStoreBuilder::behind_transaction_pooler)];
    for (most_polls, way) in ways {
        let table = database.table();
        let pool = database.pool(2, "SET lock_timeout = 0").await;
        let store = way(database.builder(&table)).open(pool.clone()).await.unwrap();
        claim(&store, "prepared").await;
        let (mut dropped, mut ended) = (0, 0);
        for attempt in 0..60 {
            let (op, bid) = (operation(&format!("k{attempt}"), b"body"), bid());
            match drop_after(attempt % most_polls, store.claim(&op, &bid)).await {
                true => ended += 1,
                false => dropped += 1,
            }
            granted(store.claim(&op, &bid).await.unwrap());
        }
        assert!(dropped > 10 && ended > 10, "{dropped} claims were dropped, {ended} ended before that");
        // Whatever was left half done would still hold its records.
        let mut other = database.beside().await;
        database
            .run(&mut other, &table, "SET lock_timeout = '30s'; LOCK TABLE {t} IN ACCESS EXCLUSIVE MODE")
            .await;
    }
}

/// An engine waits for a moment and looks, again and again: a slow server must not lose a connection each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_given_up_at_any_point_costs_no_connection() {
    const PROCESS: &str = "SELECT pg_backend_pid()::bigint";
    let Some(database) = Database::reach() else { return };
    let pool = database.pool(1, "SELECT 1").await;
    let store = database.builder("t").open(pool.clone()).await.unwrap();
    let lease = claim(&store, "k").await;
    let first = database.number(&mut pool.acquire().await.unwrap(), "t", PROCESS).await;
    for wait in 0..40 {
        let _ = timeout(Duration::from_micros(100 * wait), store.ended(&lease.address)).await;
    }
    assert_eq!(database.number(&mut pool.acquire().await.unwrap(), "t", PROCESS).await, first);
}

#[tokio::test]
async fn a_connection_that_somebody_left_in_a_failed_transaction_costs_one_call() {
    let Some(database) = Database::reach() else { return };
    let pool = database.pool(1, "SELECT 1").await;
    let store = database.builder("t").open(pool.clone()).await.unwrap();
    let mut left = pool.acquire().await.unwrap();
    left.execute("BEGIN").await.unwrap();
    left.execute("SELECT 1 / 0").await.unwrap_err();
    drop(left);
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");
    claim(&store, "k").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_get_their_turn_of_a_pool_that_a_store_keeps_busy() {
    let Some(database) = Database::reach() else { return };
    let pool = database.pool(2, "SELECT 1").await;
    let store = database.builder("t").open(pool.clone()).await.unwrap();
    let (done, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let (store, done, calls) = (store.clone(), Arc::clone(&done), Arc::clone(&calls));
        callers.spawn(async move {
            for number in 0.. {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                claim(&store, &format!("{caller} {number}")).await;
                calls.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let begun = Instant::now();
    let mut waits = Vec::new();
    while begun.elapsed() < Duration::from_secs(2) {
        let wait = Instant::now();
        drop(pool.acquire().await.unwrap());
        waits.push(wait.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    done.store(true, Ordering::Relaxed);
    callers.join_all().await;
    let calls = calls.load(Ordering::Relaxed);
    let longest = waits.iter().max().unwrap();
    assert!(calls > 10 * waits.len(), "{calls} calls keep no pool busy");
    assert!(*longest < Duration::from_secs(1), "somebody waited {longest:?} for a connection; {calls} calls");
}

#[tokio::test]
async fn a_connection_that_was_begun_is_made_and_used_though_its_call_was_served_sooner() {
    let Some(database) = Database::reach() else { return };
    let (begun, made) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begins, makes) = (Arc::clone(&begun), Arc::clone(&made));
    let pool = PgPoolOptions::new()
        .max_connections(8)
        .after_connect(move |connection, _| {
            begins.fetch_add(1, Ordering::Relaxed);
            let makes = Arc::clone(&makes);
            Box::pin(async move {
                connection.execute("SELECT pg_sleep(0.05)").await?;
                makes.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        })
        .connect(database.url())
        .await
        .unwrap();
    let store = database.builder("t").open(pool.clone()).await.unwrap();
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let store = store.clone();
        callers.spawn(async move {
            for number in 0..20 {
                claim(&store, &format!("{caller} {number}")).await;
            }
        });
    }
    callers.join_all().await;
    pool.close().await; // waits for those that are on their way
    let [begun, made] = [begun, made].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(begun, made, "connections were given up half way");
    assert!((2..=8).contains(&made), "{made} connections");
}

#[tokio::test]
async fn a_store_that_rests_has_given_every_connection_back() {
    let Some(database) = Database::reach() else { return };
    let pool = database.pool(3, "SELECT 1").await;
    let store = database.builder("t").open(pool.clone()).await.unwrap();
    let mut callers = JoinSet::new();
    for caller in 0..6 {
        let store = store.clone();
        callers.spawn(async move { claim(&store, &format!("k{caller}")).await });
    }
    callers.join_all().await;
    let begun = Instant::now();
    while pool.num_idle() < usize::try_from(pool.size()).unwrap() {
        assert!(begun.elapsed() < LONG, "a connection stays with the store");
        tokio::task::yield_now().await;
    }
    claim(&store, "last").await;
    timeout(LONG, pool.close()).await.expect("a pool is closed without the store");
    drop(store);
}

/// A store may be dropped where no runtime is left to give its connections back.
#[test]
fn a_store_outlives_its_runtime_by_a_moment() {
    let Some(database) = Database::reach() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(async {
        let store = database.builder("t").connect(database.url()).await.unwrap();
        claim(&store, "k").await;
        store
    });
    drop(runtime);
    drop(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_died_while_it_rested_costs_no_call() {
    let Some(database) = Database::reach() else { return };
    let store = database.builder("t").connections(1).connect(database.url()).await.unwrap();
    claim(&store, "k").await;
    tokio::time::sleep(Duration::from_secs(6)).await; // longer than a connection is taken to live
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE query LIKE '%\"{s}\".\"t_claim\"%' AND pid <> pg_backend_pid()";
    assert_eq!(database.number(&mut database.beside().await, "t", kill).await, 1);
    let verdict = store.claim(&operation("k", b"body"), &Bid { lease: DAY, ..bid() }).await.unwrap();
    assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
}
