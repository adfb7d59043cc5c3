//! Records as columns: the numbers that stand for words, and reading them back.
//!
//! What is refused here is what the `readable` column of `sql/schema.sql` refuses.

use std::time::Duration;

use idempotency_core::{
    Address, Fence, Fingerprint, Form, Holder, Media, OnLapse, Outcome, Phase, Record, clock::Timestamp,
};
use sqlx::{Decode, Row, Sqlite, Type, sqlite::SqliteRow};

use crate::CorruptRecord;

const IN_FLIGHT: i64 = 1;
const COMPLETED: i64 = 2;
const RELEASED: i64 = 3;
const IN_DOUBT: i64 = 4;

/// The column of a time or a duration in microseconds, which fit by their construction.
pub(crate) fn integer(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// The number of a column that is not negative but by a clock set before 1970.
pub(crate) fn natural(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

pub(crate) const fn on_lapse_code(on_lapse: OnLapse) -> i64 {
    match on_lapse {
        OnLapse::TakeOver => 0,
        OnLapse::Hold => 1,
    }
}

pub(crate) const fn form_code(form: Form) -> i64 {
    match form {
        Form::Whole => 0,
        Form::Tombstone => 1,
    }
}

/// Reads a record and where it stands.
pub(crate) fn record(row: &SqliteRow) -> Result<(Address, Record), CorruptRecord> {
    let bytes = Columns { row, address: None }.bytes("address")?;
    let address = Address::from_bytes(bytes);
    let columns = Columns { row, address: Some(address) };
    let record = Record {
        phase: columns.phase()?,
        holder: Holder::from_bytes(columns.bytes("holder")?),
        fence: Fence::from_u64(columns.number("fence")?),
        attempt: columns.number("attempt")?,
        on_lapse: columns.on_lapse()?,
        retention: Duration::from_micros(columns.number("retention")?),
    };
    Ok((address, record))
}

struct Columns<'r> {
    row: &'r SqliteRow,
    address: Option<Address>,
}

impl<'r> Columns<'r> {
    fn phase(&self) -> Result<Phase, CorruptRecord> {
        let phase = match self.value("phase")? {
            IN_FLIGHT => Phase::InFlight { fingerprint: self.fingerprint()?, until: self.time("until")? },
            COMPLETED => Phase::Completed {
                fingerprint: self.fingerprint()?,
                outcome: self.outcome()?,
                until: self.time("until")?,
                gone: self.time("gone")?,
            },
            RELEASED => Phase::Released { until: self.time("until")? },
            IN_DOUBT => Phase::InDoubt { fingerprint: self.fingerprint()? },
            _ => return Err(self.corrupt("phase")),
        };
        for column in absent_columns(&phase) {
            let value: Option<&[u8]> =
                self.row.try_get_unchecked(column).map_err(|cause| self.caused(column, cause))?;
            if value.is_some() {
                return Err(self.corrupt(column));
            }
        }
        Ok(phase)
    }

    fn fingerprint(&self) -> Result<Fingerprint, CorruptRecord> {
        let bytes: &[u8] = self.value("fingerprint")?;
        Fingerprint::from_bytes(bytes).map_err(|cause| self.caused("fingerprint", cause))
    }

    fn outcome(&self) -> Result<Outcome, CorruptRecord> {
        let form = match self.value("form")? {
            0_i64 => Form::Whole,
            1 => Form::Tombstone,
            _ => return Err(self.corrupt("form")),
        };
        let bytes: Vec<u8> = self.value("outcome")?;
        Ok(Outcome { form, media: Media(self.number("media")?), bytes: bytes.into() })
    }

    fn on_lapse(&self) -> Result<OnLapse, CorruptRecord> {
        match self.value("on_lapse")? {
            0_i64 => Ok(OnLapse::TakeOver),
            1 => Ok(OnLapse::Hold),
            _ => Err(self.corrupt("on_lapse")),
        }
    }

    fn time(&self, column: &'static str) -> Result<Timestamp, CorruptRecord> {
        Ok(Timestamp::from_micros(self.number(column)?))
    }

    fn number<N: TryFrom<i64>>(&self, column: &'static str) -> Result<N, CorruptRecord> {
        let value: i64 = self.value(column)?;
        N::try_from(value).map_err(|_| self.corrupt(column))
    }

    fn bytes<const N: usize>(&self, column: &'static str) -> Result<[u8; N], CorruptRecord> {
        let value: &[u8] = self.value(column)?;
        value.try_into().map_err(|_| self.corrupt(column))
    }

    /// The driver reads NULL as zero or as no bytes unless it is asked for an `Option`.
    fn value<T: Decode<'r, Sqlite> + Type<Sqlite>>(&self, column: &'static str) -> Result<T, CorruptRecord> {
        let value: Option<T> = self.row.try_get(column).map_err(|cause| self.caused(column, cause))?;
        value.ok_or_else(|| self.corrupt(column))
    }

    fn corrupt(&self, column: &'static str) -> CorruptRecord {
        CorruptRecord { address: self.address, column, cause: None }
    }

    fn caused(
        &self,
        column: &'static str,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> CorruptRecord {
        CorruptRecord { cause: Some(cause.into()), ..self.corrupt(column) }
    }
}

/// The columns in which a phase holds nothing.
const fn absent_columns(phase: &Phase) -> &'static [&'static str] {
    match phase {
        Phase::InFlight { .. } => &["gone", "form", "media", "outcome"],
        Phase::Completed { .. } => &[],
        Phase::Released { .. } => &["fingerprint", "gone", "form", "media", "outcome"],
        Phase::InDoubt { .. } => &["until", "gone", "form", "media", "outcome"],
    }
}
