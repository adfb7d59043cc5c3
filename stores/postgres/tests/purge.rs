//! Removing what is over: in batches, to a bound, while others go on, and nothing else ever.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{Bid, Inspect, Keep, OnLapse, Release, Select, Settled, Store};
use scene::{DAY, Database, bid, claim, granted, keep, operation, outcome};
use tokio::task::JoinSet;

/// Writes that many records which are over, with outcomes.
async fn fill(database: &Database, table: &str, records: usize) {
    let fill = format!(
        "INSERT INTO {{t}} (address, holder, fingerprint, fence, attempt, retention, due, on_lapse, phase, until, gone,
                            media, form, outcome)
         SELECT sha256(n::text::bytea), decode(repeat('ab', 16), 'hex'), '\\x02' || decode(repeat('cd', 104), 'hex'),
                n, 1, 0, n % 7, 0, 2, 1, 1, 1, 0, decode(repeat('ef', 500), 'hex')
         FROM generate_series(1, {records}) AS n"
    );
    database.run(&mut database.beside().await, table, &fill).await;
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
    let (store, table) = database.store().await;
    let brief = Bid { retention: Duration::ZERO, ..bid() };
    granted(store.claim(&operation("held", b""), &brief).await.unwrap());
    let lapsing = Bid { lease: Duration::ZERO, ..brief };
    let doubt = granted(store.claim(&operation("doubt", b""), &lapsing).await.unwrap());
    assert_eq!(store.release(&doubt, Release::Unknown).await.unwrap(), Settled::Applied);
    let hold = Bid { on_lapse: OnLapse::Hold, ..lapsing };
    granted(store.claim(&operation("lapsed", b""), &hold).await.unwrap());
    // However early the table says that a purge should look at them.
    database.run(&mut database.beside().await, &table, "UPDATE {t} SET due = 0").await;
    for _ in 0..2 {
        assert_eq!(store.purge(u32::MAX).await.unwrap(), 0);
    }
    for key in ["held", "doubt", "lapsed"] {
        assert!(store.find(operation(key, b"").address()).await.unwrap().is_some(), "{key}");
    }
    let in_doubt = store.list(Select::InDoubt, None, 10).await.unwrap();
    assert_eq!(in_doubt.len(), 2, "who is put off is still listed");
}

/// What a purge looked at once and may not remove it does not look at again before it may.
#[tokio::test]
async fn a_record_that_is_not_over_yet_is_put_off_to_its_end() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    let brief = Bid { retention: Duration::ZERO, ..bid() };
    let lease = granted(store.claim(&operation("completed", b"body"), &brief).await.unwrap());
    let keep = Keep { replay: DAY, then_reject: DAY };
    assert_eq!(store.complete(&lease, &outcome(), keep).await.unwrap(), Settled::Applied);
    granted(store.claim(&operation("running", b"body"), &brief).await.unwrap());
    let (mut beside, due) =
        (database.beside().await, "SELECT count(*) FROM {t} WHERE due < coalesce(gone, until)");
    assert_eq!(database.number(&mut beside, &table, due).await, 2);
    assert_eq!(store.purge(u32::MAX).await.unwrap(), 0);
    assert_eq!(database.number(&mut beside, &table, due).await, 0);
    assert_eq!(
        database
            .number(&mut beside, &table, "SELECT count(*) FROM {t} WHERE due = coalesce(gone, until)")
            .await,
        2
    );
}

/// However a record came to be what it is, it is removed at the first purge after its end.
#[tokio::test]
async fn a_record_is_due_no_later_than_its_end_whatever_became_of_it() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    let bids = [OnLapse::TakeOver, OnLapse::Hold].map(|on_lapse| Bid { on_lapse, ..bid() });
    for (number, bid) in bids.into_iter().enumerate() {
        let lease =
            granted(store.claim(&operation(&format!("completed {number}"), b""), &bid).await.unwrap());
        let _ = store.complete(&lease, &outcome(), keep(Duration::ZERO)).await.unwrap();
        let bid = Bid { holder: idempotency_core::Holder::draw(), retention: Duration::ZERO, ..bid };
        let lease = granted(store.claim(&operation(&format!("released {number}"), b""), &bid).await.unwrap());
        let _ = store.release(&lease, Release::NotApplied).await.unwrap();
        let lease = granted(store.claim(&operation(&format!("resolved {number}"), b""), &bid).await.unwrap());
        let _ = store.release(&lease, Release::Unknown).await.unwrap();
        let not_applied = idempotency_core::Resolution::NotApplied;
        let _ = store.resolve(&lease.address, lease.fence, &not_applied).await.unwrap();
        let lease =
            granted(store.claim(&operation(&format!("doubt ended {number}"), b""), &bid).await.unwrap());
        let _ = store.release(&lease, Release::Unknown).await.unwrap();
        let _ = store.complete(&lease, &outcome(), keep(Duration::ZERO)).await.unwrap();
    }
    let lapsing = Bid { lease: Duration::ZERO, retention: Duration::ZERO, ..bid() };
    granted(store.claim(&operation("lapsed", b""), &lapsing).await.unwrap());
    assert_eq!(store.purge(u32::MAX).await.unwrap(), 9);
    let left = database.number(&mut database.beside().await, &table, "SELECT count(*) FROM {t}").await;
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn purges_that_meet_share_the_work_and_count_each_record_once() {
    const RECORDS: usize = 3_000;
    let Some(database) = Database::reach() else { return };
    for level in ["read committed", "repeatable read", "serializable"] {
        let table = database.table();
        let set: &str = Box::leak(format!("SET default_transaction_isolation = '{level}'").into_boxed_str());
        let builder = database.builder(&table).patience(Duration::from_secs(60));
        let store = builder.open(database.pool(8, set).await).await.unwrap();
        fill(&database, &table, RECORDS).await;
        let mut purges = JoinSet::new();
        for _ in 0..4 {
            let store = store.clone();
            purges.spawn(async move { store.purge(u32::MAX).await.unwrap() });
        }
        let mut removed: u32 = purges.join_all().await.into_iter().sum();
        // One that found the rest locked by others stops there.
        removed += store.purge(u32::MAX).await.unwrap();
        assert_eq!(removed as usize, RECORDS, "{level}");
        assert!(store.list(Select::All, None, 1).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_purge_and_others_wait_for_one_another_in_no_way() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    fill(&database, &table, 20).await;
    let mut other = database.beside().await;
    database.run(&mut other, &table, "BEGIN; SELECT FROM {t} WHERE fence <= 5 FOR UPDATE").await;
    assert_eq!(store.purge(100).await.unwrap(), 15, "what somebody holds stays for the next purge");
    database.run(&mut other, &table, "COMMIT").await;
    assert_eq!(store.purge(100).await.unwrap(), 5);

    // The statement of a purge in a transaction that does not end.
    fill(&database, &table, 20).await;
    database.run(&mut other, &table, "BEGIN; DELETE FROM {t} WHERE due <= 6").await;
    for key in 0..50 {
        claim(&store, &format!("k{key}")).await; // which would fail after 750 ms
    }
    database.run(&mut other, &table, "COMMIT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_revived_while_a_purge_finds_it_stays() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    for round in 0..30 {
        let key = format!("k{round}");
        let lease = claim(&store, &key).await;
        let _ = store.complete(&lease, &outcome(), keep(Duration::ZERO)).await.unwrap();
        let purge = tokio::spawn({
            let store = store.clone();
            async move { store.purge(10).await.unwrap() }
        });
        let revived = claim(&store, &key).await;
        purge.await.unwrap();
        let record = store.find(&revived.address).await.unwrap().expect("a run loses no record");
        assert_eq!(record.holder, revived.holder);
    }
    let left = database.number(&mut database.beside().await, &table, "SELECT count(*) FROM {t}").await;
    assert_eq!(left, 30);
}
