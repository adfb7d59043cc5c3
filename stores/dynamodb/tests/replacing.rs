//! The second write of a transition: it takes the place of exactly the record that was seen.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{sync::Arc, time::Duration};

use idempotency_core::{Bid, Claim, Inspect, Lease, Release, Settled, Store, StoreError, clock::ManualClock};
use idempotency_services::Server;
use idempotency_store_contract::wire::{Fault, Proxy};
use idempotency_store_dynamodb::DynamoDbStore;
use scene::{DAY, Place, bid, config, granted, keep, manual_clock, operation, outcome};
use tokio::task::JoinSet;

const CLAIMS: usize = 12;
const BRIEF: Duration = Duration::from_secs(30);

/// One claim for each bid, all at once.
async fn race(store: &DynamoDbStore, key: &str, bids: impl IntoIterator<Item = Bid>) -> Vec<Claim<Lease>> {
    let mut racers = JoinSet::new();
    for bid in bids {
        let (store, op) = (store.clone(), operation(key, b"body"));
        racers.spawn(async move { store.claim(&op, &bid).await });
    }
    let answers: Result<_, StoreError> = racers.join_all().await.into_iter().collect();
    answers.unwrap()
}

/// Every claim here is refused by the first condition, and all of them see the same record.
#[tokio::test]
async fn of_many_that_replace_one_record_one_does() {
    let Some(place) = Place::find() else { return };
    let clock = manual_clock(0);
    let store = place.builder().clock(clock.clone()).takeover_margin(Duration::ZERO).open().await.unwrap();
    for key in ["a", "b", "c"] {
        let brief = Bid { lease: Duration::ZERO, retention: Duration::ZERO, ..bid() };
        let abandoned = granted(store.claim(&operation(key, b"another"), &brief).await.unwrap());
        let seen = race(&store, key, [(); CLAIMS].map(|()| bid())).await;
        let leases: Vec<_> = seen.iter().filter(|claim| matches!(claim, Claim::Granted(_))).collect();
        let [Claim::Granted(lease)] = leases[..] else { panic!("{seen:?}") };
        assert_eq!((lease.fence.as_u64(), lease.attempt), (abandoned.fence.as_u64() + 1, 1));
        let in_flight = seen.iter().filter(|claim| matches!(claim, Claim::InFlight { .. })).count();
        assert_eq!(in_flight, CLAIMS - 1, "{seen:?}");
        let record = store.find(&lease.address).await.unwrap().unwrap();
        assert_eq!((record.holder, record.fence), (lease.holder, lease.fence));
    }
}

/// A claim that is sent again after its lease lapsed is no takeover, but the same grant.
#[tokio::test]
async fn a_lapsed_grant_is_adopted_by_its_own_copy() {
    let Some(place) = Place::find() else { return };
    let clock = manual_clock(0);
    let store = place.builder().clock(clock.clone()).takeover_margin(Duration::ZERO).open().await.unwrap();
    let (op, own) = (operation("k", b"body"), Bid { lease: BRIEF, ..bid() });
    let lease = granted(store.claim(&op, &own).await.unwrap());
    clock.advance(BRIEF);
    assert_eq!(store.claim(&op, &own).await.unwrap(), Claim::Granted(lease));
    assert_eq!(store.claim(&op, &bid()).await.unwrap(), Claim::InFlight { left: BRIEF });
}

/// A store whose second write to come is on its way until the proxy is healed.
async fn with_a_late_second_write(place: &Place, clock: &Arc<ManualClock>) -> (DynamoDbStore, Proxy) {
    let proxy = Proxy::before(&Server::DynamoDb.address().unwrap()).await.unwrap();
    let config = config(&format!("http://{}", proxy.address()));
    let store = place.builder_with(config).clock(clock.clone()).open().await.unwrap();
    proxy.strike(Fault::Late, 2..=2);
    (store, proxy)
}

/// A copy of a claim saw its run in flight; until it extends the lease, the run has ended.
#[tokio::test]
async fn an_adoption_does_not_undo_an_ending() {
    let Some(place) = Place::find() else { return };
    let clock = manual_clock(0);
    let store = place.builder().clock(clock.clone()).open().await.unwrap();
    for (key, released) in [("a", false), ("b", true)] {
        let (op, own) = (operation(key, b"body"), bid());
        let lease = granted(store.claim(&op, &own).await.unwrap());
        let (late, proxy) = with_a_late_second_write(&place, &clock).await;
        let longer = Bid { lease: DAY * 2, ..own };
        let copy = tokio::spawn({
            let op = op.clone();
            async move { late.claim(&op, &longer).await }
        });
        proxy.reached(1).await;
        let (ended, verdict) = if released {
            (store.release(&lease, Release::NotApplied).await, Claim::Ended)
        } else {
            (store.complete(&lease, &outcome(), keep(DAY)).await, Claim::Completed(outcome()))
        };
        assert_eq!(ended.unwrap(), Settled::Applied);
        let before = store.find(&lease.address).await.unwrap();
        proxy.heal();
        assert_eq!(copy.await.unwrap().unwrap(), verdict);
        assert_eq!(store.find(&lease.address).await.unwrap(), before);
    }
}

/// A copy of a claim saw a lease; until it extends it, the run has extended it further.
#[tokio::test]
async fn an_adoption_does_not_shorten_a_lease_that_was_renewed() {
    let Some(place) = Place::find() else { return };
    let clock = manual_clock(0);
    let store = place.builder().clock(clock.clone()).open().await.unwrap();
    let (op, own) = (operation("k", b"body"), bid());
    let lease = granted(store.claim(&op, &own).await.unwrap());
    let (late, proxy) = with_a_late_second_write(&place, &clock).await;
    let longer = Bid { lease: DAY * 2, ..own };
    let copy = tokio::spawn(async move { late.claim(&op, &longer).await });
    proxy.reached(1).await;
    assert_eq!(store.renew(&lease, DAY * 9).await.unwrap(), Settled::Applied);
    let before = store.find(&lease.address).await.unwrap();
    proxy.heal();
    assert_eq!(copy.await.unwrap().unwrap(), Claim::Granted(lease));
    assert_eq!(store.find(&lease.address).await.unwrap(), before);
}
