//! A process that dies at each of the points where it could have promised something.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::json;
use sqlx::{Connection, SqliteConnection};

use crate::{
    caller::{Call, Page, Told},
    server::Setting,
};

const ORDER: Page = Page::Order { ms: 0 };

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

/// What a process that is killed from outside leaves is its store's to tell.
pub(crate) async fn a_run_that_was_killed_lapses_and_its_retry_runs(setting: Setting) {
    let setting = setting.with_config(json!({ "lease_ms": 4_000 }));
    let doomed = setting.start().await;
    setting.hold();
    let caller = doomed.caller.clone();
    let call = tokio::spawn(async move { caller.send(Call::to(Page::Held, "order")).await });
    doomed.placed(1).await;
    doomed.killed().await;
    assert_eq!(call.await.unwrap(), Told::Nothing);
    setting.let_go();
    let server = setting.start().await;
    assert!(
        server.told(Call::to(Page::Held, "order")).await.is_in_flight(),
        "the lease outlives its process"
    );
    let again = server.told_at_last(Call::to(Page::Held, "order")).await.ran();
    assert_eq!(server.told(Call::to(Page::Held, "order")).await.replayed().body, again.body);
    assert_eq!(server.orders().await, 2);
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
    let told = doomed.told(Call::to(ORDER, "order")).await;
    assert_eq!(told, Told::Nothing, "the process dies before it answers");
    assert!(!doomed.ended().await.success());
    let died = Instant::now();
    let server = setting.start_with(&flags).await;
    let told = server.told_at_last(Call::to(ORDER, "order")).await;
    let after = died.elapsed();
    let (retry, body) = read(told);
    // Decided once, decided for ever.
    for _ in 0..3 {
        let (later, its_body) = read(server.told(Call::to(ORDER, "order")).await);
        assert_eq!(later, if retry == Ran { Replayed } else { retry }, "{kill_at} {on_lapse}");
        assert!(retry == InDoubt || its_body == body, "{kill_at} {on_lapse}: two outcomes");
    }
    Seen { retry, orders: server.orders().await, outcomes: outcomes(&setting).await, after }
}

fn read(told: Told) -> (Retry, Bytes) {
    match told {
        Told::Ran(answer) => (Ran, answer.body),
        Told::Replayed(answer) => (Replayed, answer.body),
        Told::InDoubt => (InDoubt, Bytes::new()),
        other => panic!("after a death: {other:?}"),
    }
}

/// How many records of the store are completed.
pub(crate) async fn outcomes(setting: &Setting) -> i64 {
    let url = format!("sqlite:{}", setting.database().display());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    let count = "SELECT count(*) FROM idempotency_records WHERE phase = 2";
    sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap()
}
