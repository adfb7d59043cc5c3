//! What the server refuses: which kind of failure it is, whether it is tried again, and that it left nothing behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{Fate, Inspect, Keep, Lease, Settled, Store, StoreError, StoreErrorKind};
use idempotency_services::MariaDbServer;
use idempotency_store_mysql::MySqlStore;
use scene::{DAY, Database, bid, builder, claim, keep, operation, outcome, run};
use sqlx::{AssertSqlSafe, Executor, MySqlConnection, mysql::MySqlPoolOptions};

/// A store on one connection, whose updates are refused with the number in `@refusal` as often as `@refusals` says.
struct Refusing {
    store: MySqlStore,
    pool: sqlx::MySqlPool,
    lease: Lease,
}

impl Refusing {
    async fn open(database: &Database) -> Self {
        let table = database.table();
        let pool = MySqlPoolOptions::new().max_connections(1).connect(database.url()).await.unwrap();
        let store = builder().table(&table).open(pool.clone()).await.unwrap();
        let lease = claim(&store, "k").await;
        run(
            &mut database.beside().await,
            &table,
            "CREATE TRIGGER {t} BEFORE UPDATE ON {t} FOR EACH ROW
             IF @refusals > 0 THEN
                 SET @refusals = @refusals - 1;
                 IF @refusal = 1 THEN SIGNAL SQLSTATE '08S01' SET MYSQL_ERRNO = 20000; END IF;
                 SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = @refusal, MESSAGE_TEXT = 'deadlock, full, too long';
             END IF"
                .replace("CREATE TRIGGER {t}", &format!("CREATE TRIGGER `{table}_refuses`"))
                .as_str(),
        )
        .await;
        Self { store, pool, lease }
    }

    async fn refuse(&self, number: u16, times: u32) {
        let set = format!("SET @refusal = {number}, @refusals = {times}");
        self.pool.execute(sqlx::raw_sql(AssertSqlSafe(set))).await.unwrap();
    }

    async fn left(&self) -> i64 {
        let left = "SELECT CAST(@refusals AS SIGNED)";
        sqlx::query_scalar(left).fetch_one(&self.pool).await.unwrap()
    }
}

#[tokio::test]
async fn what_lost_to_others_is_sent_again_and_not_for_ever() {
    const DEADLOCK: u16 = 1213;
    const LOCK_WAIT_TIMEOUT: u16 = 1205;
    let Some(database) = Database::reach() else { return };
    let refusing = Refusing::open(&database).await;
    for number in [DEADLOCK, LOCK_WAIT_TIMEOUT] {
        let repeats = refusing.store.repeats();
        refusing.refuse(number, 3).await;
        assert_eq!(refusing.store.renew(&refusing.lease, DAY).await.unwrap(), Settled::Applied);
        assert_eq!((refusing.left().await, refusing.store.repeats() - repeats), (0, 3));

        refusing.refuse(number, 1_000).await;
        let error = refusing.store.renew(&refusing.lease, DAY).await.unwrap_err();
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");
        let sent = 1_000 - refusing.left().await;
        assert!((2..=20).contains(&sent), "it was sent {sent} times");
        refusing.refuse(number, 0).await;
    }
}

#[tokio::test]
async fn a_refusal_is_told_by_its_number_and_left_nothing_behind() {
    use StoreErrorKind::{Corrupt, Full, Refused, Schema, TooLarge, Unavailable};
    let Some(database) = Database::reach() else { return };
    let refusing = Refusing::open(&database).await;
    let before = refusing.store.find(&refusing.lease.address).await.unwrap();
    for (number, kind, fate) in [
        (1, Unavailable, Fate::NotApplied), // a number nobody knows, of the class of broken connections
        (1020, Unavailable, Fate::NotApplied),
        (1021, Full, Fate::NotApplied),
        (1037, Unavailable, Fate::NotApplied),
        (1040, Unavailable, Fate::NotApplied),
        (1047, Unavailable, Fate::NotApplied),
        (1053, Unavailable, Fate::Unknown),
        (1054, Schema, Fate::NotApplied),
        (1114, Full, Fate::NotApplied),
        (1142, Refused, Fate::NotApplied),
        (1146, Schema, Fate::NotApplied),
        (1153, TooLarge, Fate::NotApplied),
        (1180, Unavailable, Fate::Unknown),
        (1205, Unavailable, Fate::NotApplied),
        (1243, Unavailable, Fate::NotApplied),
        (1213, Unavailable, Fate::NotApplied),
        (1290, Unavailable, Fate::NotApplied),
        (1317, Unavailable, Fate::NotApplied),
        (1406, TooLarge, Fate::NotApplied),
        (1644, Refused, Fate::NotApplied),
        (1792, Unavailable, Fate::NotApplied),
        (1927, Unavailable, Fate::Unknown),
        (1969, Unavailable, Fate::NotApplied),
        (2006, Unavailable, Fate::Unknown), // no server's, but a proxy's that lost its server
        (2013, Unavailable, Fate::Unknown),
        (4025, Corrupt, Fate::NotApplied),
    ] {
        refusing.refuse(number, 1_000).await;
        let error: StoreError = refusing.store.renew(&refusing.lease, 2 * DAY).await.unwrap_err();
        assert_eq!((error.kind, error.fate), (kind, fate), "{number}: {error:?}");
        refusing.refuse(number, 0).await;
    }
    assert_eq!(refusing.store.find(&refusing.lease.address).await.unwrap(), before);
    assert_eq!(refusing.store.renew(&refusing.lease, 2 * DAY).await.unwrap(), Settled::Applied);
}

#[tokio::test]
async fn a_connection_whose_server_takes_no_writes_any_more_is_given_up() {
    const READ_ONLY: u16 = 1290;
    let Some(database) = Database::reach() else { return };
    let refusing = Refusing::open(&database).await;
    let id = "SELECT CAST(CONNECTION_ID() AS SIGNED)";
    let first: i64 = sqlx::query_scalar(id).fetch_one(&refusing.pool).await.unwrap();
    refusing.refuse(READ_ONLY, 1_000).await;
    let error = refusing.store.renew(&refusing.lease, DAY).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    let second: i64 = sqlx::query_scalar(id).fetch_one(&refusing.pool).await.unwrap();
    assert_ne!(first, second, "another connection may reach the server that took its place");
}

/// MySQL's way to send a claim is two statements, and the second may be refused where the first was not.
#[tokio::test]
async fn a_claim_whose_record_may_not_be_read_may_have_been_granted() {
    let Some(server) = MariaDbServer::start(&[]) else { return };
    MySqlStore::connect(&server.url()).await.unwrap();
    let columns = "phase, holder, fence, attempt, on_lapse, retention, fingerprint, until, gone, form, media,
                   outcome, readable, removable_at";
    server.ask(&format!(
        "CREATE USER blind; GRANT SELECT ON idempotency_schema TO blind;
         GRANT SELECT ({columns}), INSERT, UPDATE ON idempotency_records TO blind"
    ));
    let url = format!("mysql://blind@{}/{}", server.address(), server.ask("SELECT DATABASE()"));
    let store = builder().existing_only().without_returning().connect(&url).await.unwrap();
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Refused, Fate::Unknown), "{error:?}");
    assert_eq!(server.ask("SELECT COUNT(*) FROM idempotency_records"), "1");
}

/// Kills the update that waits. It is killed until it ends: a server may miss it that is about to let a statement wait.
async fn kill_waiting(connection: &mut MySqlConnection, table: &str, what: &str) {
    let waiting =
        format!("SELECT id FROM information_schema.processlist WHERE info LIKE 'UPDATE `{table}`%'");
    let mut killed = false;
    loop {
        let found: Option<i64> = sqlx::query_scalar(AssertSqlSafe(waiting.clone()))
            .fetch_optional(&mut *connection)
            .await
            .unwrap();
        match found {
            Some(id) => {
                let kill = format!("KILL {what} {id}");
                killed |= connection.execute(sqlx::raw_sql(AssertSqlSafe(kill))).await.is_ok(); // unless it just ended
            }
            None if killed => return,
            None => {}
        }
        tokio::time::sleep(Duration::from_millis(10)).await; // nothing tells that a statement has begun
    }
}

#[tokio::test]
async fn a_statement_that_is_killed_says_what_it_knows() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let store = builder().table(&table).connect(database.url()).await.unwrap();
    let lease = claim(&store, "k").await;
    let mut other = database.beside().await;
    for (what, fate) in [("QUERY", Fate::NotApplied), ("CONNECTION", Fate::Unknown)] {
        run(&mut other, &table, "BEGIN; SELECT * FROM {t} FOR UPDATE").await;
        let renewal = tokio::spawn({
            let store = store.clone();
            async move { store.renew(&lease, DAY).await }
        });
        kill_waiting(&mut other, &table, what).await;
        let error = renewal.await.unwrap().unwrap_err();
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, fate), "{what}: {error:?}");
        run(&mut other, &table, "COMMIT").await;
        assert_eq!(store.renew(&lease, DAY).await.unwrap(), Settled::Applied);
    }
}

#[tokio::test]
async fn a_record_that_stays_locked_is_given_up_before_an_engine_would() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let store = MySqlStore::builder().table(&table).connect(database.url()).await.unwrap();
    let lease = claim(&store, "k").await;
    let mut other = database.beside().await;
    run(&mut other, &table, "BEGIN; SELECT * FROM {t} FOR UPDATE").await;
    let begun = std::time::Instant::now();
    let (done, op, bid) = (outcome(), operation("k", b"body"), bid());
    let (claim, complete) = tokio::join!(store.claim(&op, &bid), store.complete(&lease, &done, keep(DAY)));
    for error in [claim.unwrap_err(), complete.unwrap_err()] {
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    run(&mut other, &table, "COMMIT").await;
    let keep = Keep { replay: DAY, then_reject: DAY };
    assert_eq!(store.complete(&lease, &done, keep).await.unwrap(), Settled::Applied);
}
