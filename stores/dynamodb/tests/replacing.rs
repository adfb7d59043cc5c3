//! The second write of a transition: it takes the place of exactly the record that was seen.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{Bid, Claim, Holder, Inspect, Lease, Phase, Release, Settled, Store, StoreError};
use idempotency_store_dynamodb::DynamoDbStore;
use scene::{DAY, Place, bid, granted, manual_clock, operation, outcome};
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

/// A copy of a claim that extends its lease while the run ends does not bring the run back.
#[tokio::test]
async fn an_adoption_does_not_undo_an_ending() {
    let Some(place) = Place::find() else { return };
    let clock = manual_clock(0);
    let store = place.builder().clock(clock.clone()).open().await.unwrap();
    for round in 0..6_u8 {
        let key = format!("k{round}");
        let own = Bid { holder: Holder::from_bytes([round; 16]), ..bid() };
        let lease = granted(store.claim(&operation(&key, b"body"), &own).await.unwrap());
        let copies = tokio::spawn({
            let (store, key) = (store.clone(), key.clone());
            async move { race(&store, &key, [1, 2, 3].map(|more| Bid { lease: DAY * more, ..own })).await }
        });
        let ended = match round % 2 {
            0 => store.complete(&lease, &outcome(), scene::keep(DAY)).await.unwrap(),
            _ => store.release(&lease, Release::NotApplied).await.unwrap(),
        };
        assert_eq!(ended, Settled::Applied);
        copies.await.unwrap();
        let phase = store.find(&lease.address).await.unwrap().unwrap().phase;
        assert!(!matches!(phase, Phase::InFlight { .. }), "{phase:?}");
    }
}
