//! Reading a row back into a record.
//!
//! What is refused here is what the `readable` column of `sql/records.sql` refuses.

use idempotency_core::{
    Address, CorruptRecord, Record,
    clock::Timestamp,
    columns::{Columns, natural},
};
use sqlx::{Decode, MySql, Row, Type, mysql::MySqlRow};

/// Reads a record and where it stands.
pub(crate) fn record(row: &MySqlRow) -> Result<(Address, Record), CorruptRecord> {
    let address: &[u8] = required(row, "address")?;
    let address = address.try_into().map_err(|_| CorruptRecord::at_column("address"))?;
    let address = Address::from_bytes(address);
    let record = columns(row).and_then(Columns::read).map_err(|error| error.at(address))?;
    Ok((address, record))
}

/// Reads a record and the time at which the server read it.
pub(crate) fn record_and_time(row: &MySqlRow) -> Result<(Record, Timestamp), CorruptRecord> {
    let (_, record) = record(row)?;
    Ok((record, Timestamp::from_micros(natural(required(row, "read_at")?))))
}

fn columns(row: &MySqlRow) -> Result<Columns, CorruptRecord> {
    Ok(Columns {
        phase: required(row, "phase")?,
        holder: required::<Vec<u8>>(row, "holder")?.into(),
        fence: required(row, "fence")?,
        attempt: required(row, "attempt")?,
        on_lapse: required(row, "on_lapse")?,
        retention: required(row, "retention")?,
        fingerprint: optional::<Vec<u8>>(row, "fingerprint")?.map(Into::into),
        until: optional(row, "until")?,
        gone: optional(row, "gone")?,
        form: optional(row, "form")?,
        media: optional(row, "media")?,
        outcome: optional::<Vec<u8>>(row, "outcome")?.map(Into::into),
    })
}

fn required<'r, T: Decode<'r, MySql> + Type<MySql>>(
    row: &'r MySqlRow,
    column: &'static str,
) -> Result<T, CorruptRecord> {
    optional(row, column)?.ok_or(CorruptRecord::at_column(column))
}

fn optional<'r, T: Decode<'r, MySql> + Type<MySql>>(
    row: &'r MySqlRow,
    column: &'static str,
) -> Result<Option<T>, CorruptRecord> {
    row.try_get(column).map_err(|cause| CorruptRecord::at_column(column).with_cause(cause))
}
