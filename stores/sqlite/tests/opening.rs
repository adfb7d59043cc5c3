//! What opening a file makes of it, and when it refuses.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::error::Error;

use idempotency_core::{Fate, Store, StoreError, StoreErrorKind};
use idempotency_store_sqlite::{OpenError, SchemaFound, SqliteStore};
use scene::{beside, bid, claim, operation, run};
use sqlx::SqliteConnection;

async fn number(connection: &mut SqliteConnection, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn lives_beside_the_tables_of_an_application() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let mut application = beside(&path).await;
    run(
        &mut application,
        "PRAGMA user_version = 42; CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (7)",
    )
    .await;

    let store = SqliteStore::open(&path).await.unwrap();
    claim(&store, "k").await;

    assert_eq!(number(&mut application, "PRAGMA user_version").await, 42);
    assert_eq!(number(&mut application, "SELECT id FROM orders").await, 7);
    assert_eq!(number(&mut application, "SELECT version FROM idempotency_schema").await, 1);
    assert_eq!(number(&mut application, "SELECT count(*) FROM idempotency_records").await, 1);
}

#[tokio::test]
async fn records_outlive_the_store_that_wrote_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let first = SqliteStore::open(&path).await.unwrap();
    let lease = claim(&first, "k").await;
    first.close().await;

    let second = SqliteStore::builder().existing_only().open(&path).await.unwrap();
    let settled = second.renew(&lease, scene::DAY).await.unwrap();
    assert_eq!(settled, idempotency_core::Settled::Applied);
}

#[tokio::test]
async fn a_schema_of_another_version_is_named_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("newer.db");
    let mut newer = beside(&path).await;
    run(
        &mut newer,
        "CREATE TABLE idempotency_schema (only_row INTEGER PRIMARY KEY, version INTEGER);
         INSERT INTO idempotency_schema VALUES (1, 7);
         CREATE TABLE idempotency_records (else_where TEXT)",
    )
    .await;
    let before = std::fs::read(&path).unwrap();

    let error = SqliteStore::open(&path).await.unwrap_err();
    assert!(matches!(error, OpenError::Schema { found: SchemaFound::Version(7), needed: 1 }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the database has idempotency schema version 7, this store needs version 1"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before, "the file was changed");

    let error = StoreError::from(error);
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Schema, Fate::NotApplied));
    assert!(error.source().unwrap().is::<OpenError>());
}

#[tokio::test]
async fn tables_of_the_same_name_that_are_not_ours_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    for (file, tables) in [
        ("records.db", "CREATE TABLE idempotency_records (mine TEXT)"),
        ("schema.db", "CREATE TABLE idempotency_schema (mine TEXT)"),
        ("empty.db", "CREATE TABLE idempotency_schema (version INTEGER)"),
    ] {
        let path = directory.path().join(file);
        run(&mut beside(&path).await, tables).await;
        let error = SqliteStore::open(&path).await.unwrap_err();
        assert!(
            matches!(error, OpenError::Schema { found: SchemaFound::Unversioned, .. }),
            "{file}: {error:?}"
        );
    }
}

#[tokio::test]
async fn existing_only_makes_neither_file_nor_tables() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mistyped.db");
    let error = SqliteStore::builder().existing_only().open(&path).await.unwrap_err();
    assert!(matches!(error, OpenError::Unopenable(_)), "{error:?}");
    assert!(!path.exists());

    run(&mut beside(&path).await, "CREATE TABLE orders (id INTEGER)").await;
    let error = SqliteStore::builder().existing_only().open(&path).await.unwrap_err();
    assert!(matches!(error, OpenError::Schema { found: SchemaFound::Absent, .. }), "{error:?}");
    assert_eq!(number(&mut beside(&path).await, "SELECT count(*) FROM sqlite_schema").await, 1);
}

#[tokio::test]
async fn a_path_that_opens_nothing_says_which_rule_it_breaks() {
    let directory = tempfile::tempdir().unwrap();
    let not_a_database = directory.path().join("notes.txt");
    std::fs::write(&not_a_database, "notes ".repeat(1_000)).unwrap();
    for path in [directory.path().join("absent/shop.db"), directory.path().to_path_buf(), not_a_database] {
        let error = SqliteStore::open(&path).await.unwrap_err();
        assert!(matches!(error, OpenError::Unopenable(_)), "{error:?}");
        assert!(error.to_string().contains("in a directory that exists"), "{error}");
        assert!(!error.to_string().contains("shop"), "{error}");
        assert!(error.source().unwrap().is::<sqlx::Error>(), "{error:?}");
    }
}

#[tokio::test]
async fn a_file_with_a_name_sqlite_reads_otherwise_is_a_file() {
    let directory = tempfile::tempdir().unwrap();
    std::env::set_current_dir(directory.path()).unwrap(); // every other test here names its files in full
    for name in [":memory:", "file:a?mode=memory", "a?b#c%20.db"] {
        let store = SqliteStore::open(name).await.unwrap();
        claim(&store, "k").await;
        assert!(directory.path().join(name).is_file(), "{name}");
    }
}

#[tokio::test]
async fn clones_share_a_store_in_memory() {
    let store = SqliteStore::builder().open_in_memory().await.unwrap();
    let copy = store.clone();
    claim(&store, "k").await;
    let verdict = copy.claim(&operation("k", b"body"), &bid()).await.unwrap();
    assert!(matches!(verdict, idempotency_core::Claim::InFlight { .. }), "{verdict:?}");
}

#[tokio::test]
async fn a_table_dropped_under_a_running_store_is_a_schema_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let store = SqliteStore::open(&path).await.unwrap();
    claim(&store, "k").await;
    run(&mut beside(&path).await, "DROP TABLE idempotency_records").await;
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Schema, Fate::NotApplied));
}

#[tokio::test]
async fn a_file_that_stays_locked_is_unavailable_and_opens_when_it_is_free() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let mut application = beside(&path).await;
    run(&mut application, "CREATE TABLE orders (id INTEGER); BEGIN EXCLUSIVE").await;
    let patience = std::time::Duration::from_millis(50);
    let error = SqliteStore::builder().patience(patience).open(&path).await.unwrap_err();
    assert!(matches!(error, OpenError::Unavailable(_)), "{error:?}");
    assert_eq!(StoreError::from(error).kind, StoreErrorKind::Unavailable);

    run(&mut application, "COMMIT").await;
    SqliteStore::open(&path).await.unwrap();
}
