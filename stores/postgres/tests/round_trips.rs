//! What a call costs: counted by a server that serves nobody else, and by a proxy on the way to it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{
    Bid, Claim, Fence, Inspect, Keep, OnLapse, Operation, Release, Resolution, Settled, Store,
};
use idempotency_services::PostgresServer;
use idempotency_store_contract::wire::{Fault, Proxy};
use idempotency_store_postgres::PostgresStore;
use scene::{DAY, bid, claim, granted, keep, operation, outcome};
use sqlx::{PgPool, postgres::PgPoolOptions};

/// One connection to a server of its own, so that what the server counts is what the store did.
struct Meter {
    pool: PgPool,
    store: PostgresStore,
    _server: PostgresServer,
}

/// What the server counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    statements: i64,
    inserted: i64,
    updated: i64,
    deleted: i64,
    /// Bytes of log.
    log: i64,
}

impl Meter {
    async fn new() -> Option<Self> {
        // Nothing writes or commits by itself.
        let quiet = ["autovacuum=off", "wal_level=minimal", "max_wal_senders=0", "checkpoint_timeout=1h"];
        let server = PostgresServer::start(&quiet)?;
        let pool = PgPoolOptions::new().max_connections(1).connect(&server.url()).await.unwrap();
        let store = PostgresStore::new(pool.clone()).await.unwrap();
        let meter = Self { pool, store, _server: server };
        meter.read().await; // prepares what it reads with, which the server counts, too
        Some(meter)
    }

    async fn read(&self) -> Count {
        // The connection tells what it counted when this statement ends, and counts the next one only afterwards.
        sqlx::query("SELECT pg_stat_force_next_flush()").execute(&self.pool).await.unwrap();
        let counted = "SELECT xact_commit, n_tup_ins, n_tup_upd, n_tup_del,
                              (pg_current_wal_insert_lsn() - '0/0')::bigint
                       FROM pg_stat_database, pg_stat_user_tables
                       WHERE datname = current_database() AND relname = 'idempotency_records'";
        let counted = sqlx::query_as(counted).fetch_one(&self.pool).await.unwrap();
        let (statements, inserted, updated, deleted, log) = counted;
        Count { statements, inserted, updated, deleted, log }
    }

    /// What `call` cost.
    async fn cost<T>(&self, call: impl Future<Output = T>) -> (T, Count) {
        let before = self.read().await;
        let answer = call.await;
        let after = self.read().await;
        let cost = Count {
            statements: after.statements - before.statements - 2, // the two of a reading
            inserted: after.inserted - before.inserted,
            updated: after.updated - before.updated,
            deleted: after.deleted - before.deleted,
            log: after.log - before.log,
        };
        (answer, cost)
    }
}

#[track_caller]
fn assert_costs(what: &str, cost: Count, statements: i64, (inserted, updated, deleted): (i64, i64, i64)) {
    let seen = (cost.statements, cost.inserted, cost.updated, cost.deleted);
    assert_eq!(seen, (statements, inserted, updated, deleted), "{what}: {cost:?}");
    let writes = inserted + updated + deleted > 0;
    assert_eq!(cost.log > 0, writes, "{what} writes nothing if it changes nothing: {cost:?}");
}

/// Makes each call once: a connection prepares a statement before it sends it first, which the server counts.
async fn prepare(store: &PostgresStore) {
    let [a, b, c] = [claim(store, "first").await, claim(store, "second").await, claim(store, "third").await];
    let applied = Resolution::Applied(outcome(), keep(DAY));
    let _ = store.look(&operation("first", b"body")).await.unwrap();
    for _ in 0..2 {
        let _ = store.renew(&a, DAY).await.unwrap();
        let _ = store.complete(&a, &outcome(), keep(DAY)).await.unwrap();
        let _ = store.release(&b, Release::NotApplied).await.unwrap();
        let _ = store.release(&c, Release::Unknown).await.unwrap();
        let _ = store.resolve(&c.address, c.fence, &applied).await.unwrap();
    }
}

const INSERT: (i64, i64, i64) = (1, 0, 0);
const UPDATE: (i64, i64, i64) = (0, 1, 0);
const NOTHING: (i64, i64, i64) = (0, 0, 0);

#[tokio::test]
async fn every_claim_is_one_statement_and_only_a_grant_writes() {
    let Some(meter) = Meter::new().await else { return };
    let store = &meter.store;
    prepare(store).await;
    let (op, other_payload) = (operation("k", b"body"), operation("k", b"other"));

    let (lease, cost) = meter.cost(store.claim(&op, &bid())).await;
    let lease = granted(lease.unwrap());
    assert_costs("a first grant", cost, 1, INSERT);
    let (adopted, cost) = meter.cost(store.claim(&op, &Bid { holder: lease.holder, ..bid() })).await;
    assert_eq!(granted(adopted.unwrap()), lease);
    assert_costs("an adopted grant", cost, 1, UPDATE);

    let refused = async |op: Operation, bid: Bid| {
        let (verdict, cost) = meter.cost(store.claim(&op, &bid)).await;
        let verdict: Claim<_> = verdict.unwrap();
        assert_costs(verdict.name(), cost, 1, NOTHING);
        verdict.name()
    };
    assert_eq!(refused(op.clone(), bid()).await, "in_flight");
    assert_eq!(refused(other_payload, bid()).await, "mismatch");
    let _ = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
    assert_eq!(refused(op.clone(), bid()).await, "completed");
    assert_eq!(refused(op.clone(), Bid { holder: lease.holder, ..bid() }).await, "completed");
    let (verdict, cost) = meter.cost(store.look(&op)).await;
    assert_eq!(verdict.unwrap().name(), "completed");
    assert_costs("a look", cost, 1, NOTHING);

    let doubt = claim(store, "doubt").await;
    let _ = store.release(&doubt, Release::Unknown).await.unwrap();
    assert_eq!(refused(operation("doubt", b"body"), bid()).await, "in_doubt");

    let lapsed = operation("lapsed", b"body");
    granted(store.claim(&lapsed, &Bid { lease: Duration::ZERO, ..bid() }).await.unwrap());
    assert_eq!(refused(operation("lapsed", b"other"), bid()).await, "mismatch");
    let (verdict, cost) = meter.cost(store.claim(&lapsed, &bid())).await;
    assert_eq!(granted(verdict.unwrap()).attempt, 2);
    assert_costs("a takeover", cost, 1, UPDATE);
    let held = Bid { lease: Duration::ZERO, on_lapse: OnLapse::Hold, ..bid() };
    granted(store.claim(&operation("held", b"body"), &held).await.unwrap());
    assert_eq!(refused(operation("held", b"body"), bid()).await, "in_doubt");

    let released = claim(store, "released").await;
    let _ = store.release(&released, Release::NotApplied).await.unwrap();
    assert_eq!(
        refused(operation("released", b"body"), Bid { holder: released.holder, ..bid() }).await,
        "ended"
    );
    let (verdict, cost) = meter.cost(store.claim(&operation("released", b"other"), &bid())).await;
    assert_eq!(granted(verdict.unwrap()).attempt, 1);
    assert_costs("a grant after a release", cost, 1, UPDATE);

    let over = claim(store, "over").await;
    let _ =
        store.complete(&over, &outcome(), Keep { replay: Duration::ZERO, then_reject: DAY }).await.unwrap();
    assert_eq!(refused(operation("over", b"body"), bid()).await, "expired");
    assert_eq!(store.repeats(), 0);
}

#[tokio::test]
async fn every_ending_is_one_statement_and_one_more_says_why_it_did_not_count() {
    let Some(meter) = Meter::new().await else { return };
    let store = &meter.store;
    prepare(store).await;
    let [a, b, c, d] =
        [claim(store, "a").await, claim(store, "b").await, claim(store, "c").await, claim(store, "d").await];
    let applied = Resolution::Applied(outcome(), keep(DAY));
    let counts = [
        ("renew", meter.cost(store.renew(&a, 2 * DAY)).await),
        ("complete", meter.cost(store.complete(&a, &outcome(), keep(DAY))).await),
        ("release", meter.cost(store.release(&b, Release::NotApplied)).await),
        ("release as unknown", meter.cost(store.release(&c, Release::Unknown)).await),
        ("resolve", meter.cost(store.resolve(&c.address, c.fence, &applied)).await),
    ];
    for (what, (settled, cost)) in counts {
        assert_eq!(settled.unwrap(), Settled::Applied, "{what}");
        assert_costs(what, cost, 1, UPDATE);
    }
    for (what, (settled, cost)) in [
        ("complete again", meter.cost(store.complete(&a, &outcome(), keep(DAY))).await),
        ("release again", meter.cost(store.release(&b, Release::NotApplied)).await),
    ] {
        assert_eq!(settled.unwrap(), Settled::Applied, "{what}");
        assert_costs(what, cost, 2, NOTHING);
    }
    for (what, (settled, cost)) in [
        ("renew what ended", meter.cost(store.renew(&b, DAY)).await),
        ("complete what was released", meter.cost(store.complete(&b, &outcome(), keep(DAY))).await),
        (
            "resolve what is not in doubt",
            meter.cost(store.resolve(&d.address, Fence::from_u64(1), &applied)).await,
        ),
    ] {
        assert!(matches!(settled.unwrap(), Settled::Fenced(Some(_))), "{what}");
        assert_costs(what, cost, 2, NOTHING);
    }
    assert_eq!(store.repeats(), 0);
}

/// The server counts a statement that is planned anew twice.
#[tokio::test]
async fn a_purge_is_one_statement_a_batch() {
    let Some(meter) = Meter::new().await else { return };
    for key in ["a", "b", "c"] {
        let lease = claim(&meter.store, key).await;
        let _ = meter.store.complete(&lease, &outcome(), keep(Duration::ZERO)).await.unwrap();
    }
    let (removed, cost) = meter.cost(meter.store.purge(10)).await;
    assert_eq!(removed.unwrap(), 3);
    assert_costs("a purge", cost, 2, (0, 0, 3));
    let (removed, cost) = meter.cost(meter.store.purge(10)).await;
    assert_eq!(removed.unwrap(), 0);
    assert_costs("a purge of nothing", cost, 2, NOTHING);
}

/// An update of a record on its own page, of columns that are in no index, writes to none.
#[tokio::test]
async fn a_life_of_a_record_writes_to_no_index_after_its_claim() {
    let Some(meter) = Meter::new().await else { return };
    for key in 0..50 {
        let lease = claim(&meter.store, &format!("k{key}")).await;
        assert_eq!(meter.store.renew(&lease, 2 * DAY).await.unwrap(), Settled::Applied);
        // The usual terms keep an outcome for as long as a bid says that its record stays.
        assert_eq!(meter.store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    }
    assert_eq!(meter.read().await.updated, 100);
    let in_place = "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'idempotency_records'";
    let in_place: i64 = sqlx::query_scalar(in_place).fetch_one(&meter.pool).await.unwrap();
    assert_eq!(in_place, 100);
}

/// What is sent to the server and back while `calls` are made one after the other.
async fn exchanges(proxy: &Proxy, calls: impl Future<Output = ()>) -> usize {
    proxy.strike(Fault::Delayed(Duration::ZERO), ..);
    calls.await;
    proxy.heal()
}

/// The pool asks now and then whether a connection still lives, for which nobody waits.
#[tokio::test]
async fn a_call_goes_to_the_server_and_back_once() {
    const CALLS: usize = 40;
    let Some(server) = PostgresServer::start(&[]) else { return };
    let proxy = Proxy::before(&server.address()).await.unwrap();
    let url = server.url().replace(&server.address(), &proxy.address().to_string());
    let store = PostgresStore::builder().connections(1).connect(&url).await.unwrap();
    let pooled = PostgresStore::builder().connections(1).behind_transaction_pooler();
    let pooled = pooled.connect(&url).await.unwrap();
    let op = operation("k", b"body");
    for (store, trips) in [(store, 1), (pooled, 4)] {
        let lease = claim(&store, &format!("{trips}")).await;
        let _ = store.claim(&op, &bid()).await.unwrap(); // prepared, where it is
        let _ = store.renew(&lease, DAY).await.unwrap();
        let refusals = exchanges(&proxy, async {
            for _ in 0..CALLS {
                assert_eq!(store.claim(&op, &bid()).await.unwrap().name(), "in_flight");
            }
        });
        let refusals = refusals.await;
        let renewals = exchanges(&proxy, async {
            for _ in 0..CALLS {
                assert_eq!(store.renew(&lease, DAY).await.unwrap(), Settled::Applied);
            }
        });
        for seen in [refusals, renewals.await] {
            let wanted = trips * CALLS..=trips * CALLS + CALLS;
            assert!(wanted.contains(&seen), "{seen} exchanges for {CALLS} calls of {trips}");
        }
    }
}
