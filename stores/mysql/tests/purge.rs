//! Removing what is over: in batches, to a bound, while others go on, and nothing else ever.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{Address, Bid, Inspect, OnLapse, Operation, Release, Select, Store};
use scene::{Database, bid, builder, claim, granted, keep, operation, outcome, run};
use sqlx::{AssertSqlSafe, MySqlConnection};
use tokio::task::JoinSet;

/// Writes that many records which are over, with outcomes.
async fn fill(database: &Database, table: &str, records: usize) {
    let fill = format!(
        "INSERT INTO {{t}} (address, phase, holder, fence, attempt, on_lapse, retention, fingerprint, until, gone,
                            form, media, outcome)
         SELECT UNHEX(SHA2(seq, 256)), 2, REPEAT('h', 16), seq, 1, 0, 0, CONCAT(x'02', REPEAT('f', 104)), 1, 1,
                0, 1, REPEAT('o', 500)
         FROM seq_1_to_{records}"
    );
    run(&mut database.beside().await, table, &fill).await;
}

#[tokio::test]
async fn a_large_purge_goes_in_batches_to_its_bound() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    fill(&database, &table, 1300).await;
    claim(&store, "held").await;
    assert_eq!(store.purge(0).await.unwrap(), 0);
    assert_eq!(store.purge(1_100).await.unwrap(), 1_100);
    assert_eq!(store.purge(u32::MAX).await.unwrap(), 200);
    assert_eq!(store.list(Select::All, None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_held_or_in_doubt_outlives_every_purge() {
    let Some(database) = Database::reach() else { return };
    let (store, _) = database.store().await;
    let brief = Duration::from_millis(1);
    let (held, doubt, lapsed) = (operation("held", b""), operation("doubt", b""), operation("lapsed", b""));
    granted(store.claim(&held, &Bid { retention: brief, ..bid() }).await.unwrap());
    let lease = granted(store.claim(&doubt, &Bid { lease: brief, retention: brief, ..bid() }).await.unwrap());
    let _ = store.release(&lease, Release::Unknown).await.unwrap();
    let hold = Bid { lease: brief, retention: brief, on_lapse: OnLapse::Hold, ..bid() };
    granted(store.claim(&lapsed, &hold).await.unwrap());
    tokio::time::sleep(Duration::from_millis(50)).await; // so that all of it is past
    assert_eq!(store.purge(u32::MAX).await.unwrap(), 0);
    for op in [held, doubt, lapsed] {
        assert!(store.find(op.address()).await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn purges_that_meet_share_the_work_and_count_each_record_once() {
    const RECORDS: usize = 3_000;
    let Some(database) = Database::reach() else { return };
    for set in ["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "DO 0"] {
        let table = database.table();
        let store = builder().table(&table).open(database.pool(set).await).await.unwrap();
        fill(&database, &table, RECORDS).await;
        let mut purges = JoinSet::new();
        for _ in 0..4 {
            let store = store.clone();
            purges.spawn(async move { store.purge(u32::MAX).await.unwrap() });
        }
        let mut removed: u32 = purges.join_all().await.into_iter().sum();
        // One that twice found the same batch as another stopped.
        removed += store.purge(u32::MAX).await.unwrap();
        assert_eq!(removed as usize, RECORDS);
        assert!(store.list(Select::All, None, 1).await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_another_purge_removed_is_not_the_end() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    fill(&database, &table, 500).await;
    let mut other = database.beside().await;
    run(&mut other, &table, "BEGIN; DELETE FROM {t} ORDER BY address LIMIT 200").await;
    let purge = tokio::spawn(async move { store.purge(u32::MAX).await });
    tokio::time::sleep(Duration::from_millis(100)).await; // it waits for that batch
    run(&mut other, &table, "COMMIT").await;
    assert_eq!(purge.await.unwrap().unwrap(), 300);
}

/// The statement of a purge in a transaction that does not end, at the level that locks most.
#[tokio::test(flavor = "multi_thread")]
async fn a_purge_keeps_no_claim_waiting_but_of_what_it_removes() {
    const DUE: usize = 20;
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    fill(&database, &table, DUE).await;
    let mut purge = database.beside().await;
    let now = include_str!("../sql/now.sql");
    let now: String = now.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join(" ");
    let remove = include_str!("../sql/remove.sql").replace("{records}", "{t}").replace("{now}", &now);
    let addresses = format!("SELECT UNHEX(SHA2(seq, 256)) FROM seq_1_to_{DUE}");
    let addresses: Vec<Vec<u8>> =
        sqlx::query_scalar(AssertSqlSafe(addresses)).fetch_all(&mut purge).await.unwrap();
    let list: Vec<String> = addresses.iter().map(|address| format!("x'{}'", hex(address))).collect();
    let remove: String = remove.lines().filter(|line| !line.starts_with("--")).collect();
    let remove = remove.replace("{addresses}", &list.join(", ")).replace("DELETE", "BEGIN; DELETE");
    run(&mut purge, &table, &format!("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; {remove}")).await;
    assert_eq!(left(&mut purge, &table).await, 0, "it removed them all");

    for key in 0..10 * DUE {
        claim(&store, &format!("k{key}")).await; // which would fail after half a minute
    }
    let removed = Address::from_bytes(addresses[0].as_slice().try_into().unwrap());
    let op = Operation::new(removed, *operation("k", b"body").fingerprint());
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.claim(&op, &bid()).await }
    });
    run(&mut purge, &table, "COMMIT").await;
    granted(waiting.await.unwrap().unwrap());
}

async fn left(connection: &mut MySqlConnection, table: &str) -> i64 {
    let count = format!("SELECT COUNT(*) FROM `{table}`");
    sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(connection).await.unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_purge_waits_for_no_record_but_those_it_removes() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    fill(&database, &table, 5).await;
    let mut other = database.beside().await;
    for key in 0..10 {
        claim(&store, &format!("k{key}")).await;
    }
    run(&mut other, &table, "BEGIN").await;
    for key in 0..10 {
        let address = hex(operation(&format!("k{key}"), b"").address().as_bytes());
        run(&mut other, &table, &format!("SELECT 1 FROM {{t}} WHERE address = x'{address}' FOR UPDATE"))
            .await;
    }
    assert_eq!(store.purge(10).await.unwrap(), 5);
    run(&mut other, &table, "COMMIT").await;
}

#[tokio::test]
async fn a_record_that_is_revived_while_a_purge_waits_for_it_stays() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    for key in ["a", "b"] {
        let lease = claim(&store, key).await;
        let _ = store.complete(&lease, &outcome(), keep(Duration::ZERO)).await.unwrap();
    }
    let mut reviver = database.beside().await;
    let a = operation("a", b"body");
    run(&mut reviver, &table, "BEGIN").await;
    let revive = format!("UPDATE `{table}` SET gone = 9000000000000000 WHERE address = ?");
    let revive = sqlx::query(AssertSqlSafe(revive)).bind(a.address().as_bytes().as_slice());
    revive.execute(&mut reviver).await.unwrap();
    let purge = tokio::spawn({
        let store = store.clone();
        async move { store.purge(10).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await; // it waits for the record, or it does not
    run(&mut reviver, &table, "COMMIT").await;
    assert_eq!(purge.await.unwrap().unwrap(), 1, "the record is not due any more");
    assert!(store.find(a.address()).await.unwrap().is_some());
}
