//! What a server still knows after it was killed: what it had on its disk.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_core::{Claim, Inspect, Settled, Store};
use idempotency_services::{Persistence, RedisServer};
use scene::{DAY, Records, bid, claim, keep, operation, outcome};

/// The hazard that the README names: such a server must not keep records of what must not happen twice.
#[tokio::test]
async fn a_server_that_keeps_nothing_on_disk_grants_again_what_was_running_and_what_was_done() {
    let Some(mut server) = RedisServer::start(Persistence::None, &[]) else { return };
    let records = Records::on(&server);
    let store = records.store().await;
    let running = claim(&store, "running").await;
    let done = claim(&store, "done").await;
    assert_eq!(store.complete(&done, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    server.restart();
    for (key, before) in [("running", running), ("done", done)] {
        let again = claim(&store, key).await;
        assert!(again.fence > before.fence, "the clock goes on, and the fence with it");
    }
    let fenced = store.complete(&running, &outcome(), keep(DAY)).await.unwrap();
    assert!(matches!(fenced, Settled::Fenced(Some(_))), "{fenced:?}");
}

#[tokio::test]
async fn a_server_that_syncs_each_write_knows_everything_it_acknowledged() {
    let Some(mut server) = RedisServer::start(Persistence::EachWrite, &[]) else { return };
    let records = Records::on(&server);
    let store = records.store().await;
    let running = claim(&store, "running").await;
    let done = claim(&store, "done").await;
    assert_eq!(store.complete(&done, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    let mut before = Vec::new();
    for lease in [&running, &done] {
        before.push(store.find(&lease.address).await.unwrap().unwrap());
    }
    let key = records.key(&running.address);
    let expires: i64 = records.beside().ask(&format!("PEXPIRETIME {key}"));

    server.restart();
    for (lease, before) in [&running, &done].into_iter().zip(before) {
        assert_eq!(store.find(&lease.address).await.unwrap(), Some(before));
    }
    assert_eq!(records.beside().ask::<i64>(&format!("PEXPIRETIME {key}")), expires);
    let seen = store.claim(&operation("done", b"body"), &bid()).await.unwrap();
    assert_eq!(seen, Claim::Completed(outcome()));
    assert_eq!(store.complete(&running, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
}

#[tokio::test]
async fn a_server_killed_in_the_midst_of_a_load_forgets_no_grant_it_acknowledged() {
    let Some(mut server) = RedisServer::start(Persistence::EachWrite, &[]) else { return };
    let records = Records::on(&server);
    let store = records.store().await;
    let mut load = tokio::task::JoinSet::new();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    for caller in 0..8 {
        let (store, told) = (store.clone(), told.clone());
        load.spawn(async move {
            for turn in 0.. {
                let op = operation(&format!("{caller}.{turn}"), b"body");
                let Ok(Claim::Granted(lease)) = store.claim(&op, &bid()).await else { return };
                told.send(lease).unwrap();
            }
        });
    }
    drop(told);
    let mut leases = Vec::new();
    while let Some(lease) = heard.recv().await {
        leases.push(lease);
        if leases.len() == 200 {
            server.kill();
        }
    }
    load.join_all().await;
    server.restart();
    for lease in leases {
        let record = store.find(&lease.address).await.unwrap().unwrap();
        assert_eq!((record.holder, record.fence), (lease.holder, lease.fence));
    }
}
