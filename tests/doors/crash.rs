//! A process that dies at each of the points where it could have promised something.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http::StatusCode;
use serde_json::json;
use sqlx::{Connection, SqliteConnection};

use crate::{
    client::{Answer, post},
    server::{Setting, until},
};

const LEASE: Duration = Duration::from_millis(1500);

/// What a busy machine may add.
const SLACK: Duration = Duration::from_secs(3);

/// How the retry of a killed run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    Ran,
    Replayed,
    InDoubt,
}

use Retry::{InDoubt, Ran, Replayed};

/// Where the process dies, what a lapse means, how the retry ends, how many orders there are then.
const ROWS: [(&str, &str, Retry, u64); 10] = [
    ("claim:before", "take-over", Ran, 1),
    ("claim:after", "take-over", Ran, 1),
    ("handler", "take-over", Ran, 2),
    ("complete:before", "take-over", Ran, 2),
    ("complete:after", "take-over", Replayed, 1),
    ("claim:before", "hold", Ran, 1),
    ("claim:after", "hold", InDoubt, 0),
    ("handler", "hold", InDoubt, 1),
    ("complete:before", "hold", InDoubt, 1),
    ("complete:after", "hold", Replayed, 1),
];

pub(crate) async fn a_killed_process_leaves_at_most_one_outcome(setting: Setting) {
    let rows = ROWS.map(|(kill_at, on_lapse, retry, orders)| {
        let setting = setting.afresh().with_config(json!({ "lease_ms": LEASE.as_millis() }));
        async move {
            let seen = killed(setting, kill_at, on_lapse).await;
            (kill_at, on_lapse, retry, orders, seen)
        }
    });
    let rows = join_all(rows).await;
    println!("door: {}, store: sqlite, lease: {} ms", setting.framework(), LEASE.as_millis());
    println!(
        "{:16} {:10} {:8} {:>6} {:>9} {:>10}",
        "killed at", "on lapse", "retry", "orders", "outcomes", "after"
    );
    for (kill_at, on_lapse, _, _, seen) in &rows {
        let Seen { retry, orders, outcomes, after } = seen;
        let retry = format!("{retry:?}");
        println!(
            "{kill_at:16} {on_lapse:10} {retry:8} {orders:>6} {outcomes:>9} {:>7} ms",
            after.as_millis()
        );
    }
    for (kill_at, on_lapse, retry, orders, seen) in rows {
        let outcomes = i64::from(retry != InDoubt);
        assert_eq!(
            (seen.retry, seen.orders, seen.outcomes),
            (retry, orders, outcomes),
            "{kill_at} {on_lapse}"
        );
        assert!(seen.after < LEASE + SLACK, "{kill_at} {on_lapse}: decided after {:?}", seen.after);
    }
}

struct Seen {
    retry: Retry,
    orders: u64,
    outcomes: i64,
    /// From the death of the process to an answer that is no conflict.
    after: Duration,
}

async fn killed(setting: Setting, kill_at: &str, on_lapse: &str) -> Seen {
    let flags = ["--on-lapse", on_lapse];
    let doomed = setting.start_with(&["--on-lapse", on_lapse, "--kill-at", kill_at]).await;
    doomed.client.send(post("/orders", "order")).await.expect_err("the process dies before it answers");
    assert!(!doomed.ended().await.success());
    let died = Instant::now();
    let server = setting.start_with(&flags).await;
    let again = async || server.client.send(post("/orders", "order")).await.unwrap();
    let answer = until("the lease is over", async || {
        let answer = again().await;
        (answer.code() != "conflict").then_some(answer)
    })
    .await;
    let after = died.elapsed();
    let retry = read(&answer);
    // Decided once, decided for ever.
    for _ in 0..3 {
        let later = again().await;
        assert_eq!(read(&later), if retry == Ran { Replayed } else { retry }, "{kill_at} {on_lapse}");
        assert!(retry == InDoubt || later.body == answer.body, "{kill_at} {on_lapse}: two outcomes");
    }
    Seen { retry, orders: server.orders().await, outcomes: outcomes(&setting).await, after }
}

fn read(answer: &Answer) -> Retry {
    match (answer.status, answer.is_replay()) {
        (StatusCode::CREATED, false) => Ran,
        (StatusCode::CREATED, true) => Replayed,
        _ => {
            assert_eq!((answer.status, &*answer.code()), (StatusCode::CONFLICT, "outcome-unknown"));
            InDoubt
        }
    }
}

/// How many records of the store are completed.
pub(crate) async fn outcomes(setting: &Setting) -> i64 {
    let url = format!("sqlite:{}", setting.database().display());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    let count = "SELECT count(*) FROM idempotency_records WHERE phase = 2";
    sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap()
}
