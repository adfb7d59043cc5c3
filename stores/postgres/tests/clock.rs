//! The time a transition is decided at: the server's, read once, after any wait for a lock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{
    Bid, Claim, Inspect, Keep, Lease, OnLapse, Phase, Record, Release, Resolution, Settled, Store,
    clock::Timestamp,
};
use idempotency_store_postgres::PostgresStore;
use scene::{DAY, Database, bid, claim, granted, operation, outcome};
use sqlx::PgConnection;
use tokio::task::JoinHandle;

const LEASE: Duration = Duration::from_millis(300);

/// How long a row is held locked: long enough for the lease to lapse meanwhile.
const LOCKED: Duration = Duration::from_millis(500);

fn until(record: &Record) -> Timestamp {
    match record.phase {
        Phase::InFlight { until, .. } | Phase::Completed { until, .. } | Phase::Released { until } => until,
        Phase::InDoubt { .. } => panic!("{record:?}"),
    }
}

/// The server's time.
async fn now(database: &Database) -> Timestamp {
    let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let micros = database.number(&mut database.beside().await, "", now).await;
    Timestamp::from_micros(micros.try_into().unwrap())
}

/// Waits until `count` statements wait for a lock that somebody holds on what belongs to `table`.
async fn waits(database: &Database, table: &str, count: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE wait_event_type = 'Lock' AND query LIKE '%\"{s}\".\"' || '{table}' || '%'";
    let waiting = waiting.replace("{table}", table);
    let mut beside = database.beside().await;
    let begun = std::time::Instant::now();
    while database.number(&mut beside, table, &waiting).await < count {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing waits for the lock");
    }
}

/// A store that is patient enough for a lock that is held long.
async fn patient(database: &Database, table: &str) -> PostgresStore {
    database.builder(table).patience(Duration::from_secs(30)).connect(database.url()).await.unwrap()
}

fn spawn<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(call)
}

/// How others hold a record: they only lock it, change it and undo that, or change what no transition depends on.
const BLOCKS: [(&str, &str); 3] = [
    ("BEGIN; SELECT FROM {t} FOR UPDATE", "COMMIT"),
    ("BEGIN; UPDATE {t} SET until = 9000000000000000, retention = 5", "ROLLBACK"),
    ("BEGIN; UPDATE {t} SET waited = true", "COMMIT"),
];

/// Holds every record for a while, and lets them go. The time right before.
async fn hold(
    database: &Database,
    table: &str,
    block: (&str, &str),
    waiting: i64,
    other: &mut PgConnection,
) -> Timestamp {
    waits(database, table, waiting).await;
    tokio::time::sleep(LOCKED).await;
    let freed = now(database).await;
    database.run(other, table, block.1).await;
    freed
}

#[tokio::test]
async fn a_claim_that_waited_for_the_record_takes_over_what_lapsed_meanwhile() {
    let Some(database) = Database::reach() else { return };
    for block in BLOCKS {
        let table = database.table();
        let store = patient(&database, &table).await;
        let op = operation("k", b"body");
        // Lapsed, so that the claim wants the record; to be free by the time that it gets it.
        let lapsing = Bid { lease: Duration::ZERO, retention: LEASE, ..bid() };
        let first = granted(store.claim(&op, &lapsing).await.unwrap());
        let mut other = database.beside().await;
        database.run(&mut other, &table, block.0).await;
        let claim = spawn({
            let (store, op) = (store.clone(), op.clone());
            async move { store.claim(&op, &Bid { lease: LEASE, ..bid() }).await }
        });
        let freed = hold(&database, &table, block, 1, &mut other).await;
        let lease = granted(claim.await.unwrap().unwrap());
        assert_eq!(lease.attempt, 1, "a key that was free when it was locked is new: {block:?}");
        assert!(lease.fence > first.fence && lease.fence.as_u64() >= freed.as_micros(), "{block:?}");
        let record = store.find(op.address()).await.unwrap().unwrap();
        assert_eq!(until(&record), Timestamp::from_micros(lease.fence.as_u64()).plus(LEASE), "{block:?}");
    }
}

#[tokio::test]
async fn a_claim_that_waited_for_an_insert_to_be_undone_has_its_whole_lease() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let store = patient(&database, &table).await;
    let op = operation("k", b"body");
    let lease = claim(&store, "k").await;
    let mut other = database.beside().await;
    database
        .run(&mut other, &table, "CREATE TEMPORARY TABLE copy AS SELECT * FROM {t}; DELETE FROM {t}")
        .await;
    database.run(&mut other, &table, "BEGIN; INSERT INTO {t} SELECT * FROM copy").await;
    let claim = spawn({
        let (store, op) = (store.clone(), op.clone());
        async move { store.claim(&op, &Bid { lease: DAY, ..bid() }).await }
    });
    let freed = hold(&database, &table, ("", "ROLLBACK"), 1, &mut other).await;
    let second = granted(claim.await.unwrap().unwrap());
    assert_ne!(second.holder, lease.holder);
    let record = store.find(op.address()).await.unwrap().unwrap();
    assert!(until(&record) >= freed.plus(DAY), "the lease began before the wait");
    assert_eq!(store.repeats(), 1);
}

/// The second copy only lengthens the lease: where that fails, the first one was granted all the same.
#[tokio::test]
async fn a_claim_that_waited_is_granted_though_its_second_copy_fails() {
    const REFUSE: &str = "
        CREATE FUNCTION {s}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no updates'; END $$;
        CREATE TRIGGER refuse BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION {s}.refuse()";
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let store = patient(&database, &table).await;
    claim(&store, "k").await;
    let mut other = database.beside().await;
    let copy = "CREATE TEMPORARY TABLE copy AS SELECT * FROM {t}; DELETE FROM {t}";
    database.run(&mut other, &table, copy).await;
    database.run(&mut other, &table, REFUSE).await;
    database.run(&mut other, &table, "BEGIN; INSERT INTO {t} SELECT * FROM copy").await;
    let (op, bid) = (operation("k", b"body"), bid());
    let claim = spawn({
        let (store, op) = (store.clone(), op.clone());
        async move { store.claim(&op, &bid).await }
    });
    hold(&database, &table, ("", "ROLLBACK"), 1, &mut other).await;
    let lease = granted(claim.await.unwrap().unwrap());
    assert_eq!(store.repeats(), 1, "it was sent once more");
    let record = store.find(op.address()).await.unwrap().unwrap();
    assert_eq!((record.holder, record.fence), (bid.holder, lease.fence));
}

#[tokio::test]
async fn endings_and_renewals_that_waited_count_from_after_the_wait() {
    let Some(database) = Database::reach() else { return };
    for block in BLOCKS {
        let table = database.table();
        let store = patient(&database, &table).await;
        let [renewed, completed, released]: [Lease; 3] = [
            claim(&store, "renewed").await,
            claim(&store, "completed").await,
            claim(&store, "released").await,
        ];
        let mut other = database.beside().await;
        database.run(&mut other, &table, block.0).await;
        let keep = Keep { replay: 2 * DAY, then_reject: DAY };
        let endings = [
            spawn({
                let store = store.clone();
                async move { store.renew(&renewed, 2 * DAY).await }
            }),
            spawn({
                let store = store.clone();
                async move { store.complete(&completed, &outcome(), keep).await }
            }),
            spawn({
                let store = store.clone();
                async move { store.release(&released, Release::NotApplied).await }
            }),
        ];
        let freed = hold(&database, &table, block, 3, &mut other).await;
        for ending in endings {
            assert_eq!(ending.await.unwrap().unwrap(), Settled::Applied);
        }
        for (lease, term) in [(renewed, 2 * DAY), (completed, 2 * DAY), (released, DAY)] {
            let record = store.find(&lease.address).await.unwrap().unwrap();
            assert!(until(&record) >= freed.plus(term), "{block:?}: {record:?}");
            if let Phase::Completed { until, gone, .. } = record.phase {
                assert_eq!(gone, until.plus(DAY), "both are of one reading of the clock");
            }
        }
    }
}

#[tokio::test]
async fn a_resolution_that_waited_counts_from_after_the_wait() {
    let Some(database) = Database::reach() else { return };
    for block in BLOCKS {
        let table = database.table();
        let store = patient(&database, &table).await;
        let keep = Keep { replay: DAY, then_reject: Duration::ZERO };
        let resolutions =
            [("applied", Resolution::Applied(outcome(), keep)), ("not", Resolution::NotApplied)];
        let mut leases = Vec::new();
        for (key, _) in &resolutions {
            let lapsing = Bid { lease: Duration::ZERO, on_lapse: OnLapse::Hold, ..bid() };
            leases.push(granted(store.claim(&operation(key, b"body"), &lapsing).await.unwrap()));
        }
        let mut other = database.beside().await;
        database.run(&mut other, &table, block.0).await;
        let resolving: Vec<_> = leases
            .iter()
            .zip(resolutions)
            .map(|(&lease, (_, resolution))| {
                let store = store.clone();
                spawn(async move { store.resolve(&lease.address, lease.fence, &resolution).await })
            })
            .collect();
        let freed = hold(&database, &table, block, 2, &mut other).await;
        for resolved in resolving {
            assert_eq!(resolved.await.unwrap().unwrap(), Settled::Applied);
        }
        for lease in leases {
            let record = store.find(&lease.address).await.unwrap().unwrap();
            assert!(until(&record) >= freed.plus(DAY), "{block:?}: {record:?}");
        }
    }
}

#[tokio::test]
async fn a_claim_of_a_key_in_flight_waits_for_nobody() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    let lease = claim(&store, "k").await;
    let mut other = database.beside().await;
    database.run(&mut other, &table, BLOCKS[0].0).await;
    let verdict = store.claim(&operation("k", b"body"), &bid()).await.unwrap();
    assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
    let verdict = store.look(&operation("k", b"body")).await.unwrap();
    assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
    assert_eq!(store.find(&lease.address).await.unwrap().unwrap().fence, lease.fence);
}
