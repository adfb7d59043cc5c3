//! Behind a PgBouncer that gives a connection to another client after each transaction.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use idempotency_core::{
    Bid, Claim, Holder, Inspect, Keep, Media, OnLapse, Outcome, Phase, Release, Settled, Store,
};
use idempotency_services::Server;
use idempotency_store_postgres::PostgresStore;
use scene::{DAY, Database, bid, granted, operation};
use sqlx::{
    AssertSqlSafe,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::task::JoinSet;

const CALLERS: usize = 16;
const CALLS: usize = 200;

/// The database through the pooler, if there is one.
fn through_the_pooler() -> Option<(Database, String)> {
    Some((Database::reach()?, Server::PgBouncer.url()?))
}

/// One operation from its first claim to its end, five calls, each with an answer that no other call has.
async fn live(store: &PostgresStore, key: &str, number: usize) {
    let op = operation(key, key.as_bytes());
    let own = Bid { lease: DAY * (1 + u32::try_from(number).unwrap()), ..bid() };
    let lease = granted(store.claim(&op, &own).await.unwrap());
    assert_eq!((lease.address, lease.holder), (*op.address(), own.holder));
    let seen = store.claim(&op, &bid()).await.unwrap();
    let Claim::InFlight { left } = seen else { panic!("{key}: {seen:?}") };
    assert!(left <= own.lease && left > own.lease - DAY / 2, "{key}: {left:?}");
    let stranger = store.claim(&operation(key, b"another payload"), &bid()).await.unwrap();
    assert!(matches!(stranger, Claim::Mismatch(_)), "{key}: {stranger:?}");
    if number.is_multiple_of(3) {
        assert_eq!(store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Applied);
        let next = granted(store.claim(&op, &bid()).await.unwrap());
        assert!(next.fence > lease.fence && next.holder != lease.holder, "{key}");
    } else {
        let outcome = Outcome::whole(Media(7), format!("the outcome of {key}"));
        let keep = Keep { replay: DAY, then_reject: DAY };
        assert_eq!(store.complete(&lease, &outcome, keep).await.unwrap(), Settled::Applied);
        assert_eq!(store.claim(&op, &bid()).await.unwrap(), Claim::Completed(outcome), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_callers_on_three_connections_each_get_their_own_answers() {
    let Some((database, url)) = through_the_pooler() else { return };
    // Several stores, so that the pooler has more clients than connections to the server.
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let builder = database.builder("t").behind_transaction_pooler().connections(3);
        let builder = builder.patience(Duration::from_secs(60));
        let url = url.clone();
        callers.spawn(async move {
            let store = builder.connect(&url).await.unwrap();
            for life in 0..CALLS / 5 {
                live(&store, &format!("{caller} {life}"), caller + life).await;
            }
        });
    }
    callers.join_all().await;
    let mut beside = database.beside().await;
    let ended =
        "SELECT count(*) FROM {t} WHERE phase = 2 AND convert_from(outcome, 'UTF8') LIKE 'the outcome of %'";
    let completed = (0..CALLERS).flat_map(|caller| (0..CALLS / 5).map(move |life| caller + life));
    let completed = completed.filter(|number| !number.is_multiple_of(3)).count();
    assert_eq!(database.number(&mut beside, "t", ended).await, i64::try_from(completed).unwrap());
    let all = i64::try_from(CALLERS * CALLS / 5).unwrap();
    assert_eq!(database.number(&mut beside, "t", "SELECT count(*) FROM {t}").await, all);
}

/// What the test above would see if the store did not know of the pooler: this is why it has to be told.
#[tokio::test(flavor = "multi_thread")]
async fn without_transactions_a_pooler_hands_out_other_clients_answers() {
    let Some((_, url)) = through_the_pooler() else { return };
    let options: PgConnectOptions = url.parse().unwrap();
    let foreign = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (options, foreign) = (options.clone().extra_float_digits(None), Arc::clone(&foreign));
        callers.spawn(async move {
            let pool = PgPoolOptions::new().max_connections(3).connect_with(options).await.unwrap();
            for call in 0..CALLS {
                let own = i64::try_from(caller * CALLS + call).unwrap();
                let query = AssertSqlSafe(format!("SELECT {own}::bigint + $1"));
                let query = sqlx::query_scalar(query).bind(0_i64).persistent(false);
                let answer: Result<i64, _> = query.fetch_one(&pool).await;
                if answer.is_ok_and(|answer| answer != own) {
                    foreign.fetch_add(1, Ordering::Relaxed);
                }
                if foreign.load(Ordering::Relaxed) > 0 {
                    return;
                }
            }
        });
    }
    callers.join_all().await;
    let foreign = foreign.load(Ordering::Relaxed);
    assert!(foreign > 0, "this pooler does not pool transactions, so the other tests here prove nothing");
}

#[tokio::test]
async fn operators_and_purges_work_through_the_pooler() {
    let Some((database, url)) = through_the_pooler() else { return };
    let store = database.builder("t").behind_transaction_pooler().connect(&url).await.unwrap();
    let held = Bid { lease: Duration::ZERO, on_lapse: OnLapse::Hold, ..bid() };
    let lease = granted(store.claim(&operation("held", b"body"), &held).await.unwrap());
    let listed = store.list(idempotency_core::Select::InDoubt, None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    let resolved =
        store.resolve(&lease.address, lease.fence, &idempotency_core::Resolution::NotApplied).await.unwrap();
    assert_eq!(resolved, Settled::Applied);
    let record = store.find(&lease.address).await.unwrap().unwrap();
    assert!(matches!(record.phase, Phase::Released { .. }), "{record:?}");
    database.run(&mut database.beside().await, "t", "UPDATE {t} SET until = 1, due = 1").await;
    assert_eq!(store.purge(10).await.unwrap(), 1);
}

/// A client that goes away within a transaction leaves its connection to the next one as if it had never been.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_leaves_no_transaction_open() {
    let Some((database, url)) = through_the_pooler() else { return };
    let builder = database.builder("t").behind_transaction_pooler().connections(1);
    let store = builder.patience(Duration::from_secs(60)).connect(&url).await.unwrap();
    for number in 0..40 {
        let (op, bid) = (operation(&format!("k{number}"), b"body"), Bid { holder: Holder::draw(), ..bid() });
        let _ = tokio::time::timeout(Duration::from_micros(number * 100), store.claim(&op, &bid)).await;
        let lease = granted(store.claim(&op, &bid).await.unwrap());
        assert_eq!(store.renew(&lease, DAY).await.unwrap(), Settled::Applied);
    }
    let idle = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND query LIKE '%{s}%'";
    let mut beside = database.beside().await;
    let begun = std::time::Instant::now();
    while database.number(&mut beside, "t", idle).await > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "a transaction stays open");
    }
}
