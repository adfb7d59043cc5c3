//! What a server refuses, and what it has done then: nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::{Duration, Instant};

use idempotency_core::{
    Claim, Fate, Inspect, Media, Outcome, Release, Settled, Store, StoreError, StoreErrorKind,
};
use idempotency_store_redis::{OpenError, RedisStore};
use scene::{DAY, Records, bid, builder, claim, keep, operation, outcome, server};

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(answer: Result<T, StoreError>, kind: StoreErrorKind) {
    let error = answer.unwrap_err();
    assert_eq!((error.kind, error.fate), (kind, Fate::NotApplied), "{error:?}");
}

#[tokio::test]
async fn a_full_server_says_so_loses_nothing_and_still_answers_what_it_knows() {
    let Some(server) = server(&["--maxmemory", "40mb"]) else { return };
    let records = Records::on(&server);
    let store = records.store().await;
    let done = claim(&store, "done").await;
    assert_eq!(store.complete(&done, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    let running = claim(&store, "running").await;
    let before = store.find(&running.address).await.unwrap();

    let mut beside = records.beside();
    beside.ask::<()>("CONFIG SET maxmemory 1mb");
    assert_refused(store.claim(&operation("new", b"body"), &bid()).await, StoreErrorKind::Full);
    assert_refused(store.complete(&running, &outcome(), keep(DAY)).await, StoreErrorKind::Full);
    assert_refused(store.release(&running, Release::NotApplied).await, StoreErrorKind::Full);
    assert_refused(store.renew(&running, DAY * 2).await, StoreErrorKind::Full);
    assert_eq!(store.find(&running.address).await.unwrap(), before);
    assert_eq!(store.find(operation("new", b"body").address()).await.unwrap(), None);
    let replay = store.claim(&operation("done", b"body"), &bid()).await.unwrap();
    assert_eq!(replay, Claim::Completed(outcome()));

    beside.ask::<()>("CONFIG SET maxmemory 40mb");
    assert_eq!(store.complete(&running, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    claim(&store, "new").await;
}

#[tokio::test]
async fn an_outcome_that_is_too_long_is_not_sent() {
    let Some(records) = Records::on_the_server() else { return };
    let store = records.store().await;
    let lease = claim(&store, "k").await;
    let long = Outcome::whole(Media(1), vec![7; RedisStore::MAX_OUTCOME_BYTES + 1]);
    assert_refused(store.complete(&lease, &long, keep(DAY)).await, StoreErrorKind::TooLarge);
    let longest = Outcome::whole(Media(1), vec![7; RedisStore::MAX_OUTCOME_BYTES]);
    assert_eq!(store.complete(&lease, &longest, keep(DAY)).await.unwrap(), Settled::Applied);
    let replay = store.claim(&operation("k", b"body"), &bid()).await.unwrap();
    assert_eq!(replay, Claim::Completed(longest));
}

#[tokio::test]
async fn a_server_that_became_a_replica_is_unavailable_and_is_left() {
    let (Some(first), Some(second)) = (server(&[]), server(&[])) else { return };
    let records = Records::on(&first);
    let store = records.store().await;
    let lease = claim(&store, "k").await;
    let connected = |text: String| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap();
        line.parse().unwrap()
    };
    let mut beside = records.beside();
    let before = connected(beside.ask("INFO stats"));
    beside.ask::<()>(&format!("REPLICAOF {}", second.address().replace(':', " ")));
    assert_refused(store.claim(&operation("new", b"body"), &bid()).await, StoreErrorKind::Unavailable);
    assert_refused(store.complete(&lease, &outcome(), keep(DAY)).await, StoreErrorKind::Unavailable);
    // A name may lead to the new primary by now: each call looks for it once.
    assert!(connected(beside.ask("INFO stats")) >= before + 2);

    beside.ask::<()>("REPLICAOF NO ONE");
    claim(&store, "new").await;
}

#[tokio::test]
async fn a_server_that_waits_for_replicas_or_its_disk_is_unavailable() {
    let Some(server) = server(&[]) else { return };
    let records = Records::on(&server);
    let store = records.store().await;
    let mut beside = records.beside();
    beside.ask::<()>("CONFIG SET min-replicas-to-write 1");
    assert_refused(store.claim(&operation("k", b"body"), &bid()).await, StoreErrorKind::Unavailable);
    beside.ask::<()>("CONFIG SET min-replicas-to-write 0");
    claim(&store, "k").await;
}

#[tokio::test]
async fn a_server_that_is_busy_is_unavailable() {
    let Some(server) = server(&["--busy-reply-threshold", "1"]) else { return };
    let records = Records::on(&server);
    let store = records.store().await;
    claim(&store, "warm").await;
    let (mut endless, mut beside) = (records.beside(), records.beside());
    let busy = std::thread::spawn(move || {
        let mut script = redis::cmd("EVAL");
        script.arg("while true do end").arg(0);
        let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| endless.send::<()>(&script)));
        assert!(stopped.is_err(), "the script is stopped");
    });
    let begun = Instant::now();
    let error = loop {
        match store.claim(&operation("k", b"body"), &bid()).await {
            Err(error) => break error,
            Ok(_) => assert!(begun.elapsed() < Duration::from_secs(10), "it is not busy"),
        }
    };
    beside.ask::<()>("SCRIPT KILL");
    busy.join().unwrap();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");
    claim(&store, "other").await;
}

#[tokio::test]
async fn a_user_without_rights_is_refused() {
    let Some(server) = server(&[]) else { return };
    let records = Records::on(&server);
    let mut beside = records.beside();
    beside.ask::<()>("ACL SETUSER clerk on >secret ~other:* &* +@all");
    let url = records.url().replace("redis://", "redis://clerk:secret@");
    let store = records.open_at(builder(), &url).await;
    assert_refused(store.claim(&operation("k", b"body"), &bid()).await, StoreErrorKind::Refused);

    for wrong in ["clerk:wrong", "nobody:secret"] {
        let url = records.url().replace("redis://", &format!("redis://{wrong}@"));
        let error = RedisStore::connect(&url).await.unwrap_err();
        assert!(matches!(error, OpenError::Refused(_)), "{error:?}");
        let error = StoreError::from(error);
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Refused, Fate::NotApplied));
    }
}

#[tokio::test]
async fn a_user_who_may_not_publish_ends_runs_all_the_same() {
    use idempotency_core::Notify;
    let Some(server) = server(&[]) else { return };
    let records = Records::on(&server);
    records.beside().ask::<()>("ACL SETUSER clerk on >secret ~* resetchannels +@all");
    let url = records.url().replace("redis://", "redis://clerk:secret@");
    let store = records.open_at(builder(), &url).await;
    let lease = claim(&store, "k").await;
    let waiting = tokio::time::timeout(Duration::from_millis(100), store.ended(&lease.address)).await;
    assert!(waiting.is_err(), "who hears of nothing has to look");
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    assert_eq!(store.claim(&operation("k", b"body"), &bid()).await.unwrap(), Claim::Completed(outcome()));
}

#[tokio::test]
async fn a_server_that_is_gone_took_nothing_and_is_found_again() {
    let Some(mut server) = server(&[]) else { return };
    let records = Records::on(&server);
    let store = records.store().await;
    claim(&store, "k").await;
    server.kill();
    // The connection may die under the first call, whose fate nobody knows then.
    let _ = store.claim(&operation("new", b"body"), &bid()).await.unwrap_err();
    for _ in 0..3 {
        assert_refused(store.claim(&operation("new", b"body"), &bid()).await, StoreErrorKind::Unavailable);
    }
    server.restart();
    claim(&store, "new").await;
}

#[tokio::test]
async fn a_connection_that_died_while_nobody_used_it_costs_no_error() {
    let Some(server) = server(&[]) else { return };
    let records = Records::on(&server);
    let store = records.store().await;
    let lease = claim(&store, "k").await;
    let mut beside = records.beside();
    let mut died = 0;
    for round in 0..5 {
        died += beside.ask::<u64>("CLIENT KILL TYPE normal SKIPME yes");
        claim(&store, &round.to_string()).await;
    }
    assert_eq!(died, 5);
    beside.ask::<u64>("CLIENT KILL TYPE normal SKIPME yes");
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
}
