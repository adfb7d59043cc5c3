//! Flaws in what is recorded of a payload, and in what is compared with it.

use idempotency_core::{Fingerprint, Operation, Phase, Record};

use crate::flaw::Flaw;

/// The operation as the flaw reads it where `record` stands.
pub(crate) fn heard(flaw: Flaw, op: &Operation, record: Option<&Record>) -> Operation {
    let current = Operation::new(*op.address(), *op.fingerprint());
    match (flaw, op.previous(), record.and_then(recorded)) {
        (Flaw::PreviousIsIgnored, ..) => current,
        (Flaw::PreviousIsTrusted, Some(_), Some(recorded)) => current.with_previous(recorded),
        _ => op.clone(),
    }
}

/// Writes the wrong payload of the two when a claim is granted again where `record` stood.
pub(crate) fn miswrite(flaw: Flaw, write: &mut Record, record: &Record, op: &Operation) {
    let Some(recorded) = recorded(record) else { return };
    let taken_over = write.attempt > record.attempt;
    let Phase::InFlight { fingerprint, .. } = &mut write.phase else { return };
    match flaw {
        Flaw::AdoptionRewritesThePayload if !taken_over => *fingerprint = *op.fingerprint(),
        Flaw::TakeoverKeepsThePayload if taken_over => *fingerprint = recorded,
        _ => {}
    }
}

fn recorded(record: &Record) -> Option<Fingerprint> {
    match record.phase {
        Phase::InFlight { fingerprint, .. }
        | Phase::Completed { fingerprint, .. }
        | Phase::InDoubt { fingerprint } => Some(fingerprint),
        Phase::Released { .. } => None,
    }
}
