//! The time a transition is decided at: the server's, read after any wait for a lock, in no time zone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{env, process::Command, time::Duration};

use idempotency_core::{
    Bid, Claim, Inspect, Keep, Phase, Record, Release, Settled, Store,
    clock::{Clock, SystemClock, Timestamp},
};
use idempotency_services::MariaDbServer;
use idempotency_store_contract::processes::block_on;
use idempotency_store_mysql::MySqlStore;
use scene::{DAY, Database, bid, builder, claim, granted, operation, outcome, run};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, Row, mysql::MySqlPoolOptions};
use tokio::task::JoinHandle;

const LEASE: Duration = Duration::from_millis(300);

/// How long a row is held locked: long enough for the lease to lapse meanwhile.
const LOCKED: Duration = Duration::from_millis(700);

/// 2026-10-25 01:00:00 and 2026-03-29 01:00:00 in UTC, when the clocks of Berlin are changed.
const AUTUMN: u64 = 1_792_890_000_000_000;
const SPRING: u64 = 1_774_746_000_000_000;

/// How far the clocks of this host and the server may be apart where they are one.
const SLACK: Duration = Duration::from_millis(500);

fn now() -> Timestamp {
    SystemClock.now()
}

fn until(record: &Record) -> Timestamp {
    match record.phase {
        Phase::InFlight { until, .. } | Phase::Completed { until, .. } | Phase::Released { until } => until,
        Phase::InDoubt { .. } => panic!("{record:?}"),
    }
}

/// Waits until `count` statements wait for a lock that somebody holds on `table`.
async fn waits(connection: &mut MySqlConnection, table: &str, count: i64) {
    let waiting = format!(
        "SELECT COUNT(*) FROM information_schema.innodb_trx
         WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%{table}%'"
    );
    let begun = std::time::Instant::now();
    loop {
        let seen: i64 =
            sqlx::query_scalar(AssertSqlSafe(waiting.clone())).fetch_one(&mut *connection).await.unwrap();
        if seen >= count {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing waits for the lock");
        // Nothing tells of a lock that is waited for, and what is asked more often than ten times a second answers as before.
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

/// Both ways of sending a claim, patient enough for a lock that is held long.
async fn stores(database: &Database) -> [(MySqlStore, String); 2] {
    let (one, other) = (database.table(), database.table());
    let on = |table: &str| builder().table(table);
    [
        (on(&one).connect(database.url()).await.unwrap(), one),
        (on(&other).without_returning().connect(database.url()).await.unwrap(), other),
    ]
}

fn spawn<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(call)
}

#[tokio::test]
async fn a_claim_that_waited_for_the_record_takes_over_what_lapsed_meanwhile() {
    let Some(database) = Database::reach() else { return };
    for (store, table) in stores(&database).await {
        let op = operation("k", b"body");
        granted(store.claim(&op, &Bid { lease: LEASE, ..bid() }).await.unwrap());
        let mut other = database.beside().await;
        run(&mut other, &table, "BEGIN; SELECT * FROM {t} FOR UPDATE").await;
        let claim = spawn({
            let (store, op) = (store.clone(), op.clone());
            async move { store.claim(&op, &Bid { lease: LEASE, ..bid() }).await }
        });
        waits(&mut database.beside().await, &table, 1).await;
        tokio::time::sleep(LOCKED).await;
        let freed = now();
        run(&mut other, &table, "COMMIT").await;
        let lease = granted(claim.await.unwrap().unwrap());
        assert!(lease.is_takeover(), "{lease:?}");
        let record = store.find(op.address()).await.unwrap().unwrap();
        assert!(until(&record).plus(SLACK) >= freed.plus(LEASE), "the time is from before the wait");
        assert!(Timestamp::from_micros(lease.fence.as_u64()).plus(SLACK) >= freed, "so is the fence");
    }
}

#[tokio::test]
async fn a_claim_that_waited_for_an_insert_to_be_undone_has_its_whole_lease() {
    const LONG: Duration = Duration::from_secs(2);
    let Some(database) = Database::reach() else { return };
    for (store, table) in stores(&database).await {
        let op = operation("k", b"body");
        let lease = granted(store.claim(&op, &bid()).await.unwrap());
        let mut other = database.beside().await;
        run(&mut other, &table, "CREATE TEMPORARY TABLE copy AS SELECT * FROM {t}; DELETE FROM {t}").await;
        let columns = "address, phase, holder, fence, attempt, on_lapse, retention, fingerprint, until";
        let insert = format!("BEGIN; INSERT INTO {{t}} ({columns}) SELECT {columns} FROM copy");
        run(&mut other, &table, &insert).await;
        let claim = spawn({
            let (store, op) = (store.clone(), op.clone());
            async move { store.claim(&op, &Bid { lease: LONG, ..bid() }).await }
        });
        waits(&mut database.beside().await, &table, 1).await;
        tokio::time::sleep(LOCKED).await;
        let freed = now();
        run(&mut other, &table, "ROLLBACK; DROP TEMPORARY TABLE copy").await;
        let second = granted(claim.await.unwrap().unwrap());
        assert_eq!(store.repeats(), 1);
        assert_ne!(second.holder, lease.holder);
        let record = store.find(op.address()).await.unwrap().unwrap();
        assert!(until(&record).plus(SLACK / 2) >= freed.plus(LONG), "the lease began before the wait");
    }
}

#[tokio::test]
async fn endings_and_renewals_that_waited_count_from_after_the_wait() {
    let Some(database) = Database::reach() else { return };
    let [(store, table), _] = stores(&database).await;
    let (renewed, completed, released) =
        (claim(&store, "renewed").await, claim(&store, "completed").await, claim(&store, "released").await);
    let mut other = database.beside().await;
    run(&mut other, &table, "BEGIN; SELECT * FROM {t} FOR UPDATE").await;
    let endings = [
        spawn({
            let store = store.clone();
            async move { store.renew(&renewed, 2 * DAY).await }
        }),
        spawn({
            let store = store.clone();
            let keep = Keep { replay: 2 * DAY, then_reject: DAY };
            async move { store.complete(&completed, &outcome(), keep).await }
        }),
        spawn({
            let store = store.clone();
            async move { store.release(&released, Release::NotApplied).await }
        }),
    ];
    waits(&mut database.beside().await, &table, 3).await;
    tokio::time::sleep(LOCKED).await;
    let freed = now();
    run(&mut other, &table, "COMMIT").await;
    for ending in endings {
        assert_eq!(ending.await.unwrap().unwrap(), Settled::Applied);
    }
    for (lease, term) in [(renewed, 2 * DAY), (completed, 2 * DAY), (released, DAY)] {
        let record = store.find(&lease.address).await.unwrap().unwrap();
        assert!(until(&record).plus(SLACK) >= freed.plus(term), "{record:?}");
        if let Phase::Completed { until, gone, .. } = record.phase {
            assert_eq!(gone, until.plus(DAY), "both are of one reading of the clock");
        }
    }
}

#[tokio::test]
async fn a_fence_rises_though_the_clock_was_set_back() {
    const LAST: u64 = 9_000_000_000_000_000;
    let Some(database) = Database::reach() else { return };
    for (store, table) in stores(&database).await {
        let (released, lapsed) = (claim(&store, "released").await, claim(&store, "lapsed").await);
        let _ = store.release(&released, Release::NotApplied).await.unwrap();
        let ahead = format!("UPDATE {{t}} SET fence = {LAST}, until = (UNIX_TIMESTAMP() - 60) * 1000000");
        run(&mut database.beside().await, &table, &ahead).await;
        for (key, before, attempt) in [("released", released, 1), ("lapsed", lapsed, 2)] {
            let lease = claim(&store, key).await;
            assert_eq!((lease.fence.as_u64(), lease.attempt), (LAST + 1, attempt), "{before:?}");
        }
    }
}

#[tokio::test]
async fn the_time_zone_of_a_connection_changes_nothing() {
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let mut stores = Vec::new();
    for zone in ["SET time_zone = '+00:00'", "SET time_zone = '-11:59'", "SET time_zone = '+05:45'"] {
        let pool = database.pool(zone).await;
        stores.push(builder().table(&table).open(pool).await.unwrap());
    }
    for (number, store) in stores.iter().enumerate() {
        let key = format!("k{number}");
        let before = now();
        let lease = claim(store, &key).await;
        let claimed = Timestamp::from_micros(lease.fence.as_u64());
        assert!(claimed.plus(SLACK) >= before && claimed <= now().plus(SLACK), "{claimed:?} {before:?}");
        for other in &stores {
            let verdict = other.claim(&operation(&key, b"body"), &bid()).await.unwrap();
            let Claim::InFlight { left } = verdict else { panic!("{verdict:?}") };
            assert!(left <= DAY && left + SLACK >= DAY, "{left:?}");
        }
    }
}

/// What `sql/now.sql` says when a statement that began at `began` in UTC and at `here` on the wall is at `at` on it.
async fn worked_out(connection: &mut MySqlConnection, began: &str, here: &str, at: &str) -> Timestamp {
    let now = include_str!("../sql/now.sql");
    let now: String = now.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join(" ");
    let now = now
        .replace("UTC_TIMESTAMP(6)", &format!("TIMESTAMP'{began}'"))
        .replace("SYSDATE(6)", &format!("TIMESTAMP'{at}'"))
        .replace("NOW(6)", &format!("TIMESTAMP'{here}'"));
    assert!(!now.contains("(6)"), "{now}");
    let micros: i64 =
        sqlx::query_scalar(AssertSqlSafe(format!("SELECT {now}"))).fetch_one(connection).await.unwrap();
    Timestamp::from_micros(micros.try_into().unwrap())
}

#[tokio::test]
async fn a_statement_that_runs_while_the_clocks_are_changed_knows_the_time() {
    let Some(database) = Database::reach() else { return };
    let mut connection = database.beside().await;
    for (began, here, at, micros) in [
        ("2026-10-25 00:59:59.9", "2026-10-25 02:59:59.9", "2026-10-25 02:00:00.1", AUTUMN + 100_000),
        ("2026-10-25 00:59:59.9", "2026-10-25 02:59:59.9", "2026-10-25 02:59:59.95", AUTUMN - 50_000),
        ("2026-10-25 01:00:00", "2026-10-25 02:00:00", "2026-10-25 02:00:50", AUTUMN + 50_000_000),
        ("2026-03-29 00:59:59.9", "2026-03-29 01:59:59.9", "2026-03-29 03:00:00.1", SPRING + 100_000),
        ("2026-03-29 00:59:59.9", "2026-03-29 01:59:59.9", "2026-03-29 03:04:59.9", SPRING + 299_900_000),
        // A host clock that is set back a little, and Lord Howe Island, where half an hour is enough.
        ("2026-10-25 01:00:00", "2026-10-25 02:00:00", "2026-10-25 01:59:59.9", AUTUMN - 100_000),
        ("2026-10-25 01:00:00", "2026-10-25 12:00:00", "2026-10-25 12:30:01", AUTUMN + 1_000_000),
        ("2026-10-25 01:00:00", "2026-10-25 12:00:00", "2026-10-25 11:30:01", AUTUMN + 1_000_000),
        // Samoa left out a whole day.
        ("2026-10-25 01:00:00", "2026-10-25 01:00:00", "2026-10-26 01:00:01", AUTUMN + 1_000_000),
    ] {
        let seen = worked_out(&mut connection, began, here, at).await;
        assert_eq!(seen, Timestamp::from_micros(micros), "{began} {here} {at}");
    }
}

/// The server's time in microseconds, and how many hours its wall clock is ahead.
async fn clock_of(connection: &mut MySqlConnection) -> (Timestamp, i64) {
    let query = "SELECT TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6)),
                        CAST(ROUND(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW()) / 3600) AS SIGNED)";
    let row = connection.fetch_one(query).await.unwrap();
    let (micros, ahead): (i64, i64) = (row.get(0), row.get(1));
    (Timestamp::from_micros(micros.try_into().unwrap()), ahead)
}

const FAST: &str = "IDEMPOTENCY_MYSQL_TEST_FAST";

/// The test itself, in a process whose clock, which its server inherits, runs fast and was put to shortly before the end
/// of Berlin's summer time.
#[test]
fn a_renewal_that_waits_through_the_end_of_summer_time_is_an_hour_neither_early_nor_late() {
    if env::var_os(FAST).is_some() {
        return block_on(wait_through_the_end_of_summer_time());
    }
    let ahead = i128::from(AUTUMN / 1_000_000) - 100 - i128::from(now().as_micros() / 1_000_000);
    let test = "a_renewal_that_waits_through_the_end_of_summer_time_is_an_hour_neither_early_nor_late";
    let run = Command::new("faketime")
        .args(["-m", "--exclude-monotonic", "-f", &format!("{ahead:+}s x10")])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs([("TZ", "Europe/Berlin"), (FAST, "yes")])
        .status();
    match run {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            assert!(
                env::var_os("IDEMPOTENCY_REQUIRE_STORES").is_none(),
                "faketime is not installed: {error}"
            );
            eprintln!("NOT RUN: faketime is not installed");
        }
    }
}

async fn wait_through_the_end_of_summer_time() {
    let Some(server) = MariaDbServer::start(&["--innodb-lock-wait-timeout=1000"]) else { return };
    let set = "SET time_zone = 'SYSTEM'";
    let pool = MySqlPoolOptions::new()
        .after_connect(move |connection, _| Box::pin(async move { connection.execute(set).await.map(drop) }))
        .connect(&server.url())
        .await
        .unwrap();
    let store = builder().open(pool).await.unwrap();
    let mut other = MySqlConnection::connect(&server.url()).await.unwrap();
    let mut clock = MySqlConnection::connect(&server.url()).await.unwrap();
    clock.execute(set).await.unwrap();
    let held = claim(&store, "held").await;
    let begun = clock_of(&mut clock).await;
    assert_eq!(begun.1, 2, "the server was too slow: summer time has ended already");
    assert!(
        held.fence.as_u64() <= begun.0.as_micros(),
        "the hour that comes twice was taken for its second time"
    );

    other.execute("BEGIN; SELECT * FROM idempotency_records FOR UPDATE").await.unwrap();
    let renewal = spawn({
        let store = store.clone();
        async move { store.renew(&held, 2 * DAY).await }
    });
    waits(&mut clock, "idempotency_records", 1).await;
    let changed = loop {
        match clock_of(&mut clock).await {
            (_, 2) => tokio::time::sleep(Duration::from_millis(50)).await, // nothing tells when an hour begins
            (changed, ahead) => break (changed, ahead),
        }
    };
    assert_eq!(changed.1, 1);
    other.execute("COMMIT").await.unwrap();
    assert_eq!(renewal.await.unwrap().unwrap(), Settled::Applied);
    let record = store.find(&held.address).await.unwrap().unwrap();
    let (after, _) = clock_of(&mut clock).await;
    assert!(
        (changed.0.plus(2 * DAY)..=after.plus(2 * DAY)).contains(&until(&record)),
        "{record:?} {changed:?}"
    );

    // In the hour that comes twice, too, a lease is as long as it is.
    let Claim::InFlight { left } = store.claim(&operation("held", b"body"), &bid()).await.unwrap() else {
        panic!("it is held")
    };
    assert!(left <= 2 * DAY && left + Duration::from_secs(600) >= 2 * DAY, "{left:?}");
}
