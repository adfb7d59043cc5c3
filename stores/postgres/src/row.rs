//! Reading rows back into records.
//!
//! What is refused here is what `sql/readable.sql` refuses.

use std::time::Duration;

use idempotency_core::{
    Address, CorruptRecord, Fence, Record,
    clock::Timestamp,
    columns::{Columns, natural},
};
use sqlx::{Row, postgres::PgRow};

/// `sql/record_row.sql`. Whatever the tables say, a column that is absent is told by its name.
type Found = (Head, Tail, i64);
type Head = (Option<i16>, Option<Vec<u8>>, Option<i64>, Option<i64>, Option<i16>, Option<i64>);
type Tail = (Option<Vec<u8>>, Option<i64>, Option<i64>, Option<i16>, Option<i32>, Option<Vec<u8>>);

/// What `sql/schema_claim.sql` answers.
type Answer = (Option<i64>, Option<i64>, Option<i64>, Option<Found>);

/// What a claim came to.
#[derive(Debug)]
pub(crate) enum Claimed {
    /// Granted, for this long by the time that it was answered.
    Granted { fence: Fence, attempt: u32, stood: Duration },
    /// Not granted, because of what stood there at this time.
    Refused(Record, Timestamp),
    /// Neither: what stood there was gone before it was read.
    Nothing,
}

impl Claimed {
    /// Reads an answer to `sql/claim.sql`.
    pub(crate) fn read(row: &PgRow, address: &Address) -> Result<Self, CorruptRecord> {
        let unread = |cause| CorruptRecord::at_column("fence").at(*address).with_cause(cause);
        let (fence, attempt, stood, found): Answer = row.try_get(0).map_err(unread)?;
        if let (Some(fence), Some(attempt)) = (fence, attempt) {
            let attempt = u32::try_from(attempt);
            return Ok(Self::Granted {
                fence: Fence::from_u64(natural(fence)),
                attempt: attempt.map_err(|_| CorruptRecord::at_column("attempt").at(*address))?,
                stood: Duration::from_micros(natural(stood.unwrap_or(0))),
            });
        }
        let Some(found) = found else { return Ok(Self::Nothing) };
        let (record, now) = read(found).map_err(|error| error.at(*address))?;
        Ok(Self::Refused(record, now))
    }
}

/// Reads the record at `address`, and the time at which the server read it, from a row that has nothing else.
pub(crate) fn record(row: &PgRow, address: &Address) -> Result<(Record, Timestamp), CorruptRecord> {
    found(row, 0).and_then(read).map_err(|error| error.at(*address))
}

/// Reads a record and where it stands.
pub(crate) fn listed(row: &PgRow) -> Result<(Address, Record), CorruptRecord> {
    let address: &[u8] =
        row.try_get(0).map_err(|cause| CorruptRecord::at_column("address").with_cause(cause))?;
    let address = address.try_into().map_err(|_| CorruptRecord::at_column("address"))?;
    let address = Address::from_bytes(address);
    let (record, _) = found(row, 1).and_then(read).map_err(|error| error.at(address))?;
    Ok((address, record))
}

fn found(row: &PgRow, column: usize) -> Result<Found, CorruptRecord> {
    row.try_get(column).map_err(|cause| CorruptRecord::at_column("phase").with_cause(cause))
}

fn read(found: Found) -> Result<(Record, Timestamp), CorruptRecord> {
    let ((phase, holder, fence, attempt, on_lapse, retention), tail, now) = found;
    let (fingerprint, until, gone, form, media, outcome) = tail;
    let columns = Columns {
        phase: required("phase", phase)?.into(),
        holder: required("holder", holder)?.into(),
        fence: required("fence", fence)?,
        attempt: required("attempt", attempt)?,
        on_lapse: required("on_lapse", on_lapse)?.into(),
        retention: required("retention", retention)?,
        fingerprint: fingerprint.map(Into::into),
        until,
        gone,
        form: form.map(Into::into),
        media: media.map(Into::into),
        outcome: outcome.map(Into::into),
    };
    Ok((columns.read()?, Timestamp::from_micros(natural(now))))
}

fn required<T>(column: &'static str, value: Option<T>) -> Result<T, CorruptRecord> {
    value.ok_or(CorruptRecord::at_column(column))
}
