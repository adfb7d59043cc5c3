//! Many claims of few keys, on connections set in every way: one winner each, no deadlock, nothing sent twice.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{sync::Arc, time::Duration};

use idempotency_core::{Bid, Claim, Inspect, Keep, Release, Select, Settled, Store, StoreError};
use idempotency_store_mysql::MySqlStore;
use scene::{DAY, Database, bid, builder, operation, outcome};
use sqlx::{Executor, MySqlPool, Row};
use tokio::{sync::Barrier, task::JoinSet};

const CLAIMERS: usize = 50;
const KEYS: usize = 4;
const ROUNDS: usize = 12;

const LEVELS: [&str; 5] = [
    "READ UNCOMMITTED",
    "READ COMMITTED",
    "REPEATABLE READ",
    "REPEATABLE READ; SET innodb_snapshot_isolation = 1",
    "SERIALIZABLE",
];

/// How many statements the connections of a pool of fifty have sent, all of them.
async fn statements(pool: &MySqlPool) -> i64 {
    let mut connections = Vec::new();
    for _ in 0..pool.options().get_max_connections() {
        connections.push(pool.acquire().await.unwrap());
    }
    let mut sent = 0;
    for connection in &mut connections {
        let names = "('Com_insert', 'Com_update', 'Com_delete')";
        let query = format!("SHOW SESSION STATUS WHERE Variable_name IN {names}");
        for row in connection.fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(query))).await.unwrap() {
            sent += row.get::<String, _>(1).parse::<i64>().unwrap();
        }
    }
    sent
}

async fn pool(database: &Database, level: &str) -> MySqlPool {
    let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
    database.pool(Box::leak(set.into_boxed_str())).await
}

/// Claims a key, and when it is granted ends the run in one of the ways.
async fn claim_and_end(store: &MySqlStore, key: usize, ending: usize) -> Result<bool, StoreError> {
    let op = operation(&format!("k{key}"), b"body");
    let lease = match store.claim(&op, &Bid { retention: Duration::ZERO, ..bid() }).await? {
        Claim::Granted(lease) => lease,
        Claim::InFlight { .. } | Claim::Completed(_) => return Ok(false),
        other => panic!("{other:?}"),
    };
    let keep = Keep { replay: Duration::from_millis(2), then_reject: Duration::ZERO };
    let settled = match ending % 3 {
        0 => store.complete(&lease, &outcome(), keep).await?,
        1 => store.release(&lease, Release::NotApplied).await?,
        _ => store.renew(&lease, DAY).await?,
    };
    assert_eq!(settled, Settled::Applied);
    if ending % 3 == 2 {
        let _ = store.release(&lease, Release::NotApplied).await?;
    }
    Ok(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_claims_of_a_key_one_is_granted_and_each_is_sent_once_at_every_isolation_level() {
    let Some(database) = Database::reach() else { return };
    for level in LEVELS {
        let pool = pool(&database, level).await;
        let store = builder().table(database.table()).open(pool.clone()).await.unwrap();
        let before = statements(&pool).await;
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
        assert_eq!(store.repeats(), 0, "{level}");
        let sent = statements(&pool).await - before;
        assert_eq!(
            sent,
            (ROUNDS * CLAIMERS) as i64,
            "a claim was sent twice under {level}: it met a deadlock"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_endings_and_purges_of_few_keys_meet_no_error_at_any_isolation_level() {
    let Some(database) = Database::reach() else { return };
    for level in LEVELS {
        let pool = pool(&database, level).await;
        let store = builder().table(database.table()).open(pool).await.unwrap();
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
        assert!(store.list(Select::All, None, 10).await.unwrap().len() <= KEYS);
    }
}
