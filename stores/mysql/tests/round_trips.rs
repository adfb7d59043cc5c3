//! What a call costs: counted by the server, and by a proxy on the way to it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{collections::BTreeMap, time::Duration};

use idempotency_core::{Bid, Claim, Fence, Inspect, Keep, OnLapse, Release, Resolution, Settled, Store};
use idempotency_services::Server;
use idempotency_store_contract::wire::{Fault, Proxy};
use idempotency_store_mysql::MySqlStore;
use scene::{DAY, Database, bid, builder, claim, granted, keep, operation, outcome};
use sqlx::{Executor, MySqlPool, Row, mysql::MySqlPoolOptions};

/// One connection, so that what the server counts for it is what the store did.
struct Meter {
    pool: MySqlPool,
    store: MySqlStore,
}

/// What the server counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Count {
    questions: i64,
    updated: i64,
    deleted: i64,
    kinds: BTreeMap<String, i64>,
}

impl Meter {
    async fn new(database: &Database) -> Self {
        let pool = MySqlPoolOptions::new().max_connections(1).connect(database.url()).await.unwrap();
        let store = builder().table(database.table()).open(pool.clone()).await.unwrap();
        Self { pool, store }
    }

    async fn read(&self) -> Count {
        let names =
            "'Questions', 'Handler_update', 'Handler_delete', 'Com_insert', 'Com_update', 'Com_delete', 'Com_delete_multi',
                     'Com_select', 'Com_begin', 'Com_commit', 'Com_rollback', 'Com_set_option'";
        let query = format!("SHOW SESSION STATUS WHERE Variable_name IN ({names})");
        let rows = self.pool.fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(query))).await.unwrap();
        let mut kinds: BTreeMap<String, i64> = rows
            .iter()
            .map(|row| (row.get::<String, _>(0).to_lowercase(), row.get::<String, _>(1).parse().unwrap()))
            .collect();
        let mut take = |name: &str| kinds.remove(name).unwrap();
        let (questions, updated, deleted) =
            (take("questions"), take("handler_update"), take("handler_delete"));
        Count { questions, updated, deleted, kinds }
    }

    /// What `call` cost: how many statements, how many records it changed in place, and how many it removed.
    async fn cost<T>(&self, call: impl Future<Output = T>) -> (T, (i64, i64, i64)) {
        let before = self.read().await;
        let answer = call.await;
        let after = self.read().await;
        let kinds: i64 = after.kinds.iter().map(|(name, count)| count - before.kinds[name]).sum();
        let statements = after.questions - before.questions - 1; // the second reading
        assert_eq!(kinds, statements, "statements of a kind nobody expects: {before:?} {after:?}");
        (answer, (statements, after.updated - before.updated, after.deleted - before.deleted))
    }
}

const ONE_WRITE: (i64, i64, i64) = (1, 1, 0);
/// A refusal, a replay or a look; and a first grant, which inserts.
const NO_UPDATE: (i64, i64, i64) = (1, 0, 0);

#[tokio::test]
async fn every_claim_is_one_statement_and_only_a_grant_writes() {
    let Some(database) = Database::reach() else { return };
    let meter = Meter::new(&database).await;
    let store = &meter.store;
    let (op, other_payload) = (operation("k", b"body"), operation("k", b"other"));
    claim(store, "prepared").await; // each statement is prepared once on a connection

    let (lease, cost) = meter.cost(store.claim(&op, &bid())).await;
    let lease = granted(lease.unwrap());
    assert_eq!(cost, NO_UPDATE);
    let adopted = Bid { holder: lease.holder, ..bid() };
    let (verdict, cost) = meter.cost(store.claim(&op, &adopted)).await;
    assert_eq!((granted(verdict.unwrap()), cost), (lease, ONE_WRITE));

    let refused = |verdict: Claim<_>| verdict.name();
    let (verdict, cost) = meter.cost(store.claim(&op, &bid())).await;
    assert_eq!((refused(verdict.unwrap()), cost), ("in_flight", NO_UPDATE));
    let (verdict, cost) = meter.cost(store.claim(&other_payload, &bid())).await;
    assert_eq!((refused(verdict.unwrap()), cost), ("mismatch", NO_UPDATE));
    let _ = store.complete(&lease, &outcome(), Keep { replay: DAY, then_reject: DAY }).await.unwrap();
    let (verdict, cost) = meter.cost(store.claim(&op, &bid())).await;
    assert_eq!((verdict.unwrap(), cost), (Claim::Completed(outcome()), NO_UPDATE));
    let (verdict, cost) = meter.cost(store.look(&op)).await;
    assert_eq!((verdict.unwrap().name(), cost), ("completed", NO_UPDATE));

    let lease = claim(store, "doubt").await;
    let _ = store.release(&lease, Release::Unknown).await.unwrap();
    let (verdict, cost) = meter.cost(store.claim(&operation("doubt", b"body"), &bid())).await;
    assert_eq!((refused(verdict.unwrap()), cost), ("in_doubt", NO_UPDATE));

    let lapsing = Bid { lease: Duration::ZERO, on_lapse: OnLapse::TakeOver, ..bid() };
    let op = operation("lapsed", b"body");
    granted(store.claim(&op, &lapsing).await.unwrap());
    let (verdict, cost) = meter.cost(store.claim(&op, &bid())).await;
    assert_eq!((granted(verdict.unwrap()).attempt, cost), (2, ONE_WRITE));

    let released = claim(store, "released").await;
    let _ = store.release(&released, Release::NotApplied).await.unwrap();
    let copy = Bid { holder: released.holder, ..bid() };
    let (verdict, cost) = meter.cost(store.claim(&operation("released", b"body"), &copy)).await;
    assert_eq!((refused(verdict.unwrap()), cost), ("ended", NO_UPDATE));

    let over = claim(store, "over").await;
    let keep = Keep { replay: Duration::ZERO, then_reject: DAY };
    let _ = store.complete(&over, &outcome(), keep).await.unwrap();
    let (verdict, cost) = meter.cost(store.claim(&operation("over", b"body"), &bid())).await;
    assert_eq!((refused(verdict.unwrap()), cost), ("expired", NO_UPDATE));
}

#[tokio::test]
async fn every_ending_is_one_statement_and_one_more_says_why_it_did_not_count() {
    let Some(database) = Database::reach() else { return };
    let meter = Meter::new(&database).await;
    let store = &meter.store;
    for prepared in ["prepared", ""] {
        // The first round prepares the statements.
        let first = !prepared.is_empty();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|key| format!("{key}{prepared}"));
        let (a, b, c, d) =
            (claim(store, &a).await, claim(store, &b).await, claim(store, &c).await, claim(store, &d).await);
        let unknown = Fence::from_u64(1);
        let applied = Resolution::Applied(outcome(), keep(DAY));
        let costs = [
            ("renew", ONE_WRITE, meter.cost(store.renew(&a, 2 * DAY)).await),
            ("complete", ONE_WRITE, meter.cost(store.complete(&a, &outcome(), keep(DAY))).await),
            ("release", ONE_WRITE, meter.cost(store.release(&b, Release::NotApplied)).await),
            ("doubt", ONE_WRITE, meter.cost(store.release(&c, Release::Unknown)).await),
            ("resolve", ONE_WRITE, meter.cost(store.resolve(&c.address, c.fence, &applied)).await),
            ("complete again", (2, 0, 0), meter.cost(store.complete(&a, &outcome(), keep(DAY))).await),
            ("release again", (2, 0, 0), meter.cost(store.release(&b, Release::NotApplied)).await),
            ("renew what ended", (2, 0, 0), meter.cost(store.renew(&b, DAY)).await),
            (
                "resolve what is not in doubt",
                (2, 0, 0),
                meter.cost(store.resolve(&d.address, unknown, &applied)).await,
            ),
        ];
        for (call, wanted, (settled, cost)) in costs {
            let counts = !call.contains("what");
            assert_eq!(settled.unwrap() == Settled::Applied, counts, "{call}");
            assert!(first || cost == wanted, "{call}: {cost:?}");
        }
    }
}

#[tokio::test]
async fn a_purge_is_a_look_and_a_removal_a_batch() {
    let Some(database) = Database::reach() else { return };
    let meter = Meter::new(&database).await;
    for keys in [["a", "b", "c"], ["d", "e", "f"]] {
        for key in keys {
            let lease = claim(&meter.store, key).await;
            let _ = meter.store.complete(&lease, &outcome(), keep(Duration::ZERO)).await.unwrap();
        }
        let (removed, cost) = meter.cost(meter.store.purge(10)).await;
        assert_eq!(removed.unwrap(), 3);
        if keys[0] == "d" {
            assert_eq!(cost, (3, 0, 3), "one finds, two remove");
        }
    }
}

/// A refused claim is one round trip in both ways of sending it. The pool adds another when a connection comes back, for
/// which nobody waits.
#[tokio::test]
async fn a_claim_goes_to_the_server_and_back_once() {
    const CLAIMS: usize = 20;
    let Some(database) = Database::reach() else { return };
    let proxy = Proxy::before(&Server::MySql.address().unwrap()).await.unwrap();
    let url = Server::MySql.url_at(&proxy.address().to_string()).unwrap();
    for (way, statements) in [(builder(), 1), (builder().without_returning(), 2)] {
        let store = way.table(database.table()).connections(1).connect(&url).await.unwrap();
        let op = operation("k", b"body");
        granted(store.claim(&op, &bid()).await.unwrap());
        proxy.strike(Fault::Delayed(Duration::ZERO), ..);
        for _ in 0..CLAIMS {
            let verdict = store.claim(&op, &bid()).await.unwrap();
            assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        }
        let exchanges = proxy.heal();
        assert!(
            (CLAIMS..=2 * CLAIMS + 1).contains(&exchanges),
            "{statements} statements: {exchanges} exchanges"
        );
    }
}
