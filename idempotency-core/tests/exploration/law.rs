//! The law under test as a value, and laws broken on purpose.

use std::time::Duration;

use idempotency_core::{
    Bid, Claim, Fence, Holder, Keep, Lease, OnLapse, Operation, Outcome, Phase, Record, Release, Resolution,
    Settled,
    clock::Timestamp,
    machine::{self, Step},
};

/// The record after an input, and the answer.
pub(crate) type After<V> = (Option<Record>, V);

type Claiming = fn(Option<&Record>, &Operation, &Bid, Timestamp) -> After<Claim<Lease>>;

/// The functions a walk runs on. The default is the law.
pub(crate) struct Law {
    pub(crate) claim: Claiming,
    pub(crate) renew: fn(Option<&Record>, &Holder, Duration, Timestamp) -> After<Settled>,
    pub(crate) complete: fn(Option<&Record>, &Holder, &Outcome, Keep, Timestamp) -> After<Settled>,
    pub(crate) release: fn(Option<&Record>, &Holder, Release, Timestamp) -> After<Settled>,
    pub(crate) resolve: fn(Option<&Record>, Fence, &Resolution, Timestamp) -> After<Settled>,
    pub(crate) is_removable: fn(&Record, Timestamp) -> bool,
}

impl Default for Law {
    fn default() -> Self {
        Self {
            claim: |record, op, bid, now| after(record, machine::claim(record, op, bid, now)),
            renew: |record, holder, term, now| after(record, machine::renew(record, holder, term, now)),
            complete: |record, holder, outcome, keep, now| {
                after(record, machine::complete(record, holder, outcome, keep, now))
            },
            release: |record, holder, why, now| after(record, machine::release(record, holder, why, now)),
            resolve: |record, fence, how, now| after(record, machine::resolve(record, fence, how, now)),
            is_removable: machine::is_removable,
        }
    }
}

fn after<V>(record: Option<&Record>, step: Step<V>) -> After<V> {
    (step.write.or_else(|| record.cloned()), step.verdict)
}

/// Takes over whatever lapsed, as if nobody had asked to hold it.
pub(crate) fn claim_ignoring_hold(
    record: Option<&Record>,
    op: &Operation,
    bid: &Bid,
    now: Timestamp,
) -> After<Claim<Lease>> {
    let yielding = record.filter(|record| record.holder != bid.holder).cloned();
    let yielding = yielding.map(|record| Record { on_lapse: OnLapse::TakeOver, ..record });
    after(record, machine::claim(yielding.as_ref().or(record), op, bid, now))
}

/// Grants to any new holder while another one runs.
pub(crate) fn claim_ignoring_leases(
    record: Option<&Record>,
    op: &Operation,
    bid: &Bid,
    now: Timestamp,
) -> After<Claim<Lease>> {
    let lapsed = record.cloned().map(|record| match record.phase {
        Phase::InFlight { fingerprint, .. } if record.holder != bid.holder => {
            let phase = Phase::InFlight { fingerprint, until: now };
            Record { phase, on_lapse: OnLapse::TakeOver, ..record }
        }
        _ => record,
    });
    after(record, machine::claim(lapsed.as_ref(), op, bid, now))
}

/// Takes fences from the clock alone.
pub(crate) fn claim_fenced_by_the_clock(
    record: Option<&Record>,
    op: &Operation,
    bid: &Bid,
    now: Timestamp,
) -> After<Claim<Lease>> {
    let fence = Fence::from_u64(now.as_micros());
    match (Law::default().claim)(record, op, bid, now) {
        (Some(next), Claim::Granted(lease)) if record.is_none_or(|record| record.holder != bid.holder) => {
            (Some(Record { fence, ..next }), Claim::Granted(Lease { fence, ..lease }))
        }
        other => other,
    }
}

/// Grants a released key to whatever claim comes next, copies of the released one among them.
pub(crate) fn claim_forgetting_releases(
    record: Option<&Record>,
    op: &Operation,
    bid: &Bid,
    now: Timestamp,
) -> After<Claim<Lease>> {
    let nobodys = record.cloned().map(|record| match record.phase {
        Phase::Released { .. } => Record { holder: Holder::from_bytes([0; 16]), ..record },
        _ => record,
    });
    after(record, machine::claim(nobodys.as_ref(), op, bid, now))
}

/// Completes for whoever says so.
pub(crate) fn complete_by_anybody(
    record: Option<&Record>,
    _: &Holder,
    outcome: &Outcome,
    keep: Keep,
    now: Timestamp,
) -> After<Settled> {
    let holder = record.map_or(Holder::from_bytes([0; 16]), |record| record.holder);
    after(record, machine::complete(record, &holder, outcome, keep, now))
}

/// Lets the holder's last outcome stand instead of the first.
pub(crate) fn complete_again(
    record: Option<&Record>,
    holder: &Holder,
    outcome: &Outcome,
    keep: Keep,
    now: Timestamp,
) -> After<Settled> {
    let reopened = record.cloned().map(|record| match record.phase {
        Phase::Completed { fingerprint, .. } => Record { phase: Phase::InDoubt { fingerprint }, ..record },
        _ => record,
    });
    after(record, machine::complete(reopened.as_ref(), holder, outcome, keep, now))
}

/// Frees a key by deleting its record.
pub(crate) fn release_deleting(
    record: Option<&Record>,
    holder: &Holder,
    why: Release,
    now: Timestamp,
) -> After<Settled> {
    let (next, settled) = (Law::default().release)(record, holder, why, now);
    (next.filter(|record| !matches!(record.phase, Phase::Released { .. })), settled)
}

/// Takes an unknown ending for one that did not happen.
pub(crate) fn release_forgetting_doubt(
    record: Option<&Record>,
    holder: &Holder,
    _: Release,
    now: Timestamp,
) -> After<Settled> {
    after(record, machine::release(record, holder, Release::NotApplied, now))
}

/// Resolves what is not in doubt.
pub(crate) fn resolve_anything(
    record: Option<&Record>,
    fence: Fence,
    how: &Resolution,
    now: Timestamp,
) -> After<Settled> {
    let doubted = record.cloned().map(|record| match record.phase {
        Phase::InFlight { fingerprint, .. } => Record { phase: Phase::InDoubt { fingerprint }, ..record },
        _ => record,
    });
    after(record, machine::resolve(doubted.as_ref(), fence, how, now))
}

/// Lets a purge take every record whose lease lapsed.
pub(crate) fn removable_when_lapsed(record: &Record, now: Timestamp) -> bool {
    matches!(&record.phase, Phase::InFlight { until, .. } if until.is_past(now))
        || machine::is_removable(record, now)
}

/// Lets a purge take an answer that still counts.
pub(crate) fn removable_when_completed(record: &Record, now: Timestamp) -> bool {
    matches!(record.phase, Phase::Completed { .. }) || machine::is_removable(record, now)
}
