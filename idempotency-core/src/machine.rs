//! The law of a record: pure functions from a record, an input and the store's time to the next record and a verdict.
//!
//! This is the oracle of the house. The memory store runs it under a lock; every other store is compared with it by
//! random histories. Rows are numbered as in ARCHITECTURE.md; the first matching row wins.
//!
//! `now` is the store's clock, read in the deciding write after any lock wait. A point of time is past when it is
//! not later than `now`. A payload is the same when the operation [accepts](Operation::accepts) the recorded fingerprint,
//! which only a grant writes.

use std::time::Duration;

use crate::{
    Address, Bid, Claim, Fence, Fingerprint, Holder, Keep, Lease, OnLapse, Operation, Outcome, Phase, Record,
    Release, Resolution, Settled, Standing, Vacant,
    clock::{Timestamp, as_micros},
};

/// What one input does: the record to write, if any, and what to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Step<V> {
    /// The record after the input; `None` leaves what stands there untouched.
    pub write: Option<Record>,
    /// The answer.
    pub verdict: V,
}

impl<V> Step<V> {
    const fn unchanged(verdict: V) -> Self {
        Self { write: None, verdict }
    }

    const fn write(record: Record, verdict: V) -> Self {
        Self { write: Some(record), verdict }
    }
}

/// Rows 1 to 9: a bid for the right to run.
pub fn claim(record: Option<&Record>, op: &Operation, bid: &Bid, now: Timestamp) -> Step<Claim<Lease>> {
    let mine = record.filter(|record| record.holder == bid.holder);
    if let Some(record) = mine {
        match &record.phase {
            Phase::InFlight { fingerprint, until } if op.accepts(fingerprint) => {
                let until = (*until).max(now.plus(bid.lease));
                let phase = Phase::InFlight { fingerprint: *fingerprint, until };
                let renewed = Record { phase, ..record.clone() };
                let lease = lease_of(*op.address(), &renewed);
                return Step::write(renewed, Claim::Granted(lease)); // row 1: a lost reply is adopted
            }
            Phase::Released { .. } => return Step::unchanged(Claim::Ended), // row 2
            _ => {}
        }
    }
    match look(record, op, now) {
        Claim::Granted(Vacant) => grant(record, op, bid, now), // rows 3 and 8
        refused => Step::unchanged(refused.map(|Vacant| unreachable!("a vacant record is granted above"))),
    }
}

/// The verdict a claim by a new holder would get: rows 3 to 9, without the write.
pub fn look(record: Option<&Record>, op: &Operation, now: Timestamp) -> Claim<Vacant> {
    let Some(record) = record else { return Claim::Granted(Vacant) };
    if is_free(record, now) {
        return Claim::Granted(Vacant); // row 3
    }
    let (fingerprint, verdict) = match &record.phase {
        Phase::Completed { until, .. } if until.is_past(now) => return Claim::Expired, // row 4
        Phase::Released { .. } => return Claim::Granted(Vacant),
        Phase::Completed { fingerprint, outcome, .. } => (fingerprint, Claim::Completed(outcome.clone())), // row 6
        Phase::InDoubt { fingerprint } => (fingerprint, Claim::InDoubt { fence: record.fence }), // row 7
        Phase::InFlight { fingerprint, until } if until.is_past(now) => match record.on_lapse {
            OnLapse::Hold => (fingerprint, Claim::InDoubt { fence: record.fence }), // row 7
            OnLapse::TakeOver => (fingerprint, Claim::Granted(Vacant)),             // row 8
        },
        Phase::InFlight { fingerprint, until } => (fingerprint, Claim::InFlight { left: until.since(now) }), // row 9
    };
    if op.accepts(fingerprint) {
        verdict
    } else {
        Claim::Mismatch(op.differing_parts(fingerprint)) // row 5
    }
}

fn grant(record: Option<&Record>, op: &Operation, bid: &Bid, now: Timestamp) -> Step<Claim<Lease>> {
    let last = record.map_or(0, |record| record.fence.as_u64());
    let taken_over = record.filter(|record| !is_free(record, now));
    let granted = Record {
        phase: Phase::InFlight { fingerprint: *op.fingerprint(), until: now.plus(bid.lease) },
        holder: bid.holder,
        fence: Fence::from_u64((last + 1).max(now.as_micros())),
        attempt: taken_over.map_or(0, |record| record.attempt).saturating_add(1),
        on_lapse: bid.on_lapse,
        retention: Duration::from_micros(as_micros(bid.retention)), // as a column holds it
    };
    let lease = lease_of(*op.address(), &granted);
    Step::write(granted, Claim::Granted(lease))
}

/// Row 10: the holder goes on running.
pub fn renew(record: Option<&Record>, holder: &Holder, term: Duration, now: Timestamp) -> Step<Settled> {
    match record {
        Some(record) if record.holder == *holder => match &record.phase {
            Phase::InFlight { fingerprint, until } => {
                let until = (*until).max(now.plus(term));
                let phase = Phase::InFlight { fingerprint: *fingerprint, until };
                Step::write(Record { phase, ..record.clone() }, Settled::Applied)
            }
            _ => Step::unchanged(fenced(Some(record))),
        },
        other => Step::unchanged(fenced(other)),
    }
}

/// Rows 11 and 12: the holder ended with an outcome. A lease that only lapsed may still complete.
pub fn complete(
    record: Option<&Record>,
    holder: &Holder,
    outcome: &Outcome,
    keep: Keep,
    now: Timestamp,
) -> Step<Settled> {
    match record {
        Some(record) if record.holder == *holder => match &record.phase {
            Phase::InFlight { fingerprint, .. } | Phase::InDoubt { fingerprint } => {
                Step::write(completed(record, *fingerprint, outcome, keep, now), Settled::Applied)
            }
            Phase::Completed { .. } => Step::unchanged(Settled::Applied), // row 12: the first outcome stands
            Phase::Released { .. } => Step::unchanged(fenced(Some(record))),
        },
        other => Step::unchanged(fenced(other)),
    }
}

/// Rows 13 to 15: the holder gives its lease back.
pub fn release(record: Option<&Record>, holder: &Holder, why: Release, now: Timestamp) -> Step<Settled> {
    match record {
        Some(record) if record.holder == *holder => match (&record.phase, why) {
            (Phase::InFlight { .. }, Release::NotApplied) => {
                Step::write(released(record, now), Settled::Applied)
            }
            (Phase::Released { .. }, Release::NotApplied) => Step::unchanged(Settled::Applied), // row 14
            (Phase::InFlight { fingerprint, .. }, Release::Unknown) => {
                let phase = Phase::InDoubt { fingerprint: *fingerprint };
                Step::write(Record { phase, ..record.clone() }, Settled::Applied)
            }
            (Phase::InDoubt { .. }, Release::Unknown) => Step::unchanged(Settled::Applied),
            _ => Step::unchanged(fenced(Some(record))),
        },
        other => Step::unchanged(fenced(other)),
    }
}

/// Rows 16 and 17: a reconciler or an operator says how an operation in doubt ended.
pub fn resolve(
    record: Option<&Record>,
    fence: Fence,
    resolution: &Resolution,
    now: Timestamp,
) -> Step<Settled> {
    let Some(record) = record.filter(|record| record.fence == fence) else {
        return Step::unchanged(fenced(record));
    };
    let Some(fingerprint) = fingerprint_in_doubt(record, now) else {
        return Step::unchanged(fenced(Some(record)));
    };
    let after = match resolution {
        // The run that was in doubt holds it no longer: should it end after all, this outcome stands, not its own.
        Resolution::Applied(outcome, keep) => {
            let resolved = completed(record, fingerprint, outcome, *keep, now);
            Record { holder: Holder::RESOLVED, ..resolved }
        }
        Resolution::NotApplied => released(record, now),
    };
    Step::write(after, Settled::Applied)
}

/// Row 19: whether a purge may remove the record. Nothing held, answering or in doubt ever is.
pub fn is_removable(record: &Record, now: Timestamp) -> bool {
    match &record.phase {
        Phase::Completed { gone, .. } => gone.is_past(now),
        Phase::Released { until } => until.is_past(now),
        Phase::InFlight { until, .. } => {
            record.on_lapse == OnLapse::TakeOver && until.plus(record.retention).is_past(now)
        }
        Phase::InDoubt { .. } => false,
    }
}

/// Whether nobody knows how the operation ended: in doubt, or lapsed under [`OnLapse::Hold`].
pub fn is_in_doubt(record: &Record, now: Timestamp) -> bool {
    fingerprint_in_doubt(record, now).is_some()
}

fn fingerprint_in_doubt(record: &Record, now: Timestamp) -> Option<Fingerprint> {
    match &record.phase {
        Phase::InDoubt { fingerprint } => Some(*fingerprint),
        Phase::InFlight { fingerprint, until } => {
            (record.on_lapse == OnLapse::Hold && until.is_past(now)).then_some(*fingerprint)
        }
        Phase::Completed { .. } | Phase::Released { .. } => None,
    }
}

/// Whether the key is as good as new: any payload may claim it.
fn is_free(record: &Record, now: Timestamp) -> bool {
    matches!(record.phase, Phase::Released { .. }) || is_removable(record, now)
}

fn completed(
    record: &Record,
    fingerprint: Fingerprint,
    outcome: &Outcome,
    keep: Keep,
    now: Timestamp,
) -> Record {
    let until = now.plus(keep.replay);
    let gone = until.plus(keep.then_reject);
    Record {
        phase: Phase::Completed { fingerprint, outcome: outcome.clone(), until, gone },
        ..record.clone()
    }
}

fn released(record: &Record, now: Timestamp) -> Record {
    Record { phase: Phase::Released { until: now.plus(record.retention) }, ..record.clone() }
}

fn lease_of(address: Address, record: &Record) -> Lease {
    Lease { address, holder: record.holder, fence: record.fence, attempt: record.attempt }
}

/// Row 18: the ending is not for what stands there.
fn fenced(record: Option<&Record>) -> Settled {
    Settled::Fenced(record.map(|record| Standing { phase: record.phase.name(), fence: record.fence }))
}

#[cfg(test)]
mod tests;
