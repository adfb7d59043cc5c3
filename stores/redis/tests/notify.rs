//! Who waits for a record is woken when another store ends it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{
    Bid, Claim, Inspect, Lease, Notify, OnLapse, Operation, Release, Resolution, Settled, Store,
};
use idempotency_store_redis::RedisStore;
use scene::{DAY, Records, bid, claim, granted, keep, operation, outcome};
use tokio::{task::JoinHandle, time::timeout};

/// Long enough for what does not come.
const WHILE: Duration = Duration::from_millis(200);
/// Long enough for what comes, on a busy machine.
const LONG: Duration = Duration::from_secs(20);

/// Waits for the end of an operation as an engine does, but that it only looks when it is woken.
fn wait(store: &RedisStore, op: &Operation) -> JoinHandle<&'static str> {
    let (store, op) = (store.clone(), op.clone());
    tokio::spawn(async move {
        loop {
            store.ended(op.address()).await;
            match store.look(&op).await.unwrap() {
                Claim::InFlight { .. } => {}
                over => return over.name(),
            }
        }
    })
}

/// Whether the record is marked as waited for.
async fn marked(records: &Records, lease: &Lease) {
    let mut beside = records.beside();
    let waited = format!("GETRANGE {} 4 4", records.key(&lease.address));
    while beside.ask::<String>(&waited) != "1" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the store hears of endings: the first wait begins to listen, and is woken by that.
async fn hears(store: &RedisStore) {
    let lease = claim(store, "never ended").await;
    timeout(LONG, store.ended(&lease.address)).await.expect("a subscription wakes");
    assert!(timeout(WHILE, store.ended(&lease.address)).await.is_err(), "woken by nothing");
}

async fn two_stores(records: &Records) -> (RedisStore, RedisStore) {
    let (waiter, runner) = (records.store().await, records.store().await);
    hears(&waiter).await;
    (waiter, runner)
}

async fn assert_woken(waiting: JoinHandle<&'static str>, verdict: &str) {
    assert_eq!(timeout(LONG, waiting).await.expect("the waiter is woken").unwrap(), verdict);
}

#[tokio::test]
async fn every_ending_by_another_store_wakes() {
    let Some(records) = Records::on_the_server() else { return };
    let (waiter, runner) = two_stores(&records).await;
    let endings = ["completed", "granted", "in_doubt"];
    for ending in endings {
        let op = operation(ending, b"body");
        let lease = claim(&runner, ending).await;
        let waiting = wait(&waiter, &op);
        marked(&records, &lease).await;
        let settled = match ending {
            "completed" => runner.complete(&lease, &outcome(), keep(DAY)).await,
            "granted" => runner.release(&lease, Release::NotApplied).await,
            _ => runner.release(&lease, Release::Unknown).await,
        };
        assert_eq!(settled.unwrap(), Settled::Applied);
        assert_woken(waiting, ending).await;
    }
}

#[tokio::test]
async fn an_ending_on_any_node_of_a_cluster_wakes() {
    let Some(records) = Records::on_the_cluster() else { return };
    let (waiter, runner) = two_stores(&records).await;
    for key in 0..12 {
        let key = key.to_string();
        let lease = claim(&runner, &key).await;
        let waiting = wait(&waiter, &operation(&key, b"body"));
        marked(&records, &lease).await;
        assert_eq!(runner.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
        assert_woken(waiting, "completed").await;
    }
}

#[tokio::test]
async fn an_ending_by_the_same_store_wakes() {
    let Some(records) = Records::on_the_server() else { return };
    let store = records.store().await;
    hears(&store).await;
    let lease = claim(&store, "k").await;
    let waiting = wait(&store, &operation("k", b"body"));
    marked(&records, &lease).await;
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    assert_woken(waiting, "completed").await;
}

#[tokio::test]
async fn who_waits_across_a_renewal_and_a_takeover_is_woken_by_the_last_run() {
    let Some(records) = Records::on_the_server() else { return };
    let (waiter, runner) = two_stores(&records).await;
    let op = operation("k", b"body");
    let brief = Bid { lease: Duration::from_millis(300), ..bid() };
    let first = granted(runner.claim(&op, &brief).await.unwrap());
    let waited = waiter.clone();
    let waiting = tokio::spawn(async move {
        let address = first.address;
        loop {
            waited.ended(&address).await;
            let found = waited.find(&address).await.unwrap().unwrap();
            if found.phase.name() == idempotency_core::PhaseName::Completed {
                return "completed";
            }
        }
    });
    marked(&records, &first).await;
    assert_eq!(runner.renew(&first, Duration::from_millis(400)).await.unwrap(), Settled::Applied);
    let second = loop {
        match runner.claim(&op, &bid()).await.unwrap() {
            Claim::Granted(lease) => break lease,
            Claim::InFlight { left } => tokio::time::sleep(left).await,
            other => panic!("{other:?}"),
        }
    };
    assert!(second.is_takeover());
    assert_eq!(runner.complete(&second, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    assert_woken(waiting, "completed").await;
}

#[tokio::test]
async fn what_is_not_in_flight_is_not_waited_for() {
    let Some(records) = Records::on_the_server() else { return };
    let store = records.store().await;
    hears(&store).await;
    let absent = *operation("absent", b"body").address();
    let done = claim(&store, "done").await;
    let _ = store.complete(&done, &outcome(), keep(DAY)).await.unwrap();
    let freed = claim(&store, "freed").await;
    let _ = store.release(&freed, Release::NotApplied).await.unwrap();
    let doubtful = claim(&store, "doubtful").await;
    let _ = store.release(&doubtful, Release::Unknown).await.unwrap();
    let lapsed = Bid { lease: Duration::ZERO, on_lapse: OnLapse::Hold, ..bid() };
    let held = granted(store.claim(&operation("held", b"body"), &lapsed).await.unwrap());
    for address in [absent, done.address, freed.address, doubtful.address, held.address] {
        let before = store.find(&address).await.unwrap();
        timeout(LONG, store.ended(&address)).await.expect("there is nothing to wait for");
        assert_eq!(store.find(&address).await.unwrap(), before);
    }
    let settled = store.resolve(&held.address, held.fence, &Resolution::NotApplied).await.unwrap();
    assert_eq!(settled, Settled::Applied);
}

#[tokio::test]
async fn a_subscription_that_broke_is_made_again_and_wakes_who_may_have_missed_an_ending() {
    let Some(server) = scene::server(&[]) else { return };
    let records = Records::on(&server);
    let (waiter, runner) = two_stores(&records).await;
    let lease = claim(&runner, "k").await;
    let waiting = tokio::spawn({
        let (waiter, address) = (waiter.clone(), lease.address);
        async move { waiter.ended(&address).await }
    });
    marked(&records, &lease).await;
    assert_eq!(records.beside().ask::<u64>("CLIENT KILL TYPE pubsub"), 1);
    timeout(LONG, waiting).await.expect("who waits is woken by the new subscription").unwrap();

    let waiting = wait(&waiter, &operation("k", b"body"));
    assert_eq!(runner.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    assert_woken(waiting, "completed").await;
}

#[tokio::test]
async fn a_store_that_nobody_waits_on_has_one_connection_and_a_dropped_one_none() {
    let Some(server) = scene::server(&[]) else { return };
    let records = Records::on(&server);
    let mut beside = records.beside();
    let mut connections = move || -> Vec<String> {
        let clients: String = beside.ask("CLIENT LIST");
        let ours = clients.lines().filter(|client| !client.contains("cmd=client"));
        ours.map(str::to_owned).collect()
    };
    let store = records.store().await;
    claim(&store, "k").await;
    assert_eq!(connections().len(), 1);
    hears(&store).await;
    assert_eq!(connections().len(), 2);
    let copy = store.clone();
    drop(store);
    hears_on(&copy).await;
    drop(copy);
    while !connections().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn hears_on(store: &RedisStore) {
    let lease = claim(store, "another").await;
    assert!(timeout(WHILE, store.ended(&lease.address)).await.is_err(), "woken by nothing");
}
