//! Who waits for a record is woken when it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use idempotency_core::{
    Address, Bid, Claim, Fingerprint, Holder, Keep, Lease, Media, Notify, OnLapse, Operation, Outcome,
    Release, Store,
};
use idempotency_store_memory::MemoryStore;

const LONG: Duration = Duration::from_secs(60);

async fn claimed(store: &MemoryStore) -> Lease {
    let op = Operation::new(Address::from_bytes([7; 32]), Fingerprint::builder().build());
    let bid = Bid { holder: Holder::draw(), lease: LONG, retention: LONG, on_lapse: OnLapse::TakeOver };
    match store.claim(&op, &bid).await.unwrap() {
        Claim::Granted(lease) => lease,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn endings_wake_and_renewals_do_not() {
    let store = MemoryStore::new();
    for release in [true, false] {
        let lease = claimed(&store).await;
        let clone = store.clone();
        let waiting = tokio::spawn(async move { clone.ended(&lease.address).await });
        tokio::task::yield_now().await;
        let _ = store.renew(&lease, LONG).await.unwrap();
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        if release {
            let _ = store.release(&lease, Release::NotApplied).await.unwrap();
        } else {
            let keep = Keep { replay: LONG, then_reject: LONG };
            let _ = store.complete(&lease, &Outcome::whole(Media(1), "done"), keep).await.unwrap();
        }
        waiting.await.unwrap();
    }
}
