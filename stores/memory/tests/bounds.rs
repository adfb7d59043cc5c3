//! What a store does when it is full, and that it gives back all it took.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotency_core::{
    Address, Bid, Claim, Fate, Fingerprint, Holder, Inspect, Keep, Lease, Media, OnLapse, Operation, Outcome,
    Release, Select, Settled, Store, StoreError, StoreErrorKind,
    clock::{Clock, ManualClock, Timestamp},
};
use idempotency_store_memory::{BoundsError, Builder, MemoryStore, RECORD_BYTES};

const HOUR: Duration = Duration::from_secs(3600);
const KEEP: Keep = Keep { replay: HOUR, then_reject: HOUR };

/// The operation of this number. The number is hashed, as it would be in a service.
fn operation(number: u64) -> Operation {
    let fingerprint =
        Fingerprint::builder().part(idempotency_core::Part::Body, &number.to_le_bytes()).build();
    let mut address = [0; 32];
    address.copy_from_slice(&fingerprint.to_bytes()[1..33]);
    Operation::new(Address::from_bytes(address), fingerprint)
}

fn bid() -> Bid {
    Bid { holder: Holder::draw(), lease: HOUR, retention: HOUR, on_lapse: OnLapse::TakeOver }
}

fn text(length: usize) -> Outcome {
    Outcome::whole(Media(1), vec![b'x'; length])
}

fn store(bounds: Builder) -> (MemoryStore, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
    (bounds.clock(clock.clone()).build().expect("the bounds hold a record"), clock)
}

async fn granted(store: &MemoryStore, number: u64, bid: &Bid) -> Lease {
    match store.claim(&operation(number), bid).await.expect("there is room") {
        Claim::Granted(lease) => lease,
        refused => panic!("{refused:?}"),
    }
}

fn assert_full<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.expect_err("the store is full");
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Full, Fate::NotApplied));
}

#[test]
fn bounds_that_hold_nothing_are_refused() {
    let builder = MemoryStore::builder;
    assert_eq!(builder().max_records(0).build().unwrap_err(), BoundsError::NoRecords);
    assert_eq!(builder().max_bytes(0).build().unwrap_err(), BoundsError::TooFewBytes);
    assert_eq!(builder().max_bytes(RECORD_BYTES - 1).build().unwrap_err(), BoundsError::TooFewBytes);
    assert_eq!(builder().shards(0).build().unwrap_err(), BoundsError::Shards);
    assert!(builder().max_records(1).max_bytes(RECORD_BYTES).shards(1).build().is_ok());
}

#[tokio::test]
async fn a_full_store_refuses_new_claims_and_keeps_what_it_holds() {
    let (store, _) = store(MemoryStore::builder().max_records(3));
    let lease = granted(&store, 0, &bid()).await;
    let held = granted(&store, 1, &Bid { lease: Duration::ZERO, on_lapse: OnLapse::Hold, ..bid() }).await;
    let doubt = granted(&store, 2, &bid()).await;
    assert_eq!(store.release(&doubt, Release::Unknown).await.unwrap(), Settled::Applied);
    for number in 3..100 {
        assert_full(store.claim(&operation(number), &bid()).await);
    }
    assert_eq!(store.records(), 3);
    assert_eq!(store.claim(&operation(1), &bid()).await.unwrap(), Claim::InDoubt { fence: held.fence });
    assert_eq!(store.complete(&lease, &text(1), KEEP).await.unwrap(), Settled::Applied, "a run can end");
    assert_full(store.claim(&operation(3), &bid()).await);
}

#[tokio::test]
async fn what_is_free_makes_room() {
    let (store, clock) = store(MemoryStore::builder().max_records(3));
    let released = granted(&store, 0, &bid()).await;
    let completed = granted(&store, 1, &bid()).await;
    granted(&store, 2, &Bid { lease: 3 * HOUR, ..bid() }).await;
    assert_eq!(store.release(&released, Release::NotApplied).await.unwrap(), Settled::Applied);
    granted(&store, 3, &Bid { lease: 3 * HOUR, ..bid() }).await;
    assert!(store.find(operation(0).address()).await.unwrap().is_none(), "the released record went");
    assert_eq!(store.complete(&completed, &text(1), KEEP).await.unwrap(), Settled::Applied);
    assert_full(store.claim(&operation(4), &bid()).await);
    clock.advance(2 * HOUR);
    granted(&store, 4, &bid()).await;
    assert!(store.find(operation(1).address()).await.unwrap().is_none(), "the record that was over went");
    assert_eq!(store.records(), 3);
}

#[tokio::test]
async fn a_crowd_of_live_records_hides_a_free_one_for_a_few_claims_only() {
    let (store, _) = store(MemoryStore::builder().max_records(1_000).shards(4));
    for number in 0..1_000 {
        granted(&store, number, &bid()).await;
    }
    let lease = Lease::unconfirmed(*operation(999).address(), {
        let record = store.find(operation(999).address()).await.unwrap().unwrap();
        record.holder
    });
    assert_eq!(store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Applied);
    let refused = (1_000..1_100).map(operation);
    let mut count = 0;
    for op in refused {
        match store.claim(&op, &bid()).await {
            Ok(Claim::Granted(_)) => break,
            answer => assert_full(answer),
        }
        count += 1;
    }
    assert!(count < 100, "the free record was not found");
    assert!(store.find(operation(999).address()).await.unwrap().is_none());
}

#[tokio::test]
async fn the_oldest_completed_record_goes_only_when_that_was_chosen() {
    let bounds = MemoryStore::builder().max_records(3).shards(1);
    let (keeping, _) = store(bounds.clone());
    let (evicting, _) = store(bounds.evict_completed());
    for store in [&keeping, &evicting] {
        granted(store, 0, &bid()).await;
        for number in [1, 2] {
            let lease = granted(store, number, &bid()).await;
            assert_eq!(store.complete(&lease, &text(1), KEEP).await.unwrap(), Settled::Applied);
        }
    }
    assert_full(keeping.claim(&operation(3), &bid()).await);
    granted(&evicting, 3, &bid()).await;
    assert!(evicting.find(operation(1).address()).await.unwrap().is_none(), "the oldest completed one went");
    let next = evicting.claim(&operation(2), &bid()).await.unwrap();
    assert_eq!(next, Claim::Completed(text(1)), "the younger one stays");
    granted(&evicting, 4, &bid()).await;
    assert_full(evicting.claim(&operation(5), &bid()).await);
    assert!(matches!(evicting.claim(&operation(0), &bid()).await.unwrap(), Claim::InFlight { .. }));
}

#[tokio::test]
async fn bytes_are_bounded_and_a_refused_completion_can_end_with_less() {
    let room = 64 * RECORD_BYTES;
    let (store, clock) = store(MemoryStore::builder().max_bytes(room));
    let longest = store.max_outcome_bytes();
    assert_eq!(longest, room / 16);
    let mut leases = Vec::new();
    for number in 0..20 {
        leases.push(granted(&store, number, &bid()).await);
    }
    let mut refused = None;
    for lease in &leases {
        match store.complete(lease, &text(longest), KEEP).await {
            Ok(settled) => assert_eq!(settled, Settled::Applied),
            full => {
                assert_full(full);
                refused = Some(lease);
                break;
            }
        }
        assert!(store.bytes() <= room);
    }
    let refused = refused.expect("20 of the longest outcomes are more than there is room for");
    let tombstone = Outcome::tombstone(Media(1), "");
    assert_eq!(store.complete(refused, &tombstone, KEEP).await.unwrap(), Settled::Applied);
    clock.advance(2 * HOUR);
    let lease = granted(&store, 20, &bid()).await;
    let late = store.complete(&lease, &text(longest), KEEP).await.unwrap();
    assert_eq!(late, Settled::Applied, "what is over makes room for a completion too");
}

#[tokio::test]
async fn a_claim_refused_for_its_bytes_takes_nothing() {
    let (store, _) = store(MemoryStore::builder().max_bytes(3 * RECORD_BYTES));
    for number in 0..3 {
        granted(&store, number, &bid()).await;
    }
    assert_full(store.claim(&operation(3), &bid()).await);
    assert_eq!((store.records(), store.bytes()), (3, 3 * RECORD_BYTES));
}

#[tokio::test]
async fn an_outcome_keeps_no_buffer_it_was_cut_from() {
    let (store, _) = store(MemoryStore::builder());
    let buffer = bytes::Bytes::from(vec![7; 1 << 20]);
    let lease = granted(&store, 0, &bid()).await;
    let outcome = Outcome::whole(Media(1), buffer.slice(..10));
    assert_eq!(store.complete(&lease, &outcome, KEEP).await.unwrap(), Settled::Applied);
    drop(outcome);
    assert!(buffer.is_unique(), "the store holds ten bytes, not a mebibyte");
}

#[tokio::test]
async fn two_hundred_thousand_keys_leave_nothing_behind() {
    let (store, clock) = store(MemoryStore::builder().max_records(200_000));
    for number in 0..200_000 {
        let lease = granted(&store, number, &bid()).await;
        match number % 3 {
            0 => assert_eq!(store.complete(&lease, &text(8), KEEP).await.unwrap(), Settled::Applied),
            1 => assert_eq!(store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Applied),
            _ => {}
        }
    }
    assert_eq!(store.records(), 200_000);
    assert_eq!(store.purge(u32::MAX).await.unwrap(), 0);
    clock.advance(2 * HOUR);
    assert_eq!(store.purge(50_000).await.unwrap(), 50_000);
    assert_eq!(store.purge(u32::MAX).await.unwrap(), 150_000);
    assert_eq!((store.records(), store.bytes()), (0, 0));
    assert!(store.list(Select::All, None, 1).await.unwrap().is_empty());
}

#[tokio::test]
async fn clones_share_their_records() {
    let (store, _) = store(MemoryStore::builder());
    granted(&store.clone(), 0, &bid()).await;
    assert!(matches!(store.claim(&operation(0), &bid()).await.unwrap(), Claim::InFlight { .. }));
}

/// Panics once, under the lock, where the store reads the time.
struct Fragile(AtomicBool);

impl Clock for Fragile {
    fn now(&self) -> Timestamp {
        assert!(!self.0.swap(false, Ordering::SeqCst), "the clock broke");
        Timestamp::from_micros(1_700_000_000_000_000)
    }
}

#[tokio::test]
async fn a_panic_under_the_lock_poisons_nothing() {
    let clock = Arc::new(Fragile(AtomicBool::new(true)));
    let store = MemoryStore::builder().shards(1).clock(clock).build().unwrap();
    let panicking = store.clone();
    let broken = tokio::spawn(async move { panicking.claim(&operation(0), &bid()).await }).await;
    assert!(broken.unwrap_err().is_panic());
    granted(&store, 0, &bid()).await;
    assert_eq!(store.records(), 1);
}
