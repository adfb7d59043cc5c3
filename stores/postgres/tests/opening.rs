//! What opening a store makes of a database, and when it refuses.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{error::Error, time::Duration};

use idempotency_core::{Fate, Settled, Store, StoreError, StoreErrorKind};
use idempotency_services::PostgresServer;
use idempotency_store_postgres::{OpenError, PostgresStore, SchemaFound};
use scene::{DAY, Database, bid, claim, operation};
use tokio::task::JoinSet;

const VERSIONS: &str = "SELECT sum(version)::bigint FROM {s}.idempotency_schema";

#[tokio::test]
async fn a_table_is_made_once_and_says_its_version() {
    let Some(database) = Database::reach() else { return };
    let (first, table) = database.store().await;
    let lease = claim(&first, "k").await;
    first.close().await;

    let second = database.builder(&table).existing_only().connect(database.url()).await.unwrap();
    assert_eq!(second.renew(&lease, DAY).await.unwrap(), Settled::Applied);
    let mut beside = database.beside().await;
    assert_eq!(database.number(&mut beside, &table, VERSIONS).await, 1);
    assert_eq!(database.number(&mut beside, &table, "SELECT count(*) FROM {t}").await, 1);
}

#[tokio::test]
async fn tables_and_schemas_of_their_own_share_nothing() {
    let (Some(database), Some(other)) = (Database::reach(), Database::reach()) else { return };
    let stores = [
        database.store_on("Records").await,
        database.store_on("records").await,
        other.store_on("records").await,
    ];
    for store in &stores {
        claim(store, "k").await;
    }
}

#[tokio::test]
async fn a_name_that_needs_thought_is_refused_before_anything_is_sent() {
    let nowhere = "postgres://nowhere.invalid/shop";
    for name in ["", "a b", "a\"; DROP TABLE orders; --", "shop.records", &"a".repeat(64)] {
        for builder in [PostgresStore::builder().table(name), PostgresStore::builder().schema(name)] {
            let error = builder.connect(nowhere).await.unwrap_err();
            assert!(matches!(error, OpenError::Name), "{name:?}: {error:?}");
            assert_eq!(StoreError::from(error).kind, StoreErrorKind::Refused);
        }
    }
}

#[tokio::test]
async fn twenty_stores_that_open_at_once_make_the_tables_once() {
    let Some(database) = Database::reach() else { return };
    for table in ["a", "b"] {
        let mut opening = JoinSet::new();
        for _ in 0..20 {
            let (builder, url) = (database.builder(table).connections(1), database.url().to_owned());
            opening.spawn(async move { builder.connect(&url).await.unwrap() });
        }
        for (number, store) in opening.join_all().await.into_iter().enumerate() {
            claim(&store, &format!("k{number}")).await;
        }
    }
    let mut beside = database.beside().await;
    assert_eq!(database.number(&mut beside, "a", VERSIONS).await, 2);
    assert_eq!(database.number(&mut beside, "b", "SELECT count(*) FROM {t}").await, 20);
}

#[tokio::test]
async fn nothing_is_made_where_that_is_refused() {
    let Some(database) = Database::reach() else { return };
    let error = database.builder("t").existing_only().connect(database.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::Schema { found: SchemaFound::Absent, needed: 1 }), "{error:?}");
    let there = "SELECT count(*) FROM pg_namespace WHERE nspname = '{s}'";
    assert_eq!(database.number(&mut database.beside().await, "t", there).await, 0);
}

#[tokio::test]
async fn a_schema_of_another_version_is_named_and_left_alone() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    claim(&store, "k").await;
    let mut newer = database.beside().await;
    database.run(&mut newer, &table, "UPDATE {s}.idempotency_schema SET version = 7").await;

    let error = database.builder(&table).connect(database.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::Schema { found: SchemaFound::Version(7), needed: 1 }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the database has idempotency schema version 7, this store needs version 1"
    );
    let error = StoreError::from(error);
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Schema, Fate::NotApplied));
    assert!(error.source().unwrap().is::<OpenError>());
    assert_eq!(database.number(&mut newer, &table, "SELECT count(*) FROM {t}").await, 1);
}

#[tokio::test]
async fn tables_of_the_same_name_that_are_not_ours_are_left_alone() {
    let Some(database) = Database::reach() else { return };
    database.store().await; // so that there are versions, of others
    let mut theirs = database.beside().await;
    for (table, made) in [
        ("records", "CREATE TABLE {t} (id bigint); INSERT INTO {t} VALUES (7)"),
        ("view", "CREATE VIEW {t} AS SELECT 7::bigint AS id"),
    ] {
        database.run(&mut theirs, table, made).await;
        let error = database.builder(table).connect(database.url()).await.unwrap_err();
        assert!(
            matches!(error, OpenError::Schema { found: SchemaFound::Unversioned, .. }),
            "{table}: {error:?}"
        );
        assert_eq!(database.number(&mut theirs, table, "SELECT id FROM {t}").await, 7);
    }

    let Some(database) = Database::reach() else { return };
    for made in ["(mine text)", "(records int, version int)", "(records text, version text)"] {
        let made = format!(
            "DROP SCHEMA IF EXISTS {{s}} CASCADE; CREATE SCHEMA {{s}}; CREATE TABLE {{s}}.idempotency_schema {made}"
        );
        database.run(&mut theirs, "t", &made).await;
        let error = database.builder("t").connect(database.url()).await.unwrap_err();
        assert!(
            matches!(error, OpenError::Schema { found: SchemaFound::Unversioned, .. }),
            "{made}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_refuses_is_told_from_one_that_does_not_answer() {
    let Some(database) = Database::reach() else { return };
    let (user, place) = database.url().rsplit_once('@').unwrap();
    let (place, name) = place.rsplit_once('/').unwrap();
    for url in [
        format!("postgres://idempotency_nobody:very-secret@{place}/{name}"),
        format!("{user}@{place}/there_is_no_such_database"),
        "not a url".to_owned(),
    ] {
        let error = PostgresStore::connect(&url).await.unwrap_err();
        assert!(matches!(error, OpenError::Refused(_)), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("very-secret"), "{error:?}");
    }
    let nowhere = "postgres://idempotency_nobody:very-secret@127.0.0.1:1/shop";
    let hasty = PostgresStore::builder().patience(Duration::from_millis(200));
    let error = hasty.connect(nowhere).await.unwrap_err();
    assert!(matches!(error, OpenError::Unavailable(_)), "{error:?}");
    let error = StoreError::from(error);
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
}

#[tokio::test]
async fn a_search_path_says_where_tables_are_made_and_must_say_it() {
    let Some(database) = Database::reach() else { return };
    database.run(&mut database.beside().await, "t", "CREATE SCHEMA {s}").await;
    let set: &str = Box::leak(format!("SET search_path = nowhere, {}", database.schema()).into_boxed_str());
    let store = PostgresStore::builder().table("t").open(database.pool(1, set).await).await.unwrap();
    claim(&store, "k").await;
    assert_eq!(database.number(&mut database.beside().await, "t", "SELECT count(*) FROM {t}").await, 1);

    let pool = database.pool(1, "SET search_path = nowhere").await;
    let error = PostgresStore::new(pool).await.unwrap_err();
    assert!(matches!(error, OpenError::NoSchema), "{error:?}");
}

/// Whoever runs a service may have no right to make anything, and needs no more than this.
#[tokio::test]
async fn a_user_who_may_make_nothing_can_use_what_is_there() {
    let Some(server) = PostgresServer::start(&[]) else { return };
    let database = Database::at(server.url());
    let mut owner = database.beside().await;
    database.run(&mut owner, "t", "CREATE ROLE service LOGIN").await;
    let url = server.url().replace("postgres@", "service@");
    let error = database.builder("t").connect(&url).await.unwrap_err();
    assert!(matches!(error, OpenError::Refused(_)), "{error:?}");

    database.store_on("t").await;
    let grant = "GRANT USAGE ON SCHEMA {s} TO service; GRANT SELECT ON {s}.idempotency_schema TO service;
                 GRANT SELECT, INSERT, UPDATE, DELETE ON {t} TO service";
    database.run(&mut owner, "t", grant).await;
    let store = database.builder("t").connect(&url).await.unwrap();
    let lease = claim(&store, "k").await;
    assert_eq!(store.renew(&lease, DAY).await.unwrap(), Settled::Applied);
    assert_eq!(store.purge(10).await.unwrap(), 0);
}

#[tokio::test]
async fn the_default_names_are_the_documented_ones() {
    let Some(server) = PostgresServer::start(&[]) else { return };
    claim(&PostgresStore::connect(&server.url()).await.unwrap(), "k").await;
    assert_eq!(server.ask("SELECT count(*) FROM public.idempotency_records"), "1");
    assert_eq!(server.ask("SELECT * FROM public.idempotency_schema"), "idempotency_records|1");
}

#[tokio::test]
async fn a_closed_store_is_unavailable() {
    let Some(database) = Database::reach() else { return };
    let (store, _) = database.store().await;
    claim(&store, "k").await;
    store.close().await;
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
    assert_eq!(store.look(&operation("k", b"body")).await.unwrap_err().kind, StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn a_pool_of_yours_stays_open() {
    let Some(database) = Database::reach() else { return };
    let pool = database.pool(2, "SELECT 1").await;
    let store = database.builder("t").open(pool.clone()).await.unwrap();
    store.close().await;
    claim(&store, "k").await;
    assert!(!pool.is_closed());
    pool.close().await;
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
}

#[tokio::test]
async fn a_table_dropped_under_a_running_store_is_a_schema_error() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    claim(&store, "k").await;
    database.run(&mut database.beside().await, &table, "DROP TABLE {t}").await;
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Schema, Fate::NotApplied));
}

#[tokio::test]
async fn a_table_that_somebody_dropped_is_made_anew() {
    let Some(database) = Database::reach() else { return };
    let (store, table) = database.store().await;
    claim(&store, "k").await;
    let mut beside = database.beside().await;
    database.run(&mut beside, &table, "DROP TABLE {t}").await;
    let store = database.store_on(&table).await;
    claim(&store, "k").await;
    assert_eq!(database.number(&mut beside, &table, VERSIONS).await, 1);
}
