//! Hosts whose clocks are wrong, and the margin that keeps them apart.

#[path = "../../tests/scene/mod.rs"]
mod scene;

use std::time::Instant;

use idempotency_core::{
    Inspect, OnLapse, Phase, Resolution, Vacant,
    clock::{Clock, ManualClock, SteadyClock},
};
use scene::{DAY, PATIENCE, Place, bid, granted, manual_clock, operation};

use super::*;
use crate::DynamoDbStoreBuilder;

const TEN_MINUTES: i64 = 600_000_000;
const LEASE: Duration = Duration::from_millis(600);
const MARGIN: Duration = Duration::from_secs(2);
const OFF: Duration = Duration::from_secs(1);

/// A host's clock that is this many microseconds ahead of what it should be.
struct Skewed(SteadyClock, i64);

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.now().as_micros().saturating_add_signed(self.1))
    }
}

fn on(place: &Place, clock: impl Clock) -> DynamoDbStoreBuilder {
    place.builder().host_clock(clock)
}

#[tokio::test]
async fn hosts_ten_minutes_apart_never_overlap_on_a_live_lease() {
    let Some(place) = Place::find() else { return };
    for (key, first, then) in [("a", TEN_MINUTES, -TEN_MINUTES), ("b", -TEN_MINUTES, TEN_MINUTES)] {
        let first = on(&place, Skewed(SteadyClock::new(), first)).open().await.unwrap();
        let then = on(&place, Skewed(SteadyClock::new(), then)).open().await.unwrap();
        let op = operation(key, b"body");
        let sent = Instant::now();
        let lease = granted(first.claim(&op, &Bid { lease: LEASE, ..bid() }).await.unwrap());
        let mut renewed = Instant::now();
        assert_eq!(first.renew(&lease, LEASE).await.unwrap(), Settled::Applied);
        let taken = loop {
            let asked = Instant::now();
            match then.claim(&op, &bid()).await.unwrap() {
                Claim::Granted(taken) => break taken,
                Claim::InFlight { .. } => {}
                other => panic!("{other:?}"),
            }
            assert!(asked < renewed + LEASE + MARGIN + OFF * 2, "it is taken over in the end");
            if asked < sent + LEASE / 2 {
                renewed = Instant::now();
                assert_eq!(first.renew(&lease, LEASE).await.unwrap(), Settled::Applied);
            }
        };
        assert!(renewed.elapsed() >= LEASE, "taken over {:?} after it was renewed", renewed.elapsed());
        assert!(taken.is_takeover() && taken.fence > lease.fence, "{taken:?} after {lease:?}");
        assert!(matches!(first.renew(&lease, LEASE).await.unwrap(), Settled::Fenced(Some(_))));
    }
}

#[tokio::test]
async fn a_lease_written_by_a_clock_that_stood_still_is_written_again() {
    let Some(place) = Place::find() else { return };
    let host = Arc::new(ManualClock::at(SteadyClock::new().now()));
    let suspended = on(&place, host.clone()).open().await.unwrap();
    let other = place.builder().open().await.unwrap();
    let suspend = || host.set(Timestamp::from_micros(host.now().as_micros() - TEN_MINUTES.unsigned_abs()));
    let live = |claim: Claim<Vacant>| match claim {
        Claim::InFlight { left } => left,
        other => panic!("not in flight: {other:?}"),
    };

    let op = operation("k", b"body");
    suspend();
    let bid = Bid { lease: Duration::from_secs(60), ..bid() };
    let lease = granted(suspended.claim(&op, &bid).await.unwrap());
    let left = live(other.look(&op).await.unwrap());
    assert!(left >= bid.lease, "{left:?} of {:?} are left", bid.lease);

    suspend();
    assert_eq!(suspended.renew(&lease, DAY).await.unwrap(), Settled::Applied);
    let left = live(other.look(&op).await.unwrap());
    assert!(left >= DAY, "{left:?} of {DAY:?} are left");
}

#[tokio::test]
async fn a_run_is_taken_for_lapsed_a_margin_after_its_lease() {
    let Some(place) = Place::find() else { return };
    let clock = manual_clock(0);
    let store = place.builder().clock(clock.clone()).open().await.unwrap();
    let lease = Duration::from_secs(30);
    let retention = Duration::ZERO;
    let [open, held] = ["open", "held"].map(|key| operation(key, b"body"));
    granted(store.claim(&open, &Bid { lease, retention, ..bid() }).await.unwrap());
    let hold = Bid { lease, on_lapse: OnLapse::Hold, ..bid() };
    let doubtful = granted(store.claim(&held, &hold).await.unwrap());

    clock.advance(lease + MARGIN - Duration::from_micros(1));
    let left = Duration::from_micros(1);
    for op in [&open, &held] {
        assert_eq!(store.claim(op, &bid()).await.unwrap(), Claim::InFlight { left });
        assert_eq!(store.look(op).await.unwrap(), Claim::InFlight { left });
    }
    let early = store.resolve(held.address(), doubtful.fence, &Resolution::NotApplied).await.unwrap();
    assert!(matches!(early, Settled::Fenced(Some(_))), "{early:?}");

    clock.advance(left);
    granted(store.claim(&open, &bid()).await.unwrap());
    assert_eq!(store.claim(&held, &bid()).await.unwrap(), Claim::InDoubt { fence: doubtful.fence });
    let late = store.resolve(held.address(), doubtful.fence, &Resolution::NotApplied).await.unwrap();
    assert_eq!(late, Settled::Applied);
}

#[tokio::test]
async fn the_longest_lease_overflows_nothing_with_its_margin() {
    let Some(place) = Place::find() else { return };
    let store = place.builder().patience(PATIENCE).open().await.unwrap();
    let op = operation("k", b"body");
    granted(store.claim(&op, &Bid { lease: Duration::MAX, ..bid() }).await.unwrap());
    let record = store.find(op.address()).await.unwrap().unwrap();
    assert!(matches!(record.phase, Phase::InFlight { until: Timestamp::NEVER, .. }), "{record:?}");
}
