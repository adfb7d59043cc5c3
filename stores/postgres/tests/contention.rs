//! Many claims of few keys, at every isolation level: one winner each, no deadlock, no error.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{sync::Arc, time::Duration};

use idempotency_core::{Bid, Claim, Inspect, Keep, Release, Select, Settled, Store, StoreError};
use idempotency_store_postgres::PostgresStore;
use scene::{DAY, Database, bid, operation, outcome};
use tokio::{sync::Barrier, task::JoinSet};

const CLAIMERS: usize = 50;
const KEYS: usize = 4;
const ROUNDS: usize = 12;

const LEVELS: [&str; 3] = [
    "SET default_transaction_isolation = 'read committed'",
    "SET default_transaction_isolation = 'repeatable read'",
    "SET default_transaction_isolation = 'serializable'",
];

/// A store whose connections are set like this, with time for all who want the same record.
async fn store(database: &Database, level: &'static str) -> PostgresStore {
    let builder = database.builder(&database.table()).patience(Duration::from_secs(60));
    builder.open(database.pool(20, level).await).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_claims_of_a_key_one_is_granted_at_every_isolation_level() {
    let Some(database) = Database::reach() else { return };
    for level in LEVELS {
        let store = store(&database, level).await;
        for round in 0..ROUNDS {
            let start = Arc::new(Barrier::new(CLAIMERS));
            let mut claimers = JoinSet::new();
            for claimer in 0..CLAIMERS {
                let (store, start) = (store.clone(), Arc::clone(&start));
                claimers.spawn(async move {
                    let key = claimer % KEYS;
                    start.wait().await;
                    let op = operation(&format!("round {round} key {key}"), b"body");
                    (key, store.claim(&op, &bid()).await.unwrap())
                });
            }
            let mut granted = [0; KEYS];
            for (key, verdict) in claimers.join_all().await {
                match verdict {
                    Claim::Granted(_) => granted[key] += 1,
                    Claim::InFlight { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(granted, [1; KEYS], "{level}");
        }
        println!("{level}: {} of {} claims were sent again", store.repeats(), ROUNDS * CLAIMERS);
        if level == LEVELS[0] {
            assert_eq!(store.repeats(), 0, "a claim that waits for another sees what it wrote");
        }
    }
}

/// Claims a key, and when it is granted ends the run in one of the ways.
async fn claim_and_end(store: &PostgresStore, key: usize, ending: usize) -> Result<bool, StoreError> {
    let op = operation(&format!("k{key}"), b"body");
    let lease = match store.claim(&op, &Bid { retention: Duration::ZERO, ..bid() }).await? {
        Claim::Granted(lease) => lease,
        Claim::InFlight { .. } | Claim::Completed(_) => return Ok(false),
        other => panic!("{other:?}"),
    };
    let settled = match ending % 3 {
        0 => {
            let keep = Keep { replay: Duration::from_millis(2), then_reject: Duration::ZERO };
            store.complete(&lease, &outcome(), keep).await?
        }
        1 => store.release(&lease, Release::NotApplied).await?,
        _ => store.renew(&lease, DAY).await?,
    };
    assert_eq!(settled, Settled::Applied);
    if ending % 3 == 2 {
        assert_eq!(store.release(&lease, Release::NotApplied).await?, Settled::Applied);
    }
    Ok(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_endings_and_purges_of_few_keys_meet_no_error_at_any_isolation_level() {
    let Some(database) = Database::reach() else { return };
    for level in LEVELS {
        let store = store(&database, level).await;
        let mut claimers = JoinSet::new();
        for claimer in 0..CLAIMERS {
            let store = store.clone();
            claimers.spawn(async move {
                let mut granted = 0;
                for step in 0..ROUNDS {
                    granted += u32::from(claim_and_end(&store, (claimer + step) % KEYS, claimer).await?);
                    if claimer % 10 == 0 {
                        store.purge(10).await?;
                    }
                }
                Ok::<u32, StoreError>(granted)
            });
        }
        let granted: Result<Vec<u32>, StoreError> = claimers.join_all().await.into_iter().collect();
        let granted: u32 = granted.unwrap_or_else(|error| panic!("{level}: {error:?}")).into_iter().sum();
        assert!(granted > 20, "{level}: {granted} grants are no contention");
        println!("{level}: {granted} grants, {} statements were sent again", store.repeats());
        assert!(store.list(Select::All, None, 10).await.unwrap().len() <= KEYS);
    }
}
