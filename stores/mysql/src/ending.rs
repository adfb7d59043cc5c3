//! Endings: the write that decides one, and why it did not count.

use idempotency_core::{
    Address, Fate, Keep, Lease, Outcome, Record, Settled, StoreError, StoreErrorKind,
    clock::{Timestamp, as_micros},
    columns::{form_code, integer},
    machine::Step,
};

use crate::{
    MySqlStore,
    statements::{Statement, Value},
    store::{TIMES, overtaken},
};

impl MySqlStore {
    /// Sends the deciding write of an ending. If it matches nothing, `law` says why.
    pub(crate) async fn settle(
        &self,
        address: &Address,
        write: &Statement,
        values: &[Value<'_>],
        law: impl Fn(Option<&Record>, Timestamp) -> Step<Settled>,
    ) -> Result<Settled, StoreError> {
        let deadline = self.lines.deadline();
        for time in 0..TIMES {
            if time > 0 {
                self.lines.repeated();
            }
            if self.lines.ask(deadline, || write.with(values.iter().copied())).await?.matched > 0 {
                return Ok(Settled::Applied);
            }
            let found = self.record_at(deadline, address).await?;
            if let Some(verdict) = explain(found.as_ref(), &law) {
                return Ok(verdict);
            }
        }
        Err(overtaken())
    }

    pub(crate) fn check_size(&self, outcome: &Outcome) -> Result<(), StoreError> {
        if outcome.bytes.len() <= self.max_outcome_bytes {
            Ok(())
        } else {
            Err(StoreError::new(StoreErrorKind::TooLarge, Fate::NotApplied))
        }
    }
}

/// The values of `sql/complete.sql`.
pub(crate) fn completion<'v>(lease: &'v Lease, outcome: &'v Outcome, keep: Keep) -> [Value<'v>; 9] {
    let [replay, replay_again, reject, reject_again, form, media, bytes] = ended_with(outcome, keep);
    [
        replay,
        replay_again,
        reject,
        reject_again,
        form,
        media,
        bytes,
        Value::Bytes(lease.address.as_bytes()),
        Value::Bytes(lease.holder.as_bytes()),
    ]
}

/// What a completed record has, as `sql/complete.sql` and `sql/resolve_applied.sql` take it.
pub(crate) fn ended_with(outcome: &Outcome, keep: Keep) -> [Value<'_>; 7] {
    let replay = Value::Integer(integer(as_micros(keep.replay)));
    let reject = Value::Integer(integer(as_micros(keep.then_reject)));
    let (form, media) = (Value::Integer(form_code(outcome.form)), Value::Integer(i64::from(outcome.media.0)));
    [replay, replay, reject, reject, form, media, Value::Bytes(&outcome.bytes)]
}

/// What the law says of a record that an ending did not change. Nothing, if it changed since so that it would now.
pub(crate) fn explain(
    found: Option<&(Record, Timestamp)>,
    law: impl Fn(Option<&Record>, Timestamp) -> Step<Settled>,
) -> Option<Settled> {
    let now = found.map_or(Timestamp::from_micros(0), |(_, now)| *now); // of nothing, any time says the same
    match law(found.map(|(record, _)| record), now) {
        Step { write: None, verdict } => Some(verdict),
        Step { write: Some(_), .. } => None,
    }
}
