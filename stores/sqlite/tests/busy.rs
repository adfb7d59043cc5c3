//! Locks others hold, calls dropped halfway, and what both leave behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    future::{Future, poll_fn},
    path::PathBuf,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use idempotency_core::{
    Claim, Fate, Inspect, Settled, Store, StoreErrorKind,
    clock::{ManualClock, Timestamp},
};
use idempotency_store_sqlite::SqliteStore;
use scene::{DAY, beside, bid, claim, granted, keep, operation, outcome, run};
use tempfile::TempDir;

const SOON: Duration = Duration::from_millis(100);

fn file() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    (directory, path)
}

#[tokio::test]
async fn a_completion_waits_for_a_lock_that_is_freed_in_time() {
    let (_directory, path) = file();
    let store = SqliteStore::builder().patience(DAY).open(&path).await.unwrap();
    let lease = claim(&store, "k").await;
    let mut application = beside(&path).await;
    run(&mut application, "BEGIN IMMEDIATE").await;

    let outcome = outcome();
    let mut completion = pin!(store.complete(&lease, &outcome, keep(DAY)));
    assert!(tokio::time::timeout(SOON, &mut completion).await.is_err(), "it did not wait for the lock");
    run(&mut application, "COMMIT").await;
    assert_eq!(completion.await.unwrap(), Settled::Applied);
}

#[tokio::test]
async fn a_completion_that_waits_too_long_says_it_did_not_happen_and_can_be_sent_again() {
    let (_directory, path) = file();
    let store = SqliteStore::builder().patience(SOON).open(&path).await.unwrap();
    let lease = claim(&store, "k").await;
    let mut application = beside(&path).await;
    run(&mut application, "BEGIN IMMEDIATE").await;

    let error = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));

    run(&mut application, "COMMIT").await;
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    let verdict = store.claim(&operation("k", b"body"), &bid()).await.unwrap();
    assert_eq!(verdict, Claim::Completed(outcome()));
}

#[tokio::test]
async fn the_clock_is_read_after_the_wait_for_the_lock() {
    let (_directory, path) = file();
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
    let store = SqliteStore::builder().clock(clock.clone()).patience(DAY).open(&path).await.unwrap();
    claim(&store, "k").await;
    let mut application = beside(&path).await;
    run(&mut application, "BEGIN IMMEDIATE").await;

    let (op, bid) = (operation("k", b"body"), bid());
    let mut second = pin!(store.claim(&op, &bid));
    assert!(tokio::time::timeout(SOON, &mut second).await.is_err(), "it did not wait for the lock");
    clock.advance(DAY); // the first lease lapses meanwhile
    run(&mut application, "COMMIT").await;
    assert!(granted(second.await.unwrap()).is_takeover());
}

#[tokio::test]
async fn those_who_wait_for_their_turn_are_not_patient_for_ever_either() {
    let (_directory, path) = file();
    let store = SqliteStore::builder().patience(SOON).open(&path).await.unwrap();
    let mut application = beside(&path).await;
    run(&mut application, "BEGIN IMMEDIATE").await;

    let start = std::time::Instant::now();
    let queue: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.claim(&operation("k", b"body"), &bid()).await })
        })
        .collect();
    for waiting in queue {
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
    }
    assert!(
        start.elapsed() < SOON * 10,
        "twenty waits took {:?}, as if one after the other",
        start.elapsed()
    );
}

#[tokio::test]
async fn reads_do_not_wait_for_a_writer() {
    let (_directory, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    let lease = claim(&store, "k").await;
    let mut application = beside(&path).await;
    run(&mut application, "BEGIN IMMEDIATE").await;
    assert!(matches!(store.look(&operation("k", b"body")).await.unwrap(), Claim::InFlight { .. }));
    assert_eq!(store.find(&lease.address).await.unwrap().unwrap().fence, lease.fence);
}

#[tokio::test]
async fn a_closed_store_is_unavailable() {
    let (_directory, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    store.close().await;
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
    assert_eq!(store.look(&operation("k", b"body")).await.unwrap_err().kind, StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn a_claim_dropped_while_it_waits_leaves_the_writer_usable() {
    let (_directory, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    let mut application = beside(&path).await;
    run(&mut application, "BEGIN IMMEDIATE").await;
    let op = operation("k", b"body");
    let dropped = bid();
    assert!(tokio::time::timeout(SOON, store.claim(&op, &dropped)).await.is_err());
    run(&mut application, "COMMIT").await;

    claim(&store, "k").await;
}

#[tokio::test]
async fn a_claim_dropped_while_it_waits_keeps_no_connection_waiting_for_it() {
    let (_directory, path) = file();
    let store = SqliteStore::builder().patience(DAY).open(&path).await.unwrap();
    let mut application = beside(&path).await;
    run(&mut application, "BEGIN IMMEDIATE").await;
    let (op, bid) = (operation("k", b"body"), bid());
    assert!(tokio::time::timeout(SOON, store.claim(&op, &bid)).await.is_err());

    let closed = tokio::time::timeout(SOON * 50, store.close()).await;
    assert!(closed.is_ok(), "the writer still waits for a lock nobody wants");
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

#[tokio::test]
async fn a_claim_dropped_at_any_point_holds_no_lock_and_its_copy_is_granted() {
    let (_directory, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    let mut application = beside(&path).await;
    let (mut dropped, mut ended) = (0, 0);
    for attempt in 0..60 {
        let op = operation(&format!("k{attempt}"), b"body");
        let bid = bid();
        match drop_after(attempt % 12, store.claim(&op, &bid)).await {
            true => ended += 1,
            false => dropped += 1,
        }
        run(&mut application, "BEGIN IMMEDIATE; COMMIT").await;
        granted(store.claim(&op, &bid).await.unwrap());
    }
    assert!(dropped > 10 && ended > 10, "{dropped} claims were dropped, {ended} ended before that");
}
