//! Servers that crash, and others that take their place.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use idempotency_core::{
    Bid, Claim, Fate, Inspect, Lease, Media, Operation, Outcome, Phase, Settled, Store, StoreError,
    StoreErrorKind,
};
use idempotency_services::{PostgresServer, Replication};
use idempotency_store_postgres::PostgresStore;
use scene::{DAY, bid, claim, granted, keep, operation, outcome};
use tokio::task::JoinSet;

const LONG: Duration = Duration::from_secs(30);

/// One run, and what its caller was told of it.
struct Told {
    op: Operation,
    bid: Bid,
    claimed: Result<Claim<Lease>, StoreError>,
    outcome: Outcome,
    completed: Option<Result<Settled, StoreError>>,
}

async fn live(store: &PostgresStore, key: &str) -> Told {
    let (op, bid) = (operation(key, b"body"), bid());
    let claimed = store.claim(&op, &bid).await;
    let outcome = Outcome::whole(Media(1), format!("the outcome of {key}"));
    let completed = match &claimed {
        Ok(Claim::Granted(lease)) => Some(store.complete(lease, &outcome, keep(DAY)).await),
        _ => None,
    };
    Told { op, bid, claimed, outcome, completed }
}

impl Told {
    /// Whether a call failed.
    fn failed(&self) -> bool {
        self.claimed.is_err() || matches!(self.completed, Some(Err(_)))
    }

    /// Compares what the caller was told with what is there.
    async fn judge(&self, store: &PostgresStore) {
        let found = store.find(self.op.address()).await.unwrap();
        let mine = found.filter(|record| record.holder == self.bid.holder);
        let outcome = mine.as_ref().and_then(|record| match &record.phase {
            Phase::Completed { outcome, .. } => Some(outcome.clone()),
            _ => None,
        });
        match &self.claimed {
            Ok(Claim::Granted(_)) => assert!(mine.is_some(), "a grant that was answered is gone"),
            Ok(refused) => panic!("nobody else claims this key: {refused:?}"),
            Err(error) => {
                assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error:?}");
                assert!(error.fate == Fate::Unknown || mine.is_none(), "it was granted after all: {error:?}");
            }
        }
        match &self.completed {
            Some(Ok(settled)) => {
                assert_eq!(*settled, Settled::Applied);
                assert_eq!(outcome.as_ref(), Some(&self.outcome), "an outcome that was acknowledged is gone");
            }
            Some(Err(error)) => {
                assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error:?}");
                assert!(
                    error.fate == Fate::Unknown || outcome.is_none(),
                    "it was stored after all: {error:?}"
                );
            }
            None => {}
        }
    }
}

/// Runs that go on until they are told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicUsize>,
    workers: JoinSet<Vec<Told>>,
}

impl Load {
    fn on(store: &PostgresStore) -> Self {
        let (stop, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut workers = JoinSet::new();
        for worker in 0..8 {
            let (store, stop, ended) = (store.clone(), Arc::clone(&stop), Arc::clone(&ended));
            workers.spawn(async move {
                let mut told = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let run = live(&store, &format!("{worker} {}", told.len())).await;
                    ended.fetch_add(usize::from(!run.failed()), Ordering::Relaxed);
                    told.push(run);
                }
                told
            });
        }
        Self { stop, ended, workers }
    }

    /// Waits until so many more runs ended well.
    async fn goes_on(&self, runs: usize) {
        let (begun, before) = (Instant::now(), self.ended.load(Ordering::Relaxed));
        while self.ended.load(Ordering::Relaxed) < before + runs {
            assert!(begun.elapsed() < LONG, "no run ends well");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn stop(self) -> Vec<Told> {
        self.stop.store(true, Ordering::Relaxed);
        self.workers.join_all().await.into_iter().flatten().collect()
    }
}

async fn open(server: &PostgresServer) -> PostgresStore {
    PostgresStore::builder()
        .patience(Duration::from_secs(5))
        .connections(4)
        .connect(&server.url())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_under_load_loses_nothing_that_was_answered() {
    let Some(mut server) = PostgresServer::start(&[]) else { return };
    let store = open(&server).await;
    let load = Load::on(&store);
    for _ in 0..3 {
        load.goes_on(50).await;
        server.kill();
        server.restart();
    }
    load.goes_on(50).await;
    let told = load.stop().await;
    let failed = told.iter().filter(|run| run.failed()).count();
    println!("{} runs, {failed} of them met the crash", told.len());
    assert!(failed > 0, "nobody met the crash");
    for run in &told {
        run.judge(&store).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_commits_wait_for_has_all_that_was_answered() {
    let Some(mut primary) = PostgresServer::start(&[]) else { return };
    let standby = primary.standby(Replication::Synchronous);
    let store = open(&primary).await;
    let load = Load::on(&store);
    load.goes_on(100).await;
    primary.kill();
    standby.promote();
    let told = load.stop().await;
    let store = open(&standby).await;
    for run in &told {
        run.judge(&store).await;
    }
    claim(&store, "and it goes on there").await;
}

/// Why commits should wait: what only the primary had is gone with it, and is done again.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_lags_behind_lets_an_operation_run_twice() {
    let Some(mut primary) = PostgresServer::start(&[]) else { return };
    let mut standby = primary.standby(Replication::Asynchronous);
    let store = open(&primary).await;
    let early = claim(&store, "early").await;
    let arrived = format!("SELECT pg_wal_lsn_diff('{}', pg_last_wal_replay_lsn()) <= 0", lsn(&primary));
    while standby.ask(&arrived) != "t" {}
    standby.kill();
    let late = claim(&store, "late").await;
    assert_eq!(store.complete(&late, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    primary.kill();
    standby.restart();
    standby.promote();

    let store = open(&standby).await;
    let verdict = store.claim(&operation("early", b"body"), &bid()).await.unwrap();
    assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
    assert_eq!(store.renew(&early, DAY).await.unwrap(), Settled::Applied);
    let again = granted(store.claim(&operation("late", b"body"), &bid()).await.unwrap());
    // A purge or a lost record lowers no fence: the clock is part of it.
    assert!(again.fence > late.fence);
    assert!(matches!(store.complete(&late, &outcome(), keep(DAY)).await.unwrap(), Settled::Fenced(Some(_))));
}

fn lsn(server: &PostgresServer) -> String {
    server.ask("SELECT pg_current_wal_insert_lsn()")
}

/// A standby answers and takes no writes. Whoever is connected to one connects again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_writes_is_unavailable_until_it_does() {
    let Some(primary) = PostgresServer::start(&[]) else { return };
    claim(&open(&primary).await, "k").await;
    let standby = primary.standby(Replication::Asynchronous);
    let store = open(&standby).await;
    let op = operation("new", b"body");
    let error = store.claim(&op, &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");
    let verdict = store.look(&operation("k", b"body")).await.unwrap();
    assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
    drop(primary);
    standby.promote();
    granted(store.claim(&op, &bid()).await.unwrap());
}
