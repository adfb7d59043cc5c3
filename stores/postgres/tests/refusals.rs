//! What the server refuses, and what of it each call makes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::error::Error;

use idempotency_core::{Fate, Settled, Store, StoreError, StoreErrorKind};
use scene::{DAY, Database, bid, claim, keep, operation, outcome};

const EVERY: u32 = 1_000_000;

/// Has every write of a record do this, from the first one to the `last`.
async fn each_write(database: &Database, last: u32, does: &str) {
    let trigger = format!(
        "CREATE OR REPLACE FUNCTION {{s}}.meddle() RETURNS trigger LANGUAGE plpgsql AS $$
         DECLARE
             number bigint := nextval('{{s}}.writes');
         BEGIN
             IF number <= {last} THEN {does}; END IF;
             RETURN NEW;
         END $$;
         CREATE OR REPLACE TRIGGER meddle BEFORE INSERT OR UPDATE ON {{t}} FOR EACH ROW EXECUTE FUNCTION {{s}}.meddle()"
    );
    let mut owner = database.beside().await;
    database.run(&mut owner, "t", "DROP SEQUENCE IF EXISTS {s}.writes; CREATE SEQUENCE {s}.writes").await;
    database.run(&mut owner, "t", &trigger).await;
}

/// Lets every write of a record fail with this SQLSTATE, from the first one to the `last`.
async fn refuse(database: &Database, state: &str, last: u32) {
    each_write(database, last, &format!("RAISE EXCEPTION 'as it was told to' USING ERRCODE = '{state}'"))
        .await;
}

fn state_of(error: &StoreError) -> String {
    let cause = error.source().unwrap().downcast_ref::<sqlx::Error>().unwrap();
    cause.as_database_error().unwrap().code().unwrap().into_owned()
}

#[tokio::test]
async fn each_refusal_is_of_its_kind_and_what_was_refused_was_not_applied() {
    let Some(database) = Database::reach() else { return };
    let store = database.store_on("t").await;
    let lease = claim(&store, "held").await;
    for (state, kind) in [
        ("53100", StoreErrorKind::Full),
        ("53200", StoreErrorKind::Unavailable),
        ("53300", StoreErrorKind::Unavailable),
        ("57014", StoreErrorKind::Unavailable),
        ("57P03", StoreErrorKind::Unavailable),
        ("55P03", StoreErrorKind::Unavailable),
        ("58030", StoreErrorKind::Unavailable),
        ("25006", StoreErrorKind::Unavailable),
        ("XX001", StoreErrorKind::Corrupt),
        ("XX002", StoreErrorKind::Corrupt),
        ("42P01", StoreErrorKind::Schema),
        ("42703", StoreErrorKind::Schema),
        ("42883", StoreErrorKind::Schema),
        ("3F000", StoreErrorKind::Schema),
        ("54000", StoreErrorKind::TooLarge),
        ("42501", StoreErrorKind::Refused),
        ("23514", StoreErrorKind::Refused),
        ("P0001", StoreErrorKind::Refused),
    ] {
        refuse(&database, state, EVERY).await;
        let claimed = store.claim(&operation("k", b"body"), &bid()).await.map(drop);
        for failed in [claimed, store.renew(&lease, DAY).await.map(drop)] {
            let error = failed.unwrap_err();
            assert_eq!((error.kind, error.fate), (kind, Fate::NotApplied), "{state}");
            assert_eq!(state_of(&error), state, "the source is what the server said");
        }
    }
    database.run(&mut database.beside().await, "t", "DROP TRIGGER meddle ON {t}").await;
    claim(&store, "k").await;
    assert_eq!(store.renew(&lease, DAY).await.unwrap(), Settled::Applied);
}

/// A pooler that lost its server says such things, after the statement was on its way.
#[tokio::test]
async fn what_is_said_of_a_lost_connection_leaves_the_fate_unknown() {
    let Some(database) = Database::reach() else { return };
    let store = database.store_on("t").await;
    for state in ["08000", "08006", "08P01", "40003"] {
        refuse(&database, state, 1).await;
        let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::Unknown), "{state}");
    }
}

#[tokio::test]
async fn a_statement_that_lost_against_others_is_sent_again_and_not_for_ever() {
    let Some(database) = Database::reach() else { return };
    let store = database.store_on("t").await;
    for (number, state) in ["40001", "40P01"].into_iter().enumerate() {
        let before = store.repeats();
        refuse(&database, state, 3).await;
        let lease = claim(&store, &format!("k{number}")).await;
        assert_eq!(store.repeats() - before, 3, "{state}");
        refuse(&database, state, 3).await;
        assert_eq!(store.renew(&lease, DAY).await.unwrap(), Settled::Applied);
        assert_eq!(store.repeats() - before, 6, "{state}");

        refuse(&database, state, EVERY).await;
        let error = store.claim(&operation("refused", b"body"), &bid()).await.unwrap_err();
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{state}");
        assert_eq!(state_of(&error), state);
        assert_eq!(store.repeats() - before, 25, "a statement is sent twenty times at most");
    }
}

/// The server says that it goes away, and not whether it did what it was asked before.
#[tokio::test]
async fn a_connection_that_is_ended_by_an_operator_leaves_the_fate_unknown() {
    let Some(database) = Database::reach() else { return };
    let store = database.store_on("t").await;
    let lease = claim(&store, "k").await;
    let mut other = database.beside().await;
    database.run(&mut other, "t", "BEGIN; SELECT FROM {t} FOR UPDATE").await;
    let renewal = tokio::spawn({
        let store = store.clone();
        async move { store.renew(&lease, DAY).await }
    });
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE wait_event_type = 'Lock' AND query LIKE '%\"{s}\".%'";
    while database.number(&mut database.beside().await, "t", end).await == 0 {}
    let error = renewal.await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::Unknown));
    assert_eq!(state_of(&error), "57P01");
    database.run(&mut other, "t", "COMMIT").await;
    assert_eq!(store.renew(&lease, DAY).await.unwrap(), Settled::Applied);
}

/// A statement that wrote nothing where the law says that it would met something it could not see.
#[tokio::test]
async fn a_record_that_is_not_found_is_looked_for_again_and_never_taken_for_an_absent_one() {
    let Some(database) = Database::reach() else { return };
    let store = database.store_on("t").await;
    each_write(&database, 3, "RETURN NULL").await;
    let lease = claim(&store, "k").await;
    assert_eq!(store.repeats(), 3);
    each_write(&database, 3, "RETURN NULL").await;
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    assert_eq!(store.repeats(), 6);

    let lease = claim(&store, "another").await;
    each_write(&database, EVERY, "RETURN NULL").await;
    let claimed = store.claim(&operation("absent", b"body"), &bid()).await.map(drop);
    for failed in [claimed, store.renew(&lease, DAY).await.map(drop)] {
        let error = failed.unwrap_err();
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
    }
    assert_eq!(store.repeats(), 6 + 20 + 20);
}
