//! A connection may be set in many ways; none changes what a statement means.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{
    Bid, Claim, Inspect, Keep, Media, OnLapse, Outcome, Phase, Release, Resolution, Select, Settled, Store,
};
use idempotency_store_mysql::MySqlStore;
use scene::{DAY, Database, bid, builder, claim, granted, keep, operation, outcome};
use sqlx::Executor;

const SETTINGS: &[&str] = &[
    "sql_mode = ''",
    "sql_mode = 'TRADITIONAL'",
    "sql_mode = 'ANSI'",
    "sql_mode = 'ORACLE'",
    "sql_mode = 'MSSQL'",
    "sql_mode = 'SIMULTANEOUS_ASSIGNMENT'",
    "sql_mode = 'EMPTY_STRING_IS_NULL'",
    "sql_mode = 'NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION,PAD_CHAR_TO_FULL_LENGTH'",
    "sql_mode = 'IGNORE_SPACE,ONLY_FULL_GROUP_BY,NO_ZERO_DATE,NO_ZERO_IN_DATE,TIME_ROUND_FRACTIONAL'",
    "NAMES latin1",
    "NAMES utf8mb4 COLLATE utf8mb4_turkish_ci",
    "character_set_results = NULL",
    "collation_connection = utf8mb4_bin",
    "time_zone = 'SYSTEM'",
    "foreign_key_checks = 0",
    "unique_checks = 0",
    "sql_safe_updates = 1",
    "optimizer_switch = 'extended_keys=off,index_condition_pushdown=off'",
    "sql_select_limit = 1",
    "div_precision_increment = 0",
    "lc_time_names = 'de_DE'",
];

/// Every transition, with bytes that a text would not survive.
async fn live(store: &MySqlStore) {
    let bytes = Outcome::whole(Media(u16::MAX), (0..=u8::MAX).collect::<Vec<u8>>());
    let [a, b, empty, bare] = ["a", "b", "empty", "bare"].map(|key| operation(key, b"body"));
    let lease = granted(store.claim(&a, &bid()).await.unwrap());
    assert_eq!(granted(store.claim(&a, &Bid { holder: lease.holder, ..bid() }).await.unwrap()), lease);
    assert!(matches!(store.claim(&a, &bid()).await.unwrap(), Claim::InFlight { .. }));
    assert!(matches!(store.claim(&operation("a", b"other"), &bid()).await.unwrap(), Claim::Mismatch(_)));
    assert_eq!(store.renew(&lease, 2 * DAY).await.unwrap(), Settled::Applied);
    let keep_both = Keep { replay: DAY, then_reject: 2 * DAY };
    assert_eq!(store.complete(&lease, &bytes, keep_both).await.unwrap(), Settled::Applied);
    assert_eq!(store.complete(&lease, &outcome(), keep_both).await.unwrap(), Settled::Applied);
    assert_eq!(store.claim(&a, &bid()).await.unwrap(), Claim::Completed(bytes));
    let Phase::Completed { until, gone, .. } = store.find(a.address()).await.unwrap().unwrap().phase else {
        panic!("it is completed")
    };
    assert_eq!(gone, until.plus(2 * DAY));

    let lapsing = Bid { lease: Duration::ZERO, on_lapse: OnLapse::Hold, ..bid() };
    let held = granted(store.claim(&b, &lapsing).await.unwrap());
    assert_eq!(store.claim(&b, &bid()).await.unwrap(), Claim::InDoubt { fence: held.fence });
    assert_eq!(store.list(Select::InDoubt, None, 10).await.unwrap().len(), 1);
    let settled = store.resolve(b.address(), held.fence, &Resolution::NotApplied).await.unwrap();
    assert_eq!(settled, Settled::Applied);
    assert!(granted(store.claim(&b, &bid()).await.unwrap()).fence > held.fence);

    let lease = granted(store.claim(&empty, &bid()).await.unwrap());
    let nothing = Outcome::tombstone(Media(0), b"".to_vec());
    assert_eq!(store.release(&lease, Release::Unknown).await.unwrap(), Settled::Applied);
    let applied = Resolution::Applied(nothing.clone(), keep(Duration::ZERO));
    assert_eq!(store.resolve(empty.address(), lease.fence, &applied).await.unwrap(), Settled::Applied);
    let found = store.find(empty.address()).await.unwrap().unwrap();
    assert!(matches!(&found.phase, Phase::Completed { outcome, .. } if *outcome == nothing));
    let lease = granted(store.claim(&bare, &bid()).await.unwrap());
    assert_eq!(store.complete(&lease, &nothing, keep(DAY)).await.unwrap(), Settled::Applied);
    assert_eq!(store.claim(&bare, &bid()).await.unwrap(), Claim::Completed(nothing));
    assert_eq!(store.purge(10).await.unwrap(), 1);
    let lapsed = granted(store.claim(&empty, &Bid { lease: Duration::ZERO, ..bid() }).await.unwrap());
    assert_eq!(granted(store.claim(&empty, &bid()).await.unwrap()).attempt, lapsed.attempt + 1);
}

#[tokio::test]
async fn every_transition_means_the_same_however_a_connection_is_set() {
    let Some(database) = Database::reach() else { return };
    for setting in SETTINGS {
        let set: &str = Box::leak(format!("SET {setting}").into_boxed_str());
        let pool = database.pool(set).await;
        for way in [builder(), builder().without_returning()] {
            println!("{setting} {way:?}");
            // The table is made by another: whoever sets connections so has one already.
            let table = database.table();
            database.store_on(&table).await;
            live(&way.table(&table).open(pool.clone()).await.unwrap()).await;
        }
    }
}

#[tokio::test]
async fn a_table_is_made_however_a_connection_is_set() {
    let Some(database) = Database::reach() else { return };
    for setting in SETTINGS {
        let set: &str = Box::leak(format!("SET {setting}").into_boxed_str());
        println!("{setting}");
        claim(&database.store_on_pool(builder(), set).await, "k").await;
    }
}

#[tokio::test]
async fn a_database_of_another_character_set_holds_the_same_bytes() {
    let Some(database) = Database::reach() else { return };
    let name = database.table();
    let mut beside = database.beside().await;
    let create = format!("CREATE DATABASE `{name}` CHARACTER SET ucs2 COLLATE ucs2_turkish_ci");
    beside.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(create))).await.unwrap();
    let (server, _) = database.url().rsplit_once('/').unwrap();
    let opened = builder().connect(&format!("{server}/{name}")).await;
    if let Ok(store) = &opened {
        live(store).await;
        store.close().await;
    }
    beside.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(format!("DROP DATABASE `{name}`")))).await.unwrap();
    opened.unwrap();
}
