//! A record as an item of the table, and reading it back.
//!
//! The attributes bear the names and numbers of [`Columns`], with two differences, both for what an update expression
//! cannot compute:
//!
//! - a record that ended keeps its `attempt` as `last_attempt`, so that the next grant is attempt
//!   `if_not_exists(attempt, 0) + 1` whether it takes over or starts anew;
//! - `retention_seconds` is the retention again, in the unit of the attribute by which DynamoDB expires items.
//!
//! That attribute, [`EXPIRES_AT`], is no part of the record and is never read.

use std::{collections::HashMap, num::ParseIntError, time::Duration};

use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};
use idempotency_core::{
    Address, CorruptRecord, OnLapse, Phase, Record,
    clock::{Timestamp, as_micros},
    columns::{Columns, form_code, integer, on_lapse_code, phase_code},
};

/// An item as the service gives it.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// The partition key.
pub(crate) const ADDRESS: &str = "address";

/// The attribute by which DynamoDB expires items, in seconds since the Unix epoch. Only a record that row 19 of the law
/// lets go has it, and never an earlier time than the law's.
pub(crate) const EXPIRES_AT: &str = "expires_at";

/// For how long after its grant a lease can be renewed without a word to DynamoDB about when its record expires: that
/// time is set so much later at the grant.
pub(crate) const RENEWED_FREELY: Duration = Duration::from_secs(3_600);

/// Reads an item: where it stands, and the record.
pub(crate) fn record(item: &Item) -> Result<(Address, Record), CorruptRecord> {
    let address = required(bytes(item, ADDRESS)?, ADDRESS)?;
    let address = address.try_into().map_err(|_| CorruptRecord::at_column(ADDRESS))?;
    let address = Address::from_bytes(address);
    let record = columns(item).and_then(Columns::read).map_err(|error| error.at(address))?;
    Ok((address, record))
}

/// The attempt of a grant, read from the attributes that it changed.
pub(crate) fn attempt(changed: &Item) -> Result<u32, CorruptRecord> {
    let attempt = required(number(changed, "attempt")?, "attempt")?;
    u32::try_from(attempt).map_err(|cause| CorruptRecord::at_column("attempt").with_cause(cause))
}

/// Every attribute that a record may have beside its address; `None` for what this one has not.
pub(crate) fn attributes(record: &Record) -> [(&'static str, Option<AttributeValue>); 15] {
    let (mut fingerprint, mut until, mut gone, mut kept) = (None, None, None, None);
    match &record.phase {
        Phase::InFlight { fingerprint: asked, until: lapse } => {
            (fingerprint, until) = (Some(asked), Some(*lapse));
        }
        Phase::Completed { fingerprint: asked, outcome, until: end, gone: new } => {
            (fingerprint, until, gone, kept) = (Some(asked), Some(*end), Some(*new), Some(outcome));
        }
        Phase::Released { until: end } => until = Some(*end),
        Phase::InDoubt { fingerprint: asked } => fingerprint = Some(asked),
    }
    let running = matches!(record.phase, Phase::InFlight { .. } | Phase::InDoubt { .. });
    let attempt = Some(n(i64::from(record.attempt)));
    let (attempt, last_attempt) = if running { (attempt, None) } else { (None, attempt) };
    [
        ("phase", Some(n(phase_code(record.phase.name())))),
        ("holder", Some(b(record.holder.as_bytes()))),
        ("fence", Some(n(integer(record.fence.as_u64())))),
        ("attempt", attempt),
        ("last_attempt", last_attempt),
        ("on_lapse", Some(n(on_lapse_code(record.on_lapse)))),
        ("retention", Some(n(integer(as_micros(record.retention))))),
        ("retention_seconds", Some(n(seconds(as_micros(record.retention))))),
        ("fingerprint", fingerprint.map(|asked| b(&asked.to_bytes()))),
        ("until", until.map(|until| n(integer(until.as_micros())))),
        ("gone", gone.map(|gone| n(integer(gone.as_micros())))),
        ("form", kept.map(|outcome| n(form_code(outcome.form)))),
        ("media", kept.map(|outcome| n(i64::from(outcome.media.0)))),
        ("outcome", kept.map(|outcome| b(&outcome.bytes))),
        (EXPIRES_AT, expires_at(record).map(n)),
    ]
}

/// When DynamoDB may expire the record, in seconds since the Unix epoch: never while it is held or in doubt.
pub(crate) fn expires_at(record: &Record) -> Option<i64> {
    let over = match &record.phase {
        Phase::InFlight { until, .. } if record.on_lapse == OnLapse::TakeOver => {
            // A fence is not less than the time of its grant.
            let renewed = Timestamp::from_micros(record.fence.as_u64()).plus(RENEWED_FREELY);
            (*until).max(renewed).plus(record.retention)
        }
        Phase::Completed { gone, .. } => *gone,
        Phase::Released { until } => *until,
        Phase::InFlight { .. } | Phase::InDoubt { .. } => return None,
    };
    Some(seconds(over.as_micros()))
}

/// Whole seconds, rounded up: an item expires late rather than early.
pub(crate) fn seconds(micros: u64) -> i64 {
    integer(micros.div_ceil(1_000_000))
}

/// The attribute value of a number.
pub(crate) fn n(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// The attribute value of bytes.
pub(crate) fn b(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

fn columns(item: &Item) -> Result<Columns, CorruptRecord> {
    let phase = required(number(item, "phase")?, "phase")?;
    let (attempt, other) = match phase {
        2 | 3 => ("last_attempt", "attempt"),
        _ => ("attempt", "last_attempt"),
    };
    if matches!(phase, 1..=4) && item.contains_key(other) {
        return Err(CorruptRecord::at_column("attempt"));
    }
    Ok(Columns {
        phase,
        holder: required(bytes(item, "holder")?, "holder")?.to_vec().into(),
        fence: required(number(item, "fence")?, "fence")?,
        attempt: required(number(item, attempt)?, "attempt")?,
        on_lapse: required(number(item, "on_lapse")?, "on_lapse")?,
        retention: required(number(item, "retention")?, "retention")?,
        fingerprint: bytes(item, "fingerprint")?.map(|bytes| bytes.to_vec().into()),
        until: number(item, "until")?,
        gone: number(item, "gone")?,
        form: number(item, "form")?,
        media: number(item, "media")?,
        outcome: bytes(item, "outcome")?.map(|bytes| bytes.to_vec().into()),
    })
}

fn number(item: &Item, name: &'static str) -> Result<Option<i64>, CorruptRecord> {
    match item.get(name) {
        None => Ok(None),
        Some(AttributeValue::N(digits)) => {
            let parsed: Result<i64, ParseIntError> = digits.parse();
            parsed.map(Some).map_err(|cause| CorruptRecord::at_column(name).with_cause(cause))
        }
        Some(_) => Err(CorruptRecord::at_column(name)),
    }
}

fn bytes<'i>(item: &'i Item, name: &'static str) -> Result<Option<&'i [u8]>, CorruptRecord> {
    match item.get(name) {
        None => Ok(None),
        Some(AttributeValue::B(blob)) => Ok(Some(blob.as_ref())),
        Some(_) => Err(CorruptRecord::at_column(name)),
    }
}

fn required<T>(value: Option<T>, name: &'static str) -> Result<T, CorruptRecord> {
    value.ok_or(CorruptRecord::at_column(name))
}

#[cfg(test)]
mod tests;
