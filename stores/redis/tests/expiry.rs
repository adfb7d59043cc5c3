//! What the server removes by itself, and what it never may.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::Duration;

use idempotency_core::{
    Bid, Claim, Holder, Inspect, Keep, Lease, Notify, OnLapse, Operation, Phase, Release, Resolution,
    Settled, Store, clock::Timestamp,
};
use idempotency_store_redis::RedisStore;
use scene::{Beside, DAY, Records, bid, claim, granted, keep, operation, outcome};

const HOUR: Duration = Duration::from_secs(3_600);
const BRIEF: Duration = Duration::from_millis(100);
/// A record that is over is kept for another second.
const GRACE: Duration = Duration::from_secs(1);

struct Watched {
    store: RedisStore,
    beside: Beside,
    records: Records,
}

impl Watched {
    async fn open() -> Option<Self> {
        let records = Records::on_the_server()?;
        Some(Self { store: records.store().await, beside: records.beside(), records })
    }

    async fn claim(&self, key: &str, bid: &Bid) -> (Operation, Lease) {
        let op = operation(key, b"body");
        let lease = granted(self.store.claim(&op, bid).await.unwrap());
        (op, lease)
    }

    /// In how long the server removes the record: never, if it has no time for it.
    fn ttl(&mut self, lease: &Lease) -> Option<Duration> {
        let millis: i64 = self.beside.ask(&format!("PTTL {}", self.records.key(&lease.address)));
        assert_ne!(millis, -2, "there is no record");
        u64::try_from(millis).ok().map(Duration::from_millis)
    }

    /// Demands that the server removes the record when `wanted` and another second have passed, and that this is a second
    /// after the law would let it go.
    async fn assert_ttl(&mut self, lease: &Lease, wanted: Option<Duration>) {
        /// A busy machine asks this much later.
        const SLACK: Duration = Duration::from_secs(30);
        match (self.ttl(lease), wanted) {
            (None, None) => return,
            (Some(ttl), Some(wanted)) => {
                assert!(ttl <= wanted + GRACE && ttl + SLACK > wanted + GRACE, "{ttl:?}, not {wanted:?}");
            }
            (ttl, wanted) => panic!("{ttl:?}, not {wanted:?}"),
        }
        let record = self.store.find(&lease.address).await.unwrap().unwrap();
        let removable = match record.phase {
            Phase::InFlight { until, .. } => until.plus(record.retention),
            Phase::Released { until } => until,
            Phase::Completed { gone, .. } => gone,
            Phase::InDoubt { .. } => panic!("what is in doubt has no time to go"),
        };
        let key = self.records.key(&lease.address);
        let expires: u64 = self.beside.ask(&format!("PEXPIRETIME {key}"));
        let later = Timestamp::from_micros(expires * 1_000).since(removable);
        assert!(later > GRACE * 9 / 10 && later < GRACE * 11 / 10, "{later:?} after {removable:?}");
    }

    /// Waits until there is no record.
    async fn gone(&mut self, lease: &Lease) {
        while self.store.find(&lease.address).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_record_goes_when_the_law_lets_it_go() {
    let Some(mut watched) = Watched::open().await else { return };
    let store = watched.store.clone();
    let hourly = Bid { lease: HOUR, ..bid() };

    let (op, lease) = watched.claim("in flight", &hourly).await;
    watched.assert_ttl(&lease, Some(HOUR + DAY)).await;
    assert_eq!(store.renew(&lease, 5 * HOUR).await.unwrap(), Settled::Applied);
    watched.assert_ttl(&lease, Some(5 * HOUR + DAY)).await;
    assert_eq!(store.renew(&lease, HOUR).await.unwrap(), Settled::Applied);
    watched.assert_ttl(&lease, Some(5 * HOUR + DAY)).await;
    granted(
        store
            .claim(&op, &Bid { holder: lease.holder, lease: 9 * HOUR, retention: HOUR, ..bid() })
            .await
            .unwrap(),
    );
    watched.assert_ttl(&lease, Some(9 * HOUR + DAY)).await; // the retention is that of the first claim
    let kept = Keep { replay: HOUR, then_reject: 2 * HOUR };
    assert_eq!(store.complete(&lease, &outcome(), kept).await.unwrap(), Settled::Applied);
    watched.assert_ttl(&lease, Some(3 * HOUR)).await;

    let (_, lease) = watched.claim("released", &hourly).await;
    assert_eq!(store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Applied);
    watched.assert_ttl(&lease, Some(DAY)).await;

    let lapsed = Bid { lease: Duration::ZERO, ..bid() };
    watched.claim("taken over", &lapsed).await;
    let (_, lease) = watched.claim("taken over", &hourly).await;
    watched.assert_ttl(&lease, Some(HOUR + DAY)).await;
}

#[tokio::test]
async fn what_is_held_or_in_doubt_has_no_time_to_go() {
    let Some(mut watched) = Watched::open().await else { return };
    let store = watched.store.clone();
    let held = Bid { lease: HOUR, on_lapse: OnLapse::Hold, ..bid() };

    let (op, lease) = watched.claim("held", &held).await;
    watched.assert_ttl(&lease, None).await;
    assert_eq!(store.renew(&lease, 2 * HOUR).await.unwrap(), Settled::Applied);
    watched.assert_ttl(&lease, None).await;
    granted(store.claim(&op, &Bid { holder: lease.holder, lease: DAY, ..bid() }).await.unwrap());
    watched.assert_ttl(&lease, None).await;
    assert_eq!(store.complete(&lease, &outcome(), keep(HOUR)).await.unwrap(), Settled::Applied);
    watched.assert_ttl(&lease, Some(HOUR)).await;

    for resolution in [Resolution::NotApplied, Resolution::Applied(outcome(), keep(HOUR))] {
        let (_, lease) = watched.claim(&format!("{resolution:?}"), &bid()).await;
        assert_eq!(store.release(&lease, Release::Unknown).await.unwrap(), Settled::Applied);
        watched.assert_ttl(&lease, None).await;
        assert_eq!(store.resolve(&lease.address, lease.fence, &resolution).await.unwrap(), Settled::Applied);
        watched.assert_ttl(&lease, Some(if resolution == Resolution::NotApplied { DAY } else { HOUR })).await;
    }
}

#[tokio::test]
async fn what_never_ends_has_no_time_to_go() {
    let Some(mut watched) = Watched::open().await else { return };
    let store = watched.store.clone();
    for endless in [Bid { lease: Duration::MAX, ..bid() }, Bid { retention: Duration::MAX, ..bid() }] {
        let (op, lease) = watched.claim(&format!("{:?}", endless.lease), &endless).await;
        watched.assert_ttl(&lease, None).await;
        assert_eq!(store.renew(&lease, Duration::MAX).await.unwrap(), Settled::Applied);
        watched.assert_ttl(&lease, None).await;
        granted(store.claim(&op, &Bid { holder: lease.holder, ..endless }).await.unwrap());
        watched.assert_ttl(&lease, None).await;
        let ever = Keep { replay: DAY, then_reject: Duration::MAX };
        assert_eq!(store.complete(&lease, &outcome(), ever).await.unwrap(), Settled::Applied);
        watched.assert_ttl(&lease, None).await;
    }
    let (_, lease) = watched.claim("released", &Bid { retention: Duration::MAX, ..bid() }).await;
    assert_eq!(store.release(&lease, Release::NotApplied).await.unwrap(), Settled::Applied);
    watched.assert_ttl(&lease, None).await;
}

#[tokio::test]
async fn a_wait_changes_no_time_to_go() {
    let Some(mut watched) = Watched::open().await else { return };
    let (_, lease) = watched.claim("k", &Bid { lease: HOUR, ..bid() }).await;
    let words = format!("GETRANGE {} 0 4", watched.records.key(&lease.address));
    while watched.beside.ask::<String>(&words) != "1 1 1" {
        // The first wait begins to listen, and may be woken by that before anything is marked.
        let _ = tokio::time::timeout(BRIEF, watched.store.ended(&lease.address)).await;
    }
    watched.assert_ttl(&lease, Some(HOUR + DAY)).await;
}

#[tokio::test]
async fn the_server_removes_what_is_over_and_the_next_grant_s_fence_is_higher() {
    let Some(mut watched) = Watched::open().await else { return };
    let store = watched.store.clone();
    let over = [
        watched.claim("abandoned", &Bid { lease: BRIEF, retention: BRIEF, ..bid() }).await,
        watched.claim("released", &Bid { retention: BRIEF, ..bid() }).await,
        watched.claim("completed", &bid()).await,
    ];
    assert_eq!(store.release(&over[1].1, Release::NotApplied).await.unwrap(), Settled::Applied);
    assert_eq!(store.complete(&over[2].1, &outcome(), keep(BRIEF)).await.unwrap(), Settled::Applied);
    for (op, lease) in over {
        watched.gone(&lease).await;
        let next = granted(store.claim(&op, &bid()).await.unwrap());
        assert!(next.fence > lease.fence);
        assert_eq!(next.attempt, 1);
    }
}

#[tokio::test]
async fn what_is_held_or_in_doubt_outlives_all_that_is_over() {
    let Some(mut watched) = Watched::open().await else { return };
    let store = watched.store.clone();
    let brief = Bid { lease: BRIEF, retention: BRIEF, ..bid() };
    let (held, _) = watched.claim("held", &Bid { on_lapse: OnLapse::Hold, ..brief }).await;
    let (doubtful, lease) = watched.claim("in doubt", &brief).await;
    assert_eq!(store.release(&lease, Release::Unknown).await.unwrap(), Settled::Applied);
    let (running, _) = watched.claim("running", &Bid { retention: Duration::ZERO, ..bid() }).await;
    let (_, abandoned) = watched.claim("abandoned", &brief).await;
    watched.gone(&abandoned).await;
    for op in [&held, &doubtful] {
        let seen = store.claim(op, &bid()).await.unwrap();
        assert!(matches!(seen, Claim::InDoubt { .. }), "{seen:?}");
    }
    let seen = store.claim(&running, &bid()).await.unwrap();
    assert!(matches!(seen, Claim::InFlight { .. }), "{seen:?}");
}

#[tokio::test]
async fn a_server_removes_nothing_before_its_time() {
    let Some(mut watched) = Watched::open().await else { return };
    let mut leases = Vec::new();
    for number in 0..50 {
        let brief =
            Bid { lease: Duration::from_micros(1 + number * 777), retention: Duration::ZERO, ..bid() };
        leases.push(watched.claim(&number.to_string(), &brief).await.1);
    }
    for lease in leases {
        let Some(record) = watched.store.find(&lease.address).await.unwrap() else {
            panic!("a record is gone within its last second");
        };
        let Phase::InFlight { until, .. } = record.phase else { panic!("{record:?}") };
        let key = watched.records.key(&lease.address);
        let expires: u64 = watched.beside.ask(&format!("PEXPIRETIME {key}"));
        assert!(expires * 1_000 > until.as_micros() + 900_000, "{expires} ms, {until:?}");
    }
}

#[tokio::test]
async fn a_claim_of_what_is_over_and_not_removed_yet_starts_anew() {
    let Some(watched) = Watched::open().await else { return };
    let (op, first) = watched.claim("k", &bid()).await;
    assert_eq!(
        watched.store.complete(&first, &outcome(), keep(Duration::ZERO)).await.unwrap(),
        Settled::Applied
    );
    assert!(watched.store.find(&first.address).await.unwrap().is_some(), "the server was faster");
    let next = granted(watched.store.claim(&op, &Bid { holder: Holder::draw(), ..bid() }).await.unwrap());
    assert_eq!(next.attempt, 1);
    assert!(next.fence > first.fence);
    let fenced = watched.store.complete(&first, &outcome(), keep(DAY)).await.unwrap();
    assert!(matches!(fenced, Settled::Fenced(Some(_))), "{fenced:?}");
    let _ = claim(&watched.store, "other").await;
}
