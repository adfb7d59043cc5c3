//! Calls that are sent twice, by the store itself or by its caller, and what came of the first copy.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{
    Bid, Claim, Fate, Inspect, OnLapse, PhaseName, Release, Resolution, Settled, Standing, Store,
    StoreErrorKind,
};
use idempotency_services::Server;
use idempotency_store_contract::wire::{Fault, Proxy};
use idempotency_store_redis::RedisStore;
use scene::{DAY, Records, bid, builder, claim, granted, keep, operation, outcome};

/// A store behind a proxy, and one beside it.
struct Line {
    proxy: Proxy,
    far: RedisStore,
    near: RedisStore,
    _records: Records,
}

impl Line {
    async fn open() -> Option<Self> {
        let records = Records::on_the_server()?;
        let proxy = Proxy::before(&Server::Redis.address()?).await.unwrap();
        let url = Server::Redis.url_at(&proxy.address().to_string())?;
        let far = records.open_at(builder(), &url).await;
        let near = records.store().await;
        Some(Self { proxy, far, near, _records: records })
    }
}

#[tokio::test]
async fn a_claim_whose_reply_is_lost_meets_its_own_record_and_is_granted() {
    let Some(line) = Line::open().await else { return };
    let op = operation("k", b"body");
    line.proxy.strike(Fault::CutAfter, 1..=1);
    let lease = granted(line.far.claim(&op, &bid()).await.unwrap());
    assert_eq!(line.proxy.heal(), 1);
    let record = line.near.find(op.address()).await.unwrap().unwrap();
    assert_eq!((record.holder, record.fence, record.attempt), (lease.holder, lease.fence, 1));
}

#[tokio::test]
async fn endings_whose_replies_are_lost_are_told_that_they_counted() {
    let Some(line) = Line::open().await else { return };
    for (key, phase) in
        [("done", PhaseName::Completed), ("freed", PhaseName::Released), ("doubt", PhaseName::InDoubt)]
    {
        let lease = claim(&line.near, key).await;
        line.proxy.strike(Fault::CutAfter, 1..=1);
        let settled = match phase {
            PhaseName::Completed => line.far.complete(&lease, &outcome(), keep(DAY)).await,
            PhaseName::Released => line.far.release(&lease, Release::NotApplied).await,
            _ => line.far.release(&lease, Release::Unknown).await,
        };
        assert_eq!(line.proxy.heal(), 1);
        assert_eq!(settled.unwrap(), Settled::Applied);
        assert_eq!(line.near.find(&lease.address).await.unwrap().unwrap().phase.name(), phase);
    }
}

#[tokio::test]
async fn a_claim_whose_replies_are_all_lost_has_an_unknown_fate() {
    let Some(line) = Line::open().await else { return };
    let op = operation("k", b"body");
    line.proxy.strike(Fault::CutAfter, ..);
    let error = line.far.claim(&op, &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::Unknown));
    assert!(line.proxy.heal() > 1, "no copy was sent");
    assert!(matches!(line.near.look(&op).await.unwrap(), Claim::InFlight { .. }));
}

#[tokio::test]
async fn a_resolution_is_not_sent_twice() {
    let Some(line) = Line::open().await else { return };
    let held = Bid { lease: Duration::ZERO, on_lapse: OnLapse::Hold, ..bid() };
    let lease = granted(line.near.claim(&operation("k", b"body"), &held).await.unwrap());
    line.proxy.strike(Fault::CutAfter, ..);
    let error = line.far.resolve(&lease.address, lease.fence, &Resolution::NotApplied).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::Unknown));
    assert_eq!(line.proxy.heal(), 1);
    // What its copy would have been told.
    let settled = line.near.resolve(&lease.address, lease.fence, &Resolution::NotApplied).await.unwrap();
    let standing = Standing { phase: PhaseName::Released, fence: lease.fence };
    assert_eq!(settled, Settled::Fenced(Some(standing)));
}

#[tokio::test]
async fn a_call_gives_up_within_its_patience() {
    let Some(records) = Records::on_the_server() else { return };
    let proxy = Proxy::before(&Server::Redis.address().unwrap()).await.unwrap();
    let url = Server::Redis.url_at(&proxy.address().to_string()).unwrap();
    let patience = Duration::from_millis(200);
    let store = records.open_at(builder().patience(patience), &url).await;
    claim(&store, "warm").await;
    proxy.strike(Fault::Silent, ..);
    for fate in [Fate::Unknown, Fate::NotApplied] {
        // The second call looks for another connection, and gets none.
        let (op, bid) = (operation("k", b"body"), bid());
        let answer = tokio::time::timeout(Duration::from_secs(20), store.claim(&op, &bid)).await;
        let error = answer.expect("a call is given up").unwrap_err();
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, fate));
    }
    proxy.heal();
    claim(&store, "k").await;
}
