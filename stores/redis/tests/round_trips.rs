//! What each call costs, as the server counts it: one script in one round trip, and a write only where something changes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{collections::BTreeMap, time::Duration};

use idempotency_core::{
    Bid, Claim, Holder, Inspect, Keep, Lease, Notify, OnLapse, Release, Resolution, Settled, Store,
};
use idempotency_store_redis::RedisStore;
use scene::{Beside, DAY, Records, bid, claim, granted, keep, operation, outcome, server};

/// A server of its own, so that nobody else's commands are counted.
struct Counted {
    store: RedisStore,
    beside: Beside,
    records: Records,
    _server: idempotency_services::RedisServer,
}

impl Counted {
    /// A store whose scripts the server knows.
    async fn warm() -> Option<Self> {
        let server = server(&[])?;
        let records = Records::on(&server);
        let store = records.store().await;
        let mut counted = Self { store, beside: records.beside(), records, _server: server };
        let lease = claim(&counted.store, "warm").await;
        let _ = counted.store.renew(&lease, DAY).await.unwrap();
        let _ = counted.store.look(&operation("warm", b"body")).await.unwrap();
        let _ = counted.store.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
        for why in [Release::NotApplied, Release::Unknown] {
            let _ = counted.store.release(&lease, why).await.unwrap();
        }
        let _ = counted.store.resolve(&lease.address, lease.fence, &Resolution::NotApplied).await.unwrap();
        counted.start();
        Some(counted)
    }

    fn start(&mut self) {
        self.beside.ask::<()>("CONFIG RESETSTAT");
    }

    /// What the server did since the last time, the asking left out: each command and how often.
    fn commands(&mut self) -> BTreeMap<String, u64> {
        let text: String = self.beside.ask("INFO commandstats");
        self.start();
        let lines = text.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
        let counts =
            lines.map(|(name, rest)| (name.to_owned(), rest.split(',').next().unwrap().parse().unwrap()));
        counts.filter(|(name, _)| !matches!(&name[..], "info" | "config|resetstat")).collect()
    }

    #[track_caller]
    fn assert(&mut self, what: &str, wanted: &[(&str, u64)]) {
        let wanted: BTreeMap<_, _> =
            wanted.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect();
        assert_eq!(self.commands(), wanted, "{what}");
    }
}

const READS: &[(&str, u64)] = &[("evalsha", 1), ("get", 1), ("time", 1)];
const WRITES: &[(&str, u64)] = &[("evalsha", 1), ("get", 1), ("set", 1), ("time", 1)];

#[tokio::test]
async fn a_claim_is_one_script_whether_it_is_granted_or_refused() {
    let Some(mut counted) = Counted::warm().await else { return };
    let store = counted.store.clone();
    let op = operation("k", b"body");
    let lease = granted(store.claim(&op, &bid()).await.unwrap());
    counted.assert("a first claim", WRITES);
    let own = Bid { holder: lease.holder, ..bid() };
    granted(store.claim(&op, &own).await.unwrap());
    counted.assert("a claim whose reply was lost", WRITES);
    for (claim, verdict) in [
        (store.claim(&op, &bid()).await, "in_flight"),
        (store.claim(&operation("k", b"other"), &bid()).await, "mismatch"),
    ] {
        assert_eq!(claim.unwrap().name(), verdict);
    }
    counted.assert("two refused claims", &READS.iter().map(|(name, _)| (*name, 2)).collect::<Vec<_>>());
    let _ = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
    counted.assert("a completion", WRITES);
    assert_eq!(store.claim(&op, &bid()).await.unwrap().name(), "completed");
    counted.assert("a replay", READS);

    let lease = claim(&store, "freed").await;
    let _ = store.release(&lease, Release::NotApplied).await.unwrap();
    counted.start();
    let again = Bid { holder: lease.holder, ..bid() };
    assert_eq!(store.claim(&operation("freed", b"body"), &again).await.unwrap(), Claim::Ended);
    counted.assert("a delayed copy", READS);
    claim(&store, "freed").await;
    counted.assert("a claim after a release", WRITES);

    let lapsed = Bid { lease: Duration::ZERO, ..bid() };
    granted(store.claim(&operation("lapsed", b"body"), &lapsed).await.unwrap());
    counted.start();
    assert!(claim(&store, "lapsed").await.is_takeover());
    counted.assert("a takeover", WRITES);

    let held = Bid { on_lapse: OnLapse::Hold, ..lapsed };
    granted(store.claim(&operation("held", b"body"), &held).await.unwrap());
    counted.start();
    assert_eq!(store.claim(&operation("held", b"body"), &bid()).await.unwrap().name(), "in_doubt");
    counted.assert("a claim of what is in doubt", READS);

    let lease = claim(&store, "expired").await;
    let expired = Keep { replay: Duration::ZERO, then_reject: DAY };
    let _ = store.complete(&lease, &outcome(), expired).await.unwrap();
    counted.start();
    assert_eq!(store.claim(&operation("expired", b"body"), &bid()).await.unwrap(), Claim::Expired);
    counted.assert("a claim of what is expired", READS);
}

#[tokio::test]
async fn every_other_call_is_one_script_that_writes_once_or_not_at_all() {
    let Some(mut counted) = Counted::warm().await else { return };
    let store = counted.store.clone();
    let (op, lease) = (operation("k", b"body"), claim(&store, "k").await);
    let other = Lease { holder: Holder::draw(), ..lease };
    counted.start();
    for term in [DAY * 2, DAY] {
        assert_eq!(store.renew(&lease, term).await.unwrap(), Settled::Applied);
        counted.assert("a renewal", if term > DAY { WRITES } else { READS });
    }
    let _ = store.look(&op).await.unwrap();
    counted.assert("a look", READS);
    store.find(&lease.address).await.unwrap().unwrap();
    counted.assert("a find", READS);
    assert!(matches!(store.complete(&other, &outcome(), keep(DAY)).await, Ok(Settled::Fenced(Some(_)))));
    counted.assert("a completion that is fenced", READS);
    assert!(matches!(store.release(&other, Release::NotApplied).await, Ok(Settled::Fenced(Some(_)))));
    counted.assert("a release that is fenced", READS);
    for wanted in [WRITES, READS] {
        assert_eq!(store.release(&lease, Release::Unknown).await.unwrap(), Settled::Applied);
        counted.assert("a release as unknown", wanted);
    }
    let applied = Resolution::Applied(outcome(), keep(DAY));
    assert_eq!(store.resolve(&lease.address, lease.fence, &applied).await.unwrap(), Settled::Applied);
    counted.assert("a resolution", WRITES);
    let fenced = store.resolve(&lease.address, lease.fence, &Resolution::NotApplied).await.unwrap();
    assert!(matches!(fenced, Settled::Fenced(Some(_))));
    counted.assert("a resolution that is fenced", READS);
    assert_eq!(store.purge(u32::MAX).await.unwrap(), 0);
    counted.assert("a purge", &[]);

    let lease = claim(&store, "freed").await;
    counted.start();
    for wanted in [WRITES, READS] {
        assert_eq!(store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Applied);
        counted.assert("a release", wanted);
    }
    let lease = claim(&store, "done").await;
    counted.start();
    for wanted in [WRITES, READS] {
        assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
        counted.assert("a completion", wanted);
    }
}

#[tokio::test]
async fn a_server_that_forgot_a_script_is_given_its_source_once() {
    let Some(mut counted) = Counted::warm().await else { return };
    counted.beside.ask::<()>("SCRIPT FLUSH");
    counted.start();
    claim(&counted.store, "a").await;
    // The server counts the command that names a script it does not know, too.
    counted.assert("after a flush", &[("evalsha", 1), ("eval", 1), ("get", 1), ("set", 1), ("time", 1)]);
    claim(&counted.store, "b").await;
    counted.assert("after that", WRITES);
}

#[tokio::test]
async fn scripts_forgotten_in_the_midst_of_a_load_are_no_error() {
    let Some(counted) = Counted::warm().await else { return };
    let Counted { store, mut beside, records: _records, _server } = counted;
    let mut load = tokio::task::JoinSet::new();
    for caller in 0..16 {
        let store = store.clone();
        load.spawn(async move {
            for turn in 0..50 {
                let lease = claim(&store, &format!("{caller}.{turn}")).await;
                let settled = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
                assert_eq!(settled, Settled::Applied);
            }
        });
    }
    let flushing = tokio::task::spawn_blocking(move || {
        for _ in 0..40 {
            beside.ask::<()>("SCRIPT FLUSH");
        }
        beside
    });
    load.join_all().await;
    let text: String = flushing.await.unwrap().ask("INFO commandstats");
    // Commands that were not sent have no line.
    assert!(text.contains("cmdstat_eval:"), "no flush met the load: {text}");
}

#[tokio::test]
async fn an_ending_is_told_if_somebody_waits_for_it() {
    let Some(mut counted) = Counted::warm().await else { return };
    let store = counted.store.clone();
    let lease = claim(&store, "k").await;
    let waiting = tokio::spawn({
        let (store, address) = (store.clone(), lease.address);
        async move {
            loop {
                store.ended(&address).await;
            }
        }
    });
    while !is_waited_for(&mut counted, &lease) {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    counted.start();
    let _ = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
    let commands = counted.commands();
    assert_eq!((commands["evalsha"], commands["publish"]), (1, 1), "{commands:?}");
}

fn is_waited_for(counted: &mut Counted, lease: &Lease) -> bool {
    let words: String = counted.beside.ask(&format!("GETRANGE {} 0 4", counted.records.key(&lease.address)));
    words == "1 1 1"
}
