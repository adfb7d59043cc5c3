//! Counts through the `metrics` facade.

use idempotency_core::{
    Address, Form, Release,
    event::{Event, Observer},
};
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

/// An [`Observer`] that counts every event through the [`metrics`](::metrics) facade, for whichever exporter the process
/// installed.
///
/// No label holds an operation: their values are few and fixed.
///
/// ```
/// use idempotency_tower::{IdempotencyLayer, Policy, observability::Metrics};
/// # use idempotency_store_memory::MemoryStore;
///
/// let layer = IdempotencyLayer::observed(MemoryStore::new(), Policy::default(), Metrics::new());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Metrics {}

impl Metrics {
    /// Describes the metrics to the recorder that is installed by now; events go to the one that is installed then.
    #[expect(clippy::new_without_default, reason = "it tells the recorder something")]
    pub fn new() -> Self {
        describe_counter!("idempotency.claims", Unit::Count, "Claims the store decided, by verdict");
        describe_counter!(
            "idempotency.replays",
            Unit::Count,
            "Copies answered with an earlier run's outcome"
        );
        describe_counter!("idempotency.conflicts", Unit::Count, "Copies that came while the first one ran");
        describe_counter!("idempotency.mismatches", Unit::Count, "Keys that came with another payload");
        describe_counter!("idempotency.takeovers", Unit::Count, "Runs that took over a lapsed one");
        describe_counter!("idempotency.in_doubt", Unit::Count, "Copies of operations whose end nobody knows");
        describe_counter!("idempotency.stored", Unit::Count, "Runs whose outcome was stored");
        describe_counter!("idempotency.released", Unit::Count, "Runs that gave their lease back");
        describe_counter!("idempotency.fenced", Unit::Count, "Runs whose ending did not count");
        describe_counter!("idempotency.lapsed", Unit::Count, "Runs without an ending: left to lapse");
        describe_counter!("idempotency.lease_lost", Unit::Count, "Runs that lost their lease, or may have");
        describe_counter!("idempotency.outcomes_lost", Unit::Count, "Runs whose ending could not be stored");
        describe_counter!("idempotency.unrecorded_runs", Unit::Count, "Runs while the store did not answer");
        describe_counter!("idempotency.overloaded", Unit::Count, "Claims refused: too many live runs");
        describe_counter!("idempotency.store.failures", Unit::Count, "Store calls that failed");
        describe_histogram!("idempotency.store.duration", Unit::Seconds, "How long store calls took");
        describe_gauge!("idempotency.live_runs", Unit::Count, "Runs between their grant and their ending");
        Self {}
    }
}

impl Observer for Metrics {
    fn observe(&self, _: &Address, event: &Event<'_>) {
        match event {
            Event::Granted { attempt, .. } => {
                claimed("granted");
                live_runs().increment(1);
                if *attempt > 1 {
                    counter!("idempotency.takeovers").increment(1);
                }
            }
            Event::Completed { form } => {
                claimed("completed");
                if *form == Form::Whole {
                    counter!("idempotency.replays").increment(1);
                }
            }
            Event::Expired => claimed("expired"),
            Event::InFlight { .. } => {
                claimed("in_flight");
                counter!("idempotency.conflicts").increment(1);
            }
            Event::Mismatch(_) => {
                claimed("mismatch");
                counter!("idempotency.mismatches").increment(1);
            }
            Event::InDoubt { .. } => {
                claimed("in_doubt");
                counter!("idempotency.in_doubt").increment(1);
            }
            Event::Ended => claimed("ended"),
            Event::StoreCalled { call, took } => {
                histogram!("idempotency.store.duration", "call" => call.name()).record(*took);
            }
            Event::StoreFailed { call, error } => {
                let labels = [("call", call.name()), ("kind", error.kind.name())];
                counter!("idempotency.store.failures", &labels).increment(1);
            }
            Event::RanUnrecorded => counter!("idempotency.unrecorded_runs").increment(1),
            Event::Overloaded => counter!("idempotency.overloaded").increment(1),
            run => ended(run),
        }
    }

    fn times_store_calls(&self) -> bool {
        true
    }
}

/// What becomes of a run: each is live until it is stored, released, fenced off or left to lapse.
fn ended(event: &Event<'_>) {
    match event {
        Event::Stored => counter!("idempotency.stored").increment(1),
        Event::Released(why) => counter!("idempotency.released", "why" => reason(*why)).increment(1),
        Event::Fenced => counter!("idempotency.fenced").increment(1),
        Event::LeftToLapse => counter!("idempotency.lapsed").increment(1),
        Event::LeaseLost => return counter!("idempotency.lease_lost").increment(1),
        Event::OutcomeLost(error) => {
            return counter!("idempotency.outcomes_lost", "kind" => error.kind.name()).increment(1);
        }
        _ => return,
    }
    live_runs().decrement(1);
}

fn claimed(verdict: &'static str) {
    counter!("idempotency.claims", "verdict" => verdict).increment(1);
}

fn live_runs() -> metrics::Gauge {
    gauge!("idempotency.live_runs")
}

const fn reason(why: Release) -> &'static str {
    match why {
        Release::NotApplied => "not_applied",
        Release::Unknown => "unknown",
    }
}
