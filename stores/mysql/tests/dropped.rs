//! Calls that are dropped halfway, and what they leave behind: no transaction, no answer for somebody else, no
//! connection less.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use idempotency_core::{Claim, Fate, Holder, Lease, Media, Outcome, Settled, Store, StoreErrorKind};
use idempotency_services::Server;
use idempotency_store_contract::wire::{Fault, Proxy};
use idempotency_store_mysql::MySqlStore;
use scene::{DAY, Database, bid, builder, claim, granted, keep, operation, outcome, run};
use sqlx::{AssertSqlSafe, Executor, mysql::MySqlPoolOptions};

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

#[tokio::test]
async fn a_claim_dropped_at_any_point_is_adopted_by_its_copy_and_disturbs_no_other() {
    let Some(database) = Database::reach() else { return };
    for way in [builder(), builder().without_returning()] {
        let store = way.table(database.table()).connections(2).connect(database.url()).await.unwrap();
        let (mut dropped, mut ended) = (0, 0);
        for attempt in 0..80 {
            let (op, other) =
                (operation(&format!("k{attempt}"), b""), operation(&format!("o{attempt}"), b""));
            let (bid, others) = (bid(), bid());
            match drop_after(attempt % 8, store.claim(&op, &bid)).await {
                true => ended += 1,
                false => dropped += 1,
            }
            let lease = granted(store.claim(&other, &others).await.unwrap());
            assert_eq!((lease.address, lease.holder), (*other.address(), others.holder));
            let lease = granted(store.claim(&op, &bid).await.unwrap());
            assert_eq!((lease.address, lease.attempt), (*op.address(), 1));
        }
        assert!(dropped > 10 && ended > 10, "{dropped} claims were dropped, {ended} ended before that");
    }
}

/// Long answers come in many packets, and a caller may go between any two of them. What he leaves unread is chosen by
/// whoever's outcome it is: here every part of it reads as the beginning of an answer.
#[tokio::test]
async fn what_is_left_of_a_long_answer_is_nobody_s_answer() {
    let Some(database) = Database::reach() else { return };
    let store = builder().table(database.table()).connections(1);
    let store = store.connect(database.url()).await.unwrap();
    let poison = [7, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0].repeat(400_000);
    let long = Outcome::whole(Media(1), poison);
    let op = operation("long", b"");
    let lease = granted(store.claim(&op, &bid()).await.unwrap());
    assert_eq!(store.complete(&lease, &long, keep(DAY)).await.unwrap(), Settled::Applied);
    let mut dropped = 0;
    for number in 0..60 {
        dropped += u32::from(!drop_after(2 + number % 6, store.look(&op)).await);
        let (mine, bid) = (operation(&format!("k{number}"), b""), bid());
        let lease = granted(store.claim(&mine, &bid).await.unwrap());
        assert_eq!((lease.address, lease.holder), (*mine.address(), bid.holder));
    }
    assert!(dropped > 10, "{dropped} answers were left unread");
    assert_eq!(store.claim(&op, &bid()).await.unwrap(), Claim::Completed(long));
}

#[tokio::test]
async fn a_call_dropped_while_it_waits_for_a_record_takes_no_connection_with_it() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let pool = MySqlPoolOptions::new().max_connections(2).connect(database.url()).await.unwrap();
    let store = builder().table(&table).open(pool.clone()).await.unwrap();
    let lease = claim(&store, "k").await;
    let mut other = database.beside().await;
    let lock = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN; SELECT * FROM {t} FOR UPDATE";
    run(&mut other, &table, lock).await;
    for _ in 0..6 {
        let wait = tokio::time::timeout(Duration::from_millis(50), store.renew(&lease, DAY)).await;
        assert!(wait.is_err(), "{wait:?}");
    }
    claim(&store, "another").await;
    run(&mut other, &table, "COMMIT").await;
    assert_eq!(store.renew(&lease, DAY).await.unwrap(), Settled::Applied);
    for _ in 0..2 {
        let mut connection = pool.acquire().await.unwrap();
        let open = "SELECT CAST(@@in_transaction AS SIGNED)";
        let open: i64 = sqlx::query_scalar(AssertSqlSafe(open)).fetch_one(&mut *connection).await.unwrap();
        assert_eq!(open, 0, "a connection came back within a transaction");
    }
}

#[tokio::test]
async fn a_call_that_gets_no_answer_in_time_may_have_been_applied() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let pool = MySqlPoolOptions::new().max_connections(1).connect(database.url()).await.unwrap();
    let store = MySqlStore::builder().table(&table).patience(Duration::from_millis(200)).open(pool);
    let store = store.await.unwrap();
    let lease = claim(&store, "k").await;
    let mut other = database.beside().await;
    run(&mut other, &table, "BEGIN; SELECT * FROM {t} FOR UPDATE").await;
    let begun = Instant::now();
    let error = store.renew(&lease, DAY).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::Unknown), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    run(&mut other, &table, "COMMIT").await;
    assert_eq!(store.renew(&lease, DAY).await.unwrap(), Settled::Applied);
}

#[tokio::test]
async fn a_call_that_gets_no_connection_in_time_was_not_applied() {
    let Some(database) = Database::reach() else { return };
    let pool = MySqlPoolOptions::new().max_connections(1).connect(database.url()).await.unwrap();
    let store = MySqlStore::builder().table(database.table()).patience(Duration::from_millis(100));
    let store = store.open(pool.clone()).await.unwrap();
    let lease = claim(&store, "k").await;
    let only = pool.acquire().await.unwrap();
    for error in [
        store.claim(&operation("k", b""), &bid()).await.unwrap_err(),
        store.renew(&lease, DAY).await.unwrap_err(),
        store.look(&operation("k", b"")).await.unwrap_err(),
    ] {
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");
    }
    drop(only);
    assert_eq!(store.renew(&lease, DAY).await.unwrap(), Settled::Applied);
}

#[tokio::test]
async fn a_connection_that_was_begun_is_made_though_its_call_gives_up() {
    let Some(database) = Database::reach() else { return };
    let (begun, made) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begins, makes) = (Arc::clone(&begun), Arc::clone(&made));
    let pool = MySqlPoolOptions::new()
        .max_connections(4)
        .after_connect(move |connection, _| {
            begins.fetch_add(1, Ordering::Relaxed);
            let makes = Arc::clone(&makes);
            Box::pin(async move {
                connection.execute("SELECT SLEEP(0.5)").await?;
                makes.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        })
        .connect(database.url())
        .await
        .unwrap();
    let builder = MySqlStore::builder().table(database.table()).patience(Duration::from_millis(100));
    let store = builder.open(pool.clone()).await.unwrap();
    let mut taken = Vec::new();
    while taken.len() < pool.size() as usize {
        taken.extend(pool.try_acquire()); // opening gives its connections back a moment later
        tokio::task::yield_now().await;
    }
    let error = store.claim(&operation("k", b""), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");
    let all_made = async {
        loop {
            let [begun, made] = [&begun, &made].map(|count| count.load(Ordering::Relaxed));
            if begun == taken.len() + 1 && made == begun {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), all_made).await;
    assert!(waited.is_ok(), "a connection was given up half way");
}

/// A call may be several statements: why an ending did not count is read by one of its own.
#[tokio::test]
async fn a_call_of_several_statements_takes_no_longer_than_one() {
    let Some(database) = Database::reach() else { return };
    let proxy = Proxy::before(&Server::MySql.address().unwrap()).await.unwrap();
    let url = Server::MySql.url_at(&proxy.address().to_string()).unwrap();
    let patience = Duration::from_secs(2);
    let store = MySqlStore::builder().table(database.table()).patience(patience).connections(1);
    let store = store.connect(&url).await.unwrap();
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
