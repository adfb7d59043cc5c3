//! What opening a store makes of a database, and when it refuses.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{error::Error, time::Duration};

use idempotency_core::{Fate, Outcome, Settled, Store, StoreError, StoreErrorKind};
use idempotency_services::MariaDbServer;
use idempotency_store_mysql::{MySqlStore, OpenError, SchemaFound, Setting};
use scene::{DAY, Database, bid, builder, claim, keep, operation, run};
use sqlx::{AssertSqlSafe, Executor, MySqlConnection};

async fn number(connection: &mut MySqlConnection, query: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_one(connection).await.unwrap()
}

async fn open(database: &Database, table: &str) -> Result<MySqlStore, OpenError> {
    builder().table(table).connect(database.url()).await
}

#[tokio::test]
async fn a_table_is_made_once_and_says_its_version() {
    let Some(database) = Database::reach() else { return };
    let (first, table) = database.store().await;
    let lease = claim(&first, "k").await;
    first.close().await;

    let second = builder().table(&table).existing_only().connect(database.url()).await.unwrap();
    assert_eq!(second.renew(&lease, DAY).await.unwrap(), Settled::Applied);
    let mut beside = database.beside().await;
    let versions = format!("SELECT SUM(version) FROM idempotency_schema WHERE records = '{table}'");
    let versions = format!("SELECT CAST(({versions}) AS SIGNED)");
    assert_eq!(number(&mut beside, &versions).await, 1);
    assert_eq!(number(&mut beside, &format!("SELECT COUNT(*) FROM `{table}`")).await, 1);
}

#[tokio::test]
async fn tables_of_their_own_share_nothing() {
    let Some(database) = Database::reach() else { return };
    let ((one, _), (other, _)) = (database.store().await, database.store().await);
    claim(&one, "k").await;
    claim(&other, "k").await;
}

#[tokio::test]
async fn a_name_that_needs_quoting_is_refused_before_anything_is_sent() {
    for name in ["", "a b", "a`; DROP TABLE orders; --", "shop.records", "idempotency_schema"] {
        let error =
            MySqlStore::builder().table(name).connect("mysql://nowhere.invalid/shop").await.unwrap_err();
        assert!(matches!(error, OpenError::Name), "{name:?}: {error:?}");
        assert_eq!(StoreError::from(error).kind, StoreErrorKind::Refused);
    }
}

#[tokio::test]
async fn nothing_is_made_where_that_is_refused() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let existing = MySqlStore::builder().table(&table).existing_only();
    let error = existing.connect(database.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::Schema { found: SchemaFound::Absent, needed: 1 }), "{error:?}");
    let mut beside = database.beside().await;
    let there = format!("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = '{table}'");
    assert_eq!(number(&mut beside, &there).await, 0);
}

#[tokio::test]
async fn a_schema_of_another_version_is_named_and_left_alone() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    claim(&store, "k").await;
    let mut newer = database.beside().await;
    run(&mut newer, &table, &format!("UPDATE idempotency_schema SET version = 7 WHERE records = '{table}'"))
        .await;

    let error = open(&database, &table).await.unwrap_err();
    assert!(matches!(error, OpenError::Schema { found: SchemaFound::Version(7), needed: 1 }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the database has idempotency schema version 7, this store needs version 1"
    );
    let error = StoreError::from(error);
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Schema, Fate::NotApplied));
    assert!(error.source().unwrap().is::<OpenError>());
    assert_eq!(number(&mut newer, &format!("SELECT COUNT(*) FROM `{table}`")).await, 1);
}

#[tokio::test]
async fn a_table_of_the_same_name_that_is_not_ours_is_left_alone() {
    let Some(database) = Database::reach() else { return };
    database.store().await; // so that there are versions, of others
    let table = database.table();
    let mut theirs = database.beside().await;
    run(&mut theirs, &table, "CREATE TABLE {t} (id INT); INSERT INTO {t} VALUES (7)").await;
    let error = open(&database, &table).await.unwrap_err();
    assert!(matches!(error, OpenError::Schema { found: SchemaFound::Unversioned, .. }), "{error:?}");
    assert_eq!(number(&mut theirs, &format!("SELECT CAST(id AS SIGNED) FROM `{table}`")).await, 7);
}

#[tokio::test]
async fn a_table_that_a_killed_process_began_is_finished() {
    let Some(database) = Database::reach() else { return };
    database.store().await;
    let mut killed = database.beside().await;
    for began in ["", "CREATE TABLE {t} LIKE {like}"] {
        let (like, table) = (database.store().await.1, database.table());
        let begin = format!("INSERT INTO idempotency_schema VALUES ('{table}', 0); {began}");
        run(&mut killed, &table, &begin.replace("{like}", &like)).await;
        claim(&open(&database, &table).await.unwrap(), "k").await;
        let version = format!("SELECT version FROM idempotency_schema WHERE records = '{table}'");
        assert_eq!(number(&mut killed, &version).await, 1);
    }
}

#[tokio::test]
async fn somebody_who_makes_tables_is_waited_for_and_not_for_ever() {
    let Some(database) = Database::reach() else { return };
    let mut other = database.beside().await;
    let lock = "GET_LOCK(CONCAT('idempotency_schema.', DATABASE()), 5)";
    assert_eq!(number(&mut other, &format!("SELECT {lock}")).await, 1);
    let table = database.table();
    let hasty = MySqlStore::builder().table(&table).patience(Duration::from_secs(1));
    let error = hasty.connect(database.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::Unavailable(_)), "{error:?}");

    let patient = MySqlStore::builder().table(&table).patience(DAY);
    let url = database.url().to_owned();
    let patient = tokio::spawn(async move { patient.connect(&url).await });
    other.execute("SELECT RELEASE_LOCK(CONCAT('idempotency_schema.', DATABASE()))").await.unwrap();
    claim(&patient.await.unwrap().unwrap(), "k").await;
}

#[tokio::test]
async fn a_server_that_refuses_is_told_from_one_that_does_not_answer() {
    let Some(database) = Database::reach() else { return };
    let (user, place) = database.url().rsplit_once('@').unwrap();
    let (place, name) = place.rsplit_once('/').unwrap();
    for url in [
        format!("mysql://idempotency_nobody:very-secret@{place}/{name}"),
        format!("{user}@{place}/there_is_no_such_database"),
        "not a url".to_owned(),
    ] {
        let error = MySqlStore::connect(&url).await.unwrap_err();
        assert!(matches!(error, OpenError::Refused(_)), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("very-secret"), "{error:?}");
    }
    let nowhere = "mysql://idempotency_nobody:very-secret@127.0.0.1:1/shop";
    let error =
        MySqlStore::builder().patience(Duration::from_millis(200)).connect(nowhere).await.unwrap_err();
    assert!(matches!(error, OpenError::Unavailable(_)), "{error:?}");
    let error = StoreError::from(error);
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
}

#[tokio::test]
async fn connections_that_commit_nothing_by_themselves_are_refused() {
    let Some(database) = Database::reach() else { return };
    let builder = MySqlStore::builder().table(database.table());
    let error = builder.open(database.pool("SET autocommit = 0").await).await.unwrap_err();
    assert!(matches!(error, OpenError::Setting(Setting::AutocommitOff)), "{error:?}");
}

#[tokio::test]
async fn a_closed_store_is_unavailable() {
    let Some(database) = Database::reach() else { return };
    let (store, _) = database.store().await;
    store.close().await;
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
    assert_eq!(store.look(&operation("k", b"body")).await.unwrap_err().kind, StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn a_pool_of_yours_stays_open() {
    let Some(database) = Database::reach() else { return };
    let pool = database.pool("DO 0").await;
    let store = builder().table(database.table()).open(pool.clone()).await.unwrap();
    store.close().await;
    claim(&store, "k").await;
    assert!(!pool.is_closed());
}

#[tokio::test]
async fn a_table_dropped_under_a_running_store_is_a_schema_error() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    claim(&store, "k").await;
    run(&mut database.beside().await, &table, "DROP TABLE {t}").await;
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Schema, Fate::NotApplied));
}

#[tokio::test]
async fn a_clock_that_stops_during_a_statement_is_refused() {
    let Some(server) = MariaDbServer::start(&["--sysdate-is-now"]) else { return };
    let error = MySqlStore::connect(&server.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::Setting(Setting::SysdateIsNow)), "{error:?}");
    assert!(error.to_string().contains("--sysdate-is-now"), "{error}");
    assert_eq!(StoreError::from(error).kind, StoreErrorKind::Refused);
}

#[tokio::test]
async fn the_default_names_the_longest_outcome_and_replication_are_the_server_s() {
    let options = ["--log-bin", "--server-id=1", "--binlog-format=MIXED", "--max-allowed-packet=1M"];
    let Some(server) = MariaDbServer::start(&options) else { return };
    let store = builder().connect(&server.url()).await.unwrap();
    assert_eq!(server.ask("SELECT COUNT(*) FROM idempotency_records"), "0");
    assert_eq!(server.ask("SELECT records, version FROM idempotency_schema"), "idempotency_records\t1");

    let longest = store.max_outcome_bytes();
    assert!((1_000_000..1 << 20).contains(&longest), "{longest}");
    for (key, bytes, fits) in [("a", longest, true), ("b", longest + 1, false)] {
        let lease = claim(&store, key).await;
        let outcome = Outcome::whole(idempotency_core::Media(1), vec![7; bytes]);
        match store.complete(&lease, &outcome, keep(DAY)).await {
            Ok(settled) => assert!(fits && settled == Settled::Applied),
            Err(error) => {
                assert!(!fits && error.kind == StoreErrorKind::TooLarge && error.fate == Fate::NotApplied);
            }
        }
        let verdict = store.claim(&operation(key, b"body"), &bid()).await.unwrap();
        assert_eq!(verdict.name(), if fits { "completed" } else { "in_flight" });
    }

    server.ask("SET GLOBAL binlog_format = 'STATEMENT'");
    let error = MySqlStore::connect(&server.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::Setting(Setting::StatementReplication)), "{error:?}");
}
