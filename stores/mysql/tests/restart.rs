//! A server that is killed under load keeps what it acknowledged, and the store finds it again when it is back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::{Duration, Instant};

use idempotency_core::{Claim, Inspect, Lease, PhaseName, Settled, Store};
use idempotency_services::MariaDbServer;
use idempotency_store_mysql::MySqlStore;
use scene::{DAY, bid, keep, operation, outcome};
use tokio::{sync::watch, task::JoinSet};

/// What a worker was told before the server went.
#[derive(Default)]
struct Told {
    granted: Vec<Lease>,
    completed: Vec<Lease>,
}

/// Claims keys and completes every other one, until the server does not answer any more.
async fn work(store: MySqlStore, worker: usize, done: watch::Sender<usize>) -> Told {
    let mut told = Told::default();
    for number in 0.. {
        let op = operation(&format!("{worker} {number}"), b"body");
        let lease = match store.claim(&op, &bid()).await {
            Ok(Claim::Granted(lease)) => lease,
            Ok(refused) => panic!("{refused:?}"),
            Err(_) => break,
        };
        if number % 2 == 0 {
            told.granted.push(lease);
        } else {
            match store.complete(&lease, &outcome(), keep(DAY)).await {
                Ok(settled) => assert_eq!(settled, Settled::Applied),
                Err(_) => break,
            }
            told.completed.push(lease);
        }
        done.send_modify(|done| *done += 1);
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_before_the_server_was_killed_is_there_when_it_is_back() {
    let Some(mut server) = MariaDbServer::start(&[]) else { return };
    let store = MySqlStore::connect(&server.url()).await.unwrap();
    let done = watch::Sender::new(0);
    let mut workers = JoinSet::new();
    for worker in 0..8 {
        workers.spawn(work(store.clone(), worker, done.clone()));
    }
    done.subscribe().wait_for(|done| *done > 400).await.unwrap();
    server.kill();
    let told = workers.join_all().await;
    let server = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    })
    .await
    .unwrap();

    let begun = Instant::now();
    while store.look(&operation("back", b"")).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the store does not find its server again");
    }
    let mut found = 0;
    for (leases, phase) in told
        .iter()
        .flat_map(|told| [(&told.granted, PhaseName::InFlight), (&told.completed, PhaseName::Completed)])
    {
        for lease in leases {
            let record = store.find(&lease.address).await.unwrap().expect("it was acknowledged");
            assert_eq!(
                (record.phase.name(), record.fence, record.holder),
                (phase, lease.fence, lease.holder)
            );
            found += 1;
        }
    }
    assert!(found > 400, "{found}");
    drop(server);
}
