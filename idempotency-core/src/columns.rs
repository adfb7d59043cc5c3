//! A record as columns: the numbers that stand for words, and reading them back.
//!
//! Every store that keeps a record in columns, fields or attributes keeps these, under these names. Times and durations
//! are microseconds, which fit a signed 64-bit column by their construction.

use std::{error::Error, fmt, time::Duration};

use bytes::Bytes;

use crate::{
    Address, Fence, Fingerprint, Form, Holder, Media, OnLapse, Outcome, Phase, PhaseName, Record,
    clock::Timestamp,
};

/// A record as its store keeps it. What a phase has no use for is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// [`phase_code`]: 1 in flight, 2 completed, 3 released, 4 in doubt.
    pub phase: i64,
    /// The 16 bytes of the holder.
    pub holder: Bytes,
    /// The fence of the last grant.
    pub fence: i64,
    /// 1 for a first run.
    pub attempt: i64,
    /// [`on_lapse_code`]: 0 take over, 1 hold.
    pub on_lapse: i64,
    /// Microseconds.
    pub retention: i64,
    /// [`Fingerprint::to_bytes`], in every phase but released.
    pub fingerprint: Option<Bytes>,
    /// Microseconds since the Unix epoch, in every phase but in doubt.
    pub until: Option<i64>,
    /// Microseconds since the Unix epoch; like the three below only in the phase completed.
    pub gone: Option<i64>,
    /// [`form_code`]: 0 whole, 1 tombstone.
    pub form: Option<i64>,
    /// The outcome's media tag.
    pub media: Option<i64>,
    /// The outcome's bytes.
    pub outcome: Option<Bytes>,
}

impl Columns {
    /// The record these columns hold.
    ///
    /// # Errors
    /// [`CorruptRecord`] names the first column that a record cannot have: one out of its range, one that is absent, or
    /// one that the phase has no use for.
    pub fn read(self) -> Result<Record, CorruptRecord> {
        Ok(Record {
            holder: Holder::from_bytes(fixed("holder", &self.holder)?),
            fence: Fence::from_u64(number("fence", self.fence)?),
            attempt: number("attempt", self.attempt)?,
            on_lapse: match self.on_lapse {
                0 => OnLapse::TakeOver,
                1 => OnLapse::Hold,
                _ => return Err(CorruptRecord::at_column("on_lapse")),
            },
            retention: Duration::from_micros(number("retention", self.retention)?),
            phase: self.phase()?,
        })
    }

    fn phase(self) -> Result<Phase, CorruptRecord> {
        let phase = [PhaseName::InFlight, PhaseName::Completed, PhaseName::Released, PhaseName::InDoubt]
            .into_iter()
            .find(|phase| phase_code(*phase) == self.phase)
            .ok_or(CorruptRecord::at_column("phase"))?;
        self.refuse_what_is_beside(phase)?;
        let fingerprint = || {
            let bytes = present("fingerprint", self.fingerprint.as_deref())?;
            Fingerprint::from_bytes(bytes)
                .map_err(|cause| CorruptRecord::at_column("fingerprint").with_cause(cause))
        };
        Ok(match phase {
            PhaseName::InFlight => {
                Phase::InFlight { fingerprint: fingerprint()?, until: time("until", self.until)? }
            }
            PhaseName::Completed => Phase::Completed {
                fingerprint: fingerprint()?,
                until: time("until", self.until)?,
                gone: time("gone", self.gone)?,
                outcome: self.outcome()?,
            },
            PhaseName::Released => Phase::Released { until: time("until", self.until)? },
            PhaseName::InDoubt => Phase::InDoubt { fingerprint: fingerprint()? },
        })
    }

    fn outcome(self) -> Result<Outcome, CorruptRecord> {
        let form = match present("form", self.form)? {
            0 => Form::Whole,
            1 => Form::Tombstone,
            _ => return Err(CorruptRecord::at_column("form")),
        };
        let media = Media(number("media", present("media", self.media)?)?);
        Ok(Outcome { form, media, bytes: present("outcome", self.outcome)? })
    }

    fn refuse_what_is_beside(&self, phase: PhaseName) -> Result<(), CorruptRecord> {
        let completed = phase == PhaseName::Completed;
        let beside = [
            ("fingerprint", self.fingerprint.is_some() && phase == PhaseName::Released),
            ("until", self.until.is_some() && phase == PhaseName::InDoubt),
            ("gone", self.gone.is_some() && !completed),
            ("form", self.form.is_some() && !completed),
            ("media", self.media.is_some() && !completed),
            ("outcome", self.outcome.is_some() && !completed),
        ];
        match beside.into_iter().find(|(_, is_beside)| *is_beside) {
            Some((column, _)) => Err(CorruptRecord::at_column(column)),
            None => Ok(()),
        }
    }
}

/// The number that stands for a phase.
pub const fn phase_code(phase: PhaseName) -> i64 {
    match phase {
        PhaseName::InFlight => 1,
        PhaseName::Completed => 2,
        PhaseName::Released => 3,
        PhaseName::InDoubt => 4,
    }
}

/// The number that stands for what a lapse means.
pub const fn on_lapse_code(on_lapse: OnLapse) -> i64 {
    match on_lapse {
        OnLapse::TakeOver => 0,
        OnLapse::Hold => 1,
    }
}

/// The number that stands for an outcome's form.
pub const fn form_code(form: Form) -> i64 {
    match form {
        Form::Whole => 0,
        Form::Tombstone => 1,
    }
}

/// The column of a time or a duration in microseconds.
pub fn integer(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// The number of a column that is not negative but by a clock set before 1970.
pub fn natural(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

fn present<T>(column: &'static str, value: Option<T>) -> Result<T, CorruptRecord> {
    value.ok_or(CorruptRecord::at_column(column))
}

fn number<N: TryFrom<i64>>(column: &'static str, value: i64) -> Result<N, CorruptRecord> {
    N::try_from(value).map_err(|_| CorruptRecord::at_column(column))
}

fn time(column: &'static str, value: Option<i64>) -> Result<Timestamp, CorruptRecord> {
    Ok(Timestamp::from_micros(number(column, present(column, value)?)?))
}

fn fixed<const N: usize>(column: &'static str, bytes: &[u8]) -> Result<[u8; N], CorruptRecord> {
    bytes.try_into().map_err(|_| CorruptRecord::at_column(column))
}

/// A stored record that cannot be read: the source of a [`StoreErrorKind::Corrupt`](crate::StoreErrorKind::Corrupt).
#[derive(Debug, thiserror::Error)]
pub struct CorruptRecord {
    /// Where it stands; `None` when the address itself cannot be read.
    pub address: Option<Address>,
    /// The column that cannot be read.
    pub column: &'static str,
    /// What reading it met, when that says more.
    #[source]
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl CorruptRecord {
    /// A record somewhere whose `column` cannot be read.
    pub const fn at_column(column: &'static str) -> Self {
        Self { address: None, column, cause: None }
    }

    /// The same, known to stand at `address`.
    #[must_use]
    pub fn at(self, address: Address) -> Self {
        Self { address: Some(address), ..self }
    }

    /// The same, with what reading it met.
    #[must_use]
    pub fn with_cause(self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }
}

impl fmt::Display for CorruptRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column;
        match self.address {
            Some(address) => write!(f, "the record at {address} has no readable {column}"),
            None => write!(f, "a record has no readable {column}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;

    fn completed() -> Columns {
        let asked = Fingerprint::builder().part(Part::Body, b"a").build();
        Columns {
            phase: 2,
            holder: Bytes::from_static(&[7; 16]),
            fence: 3,
            attempt: 1,
            on_lapse: 1,
            retention: 60,
            fingerprint: Some(asked.to_bytes().to_vec().into()),
            until: Some(100),
            gone: Some(200),
            form: Some(1),
            media: Some(9),
            outcome: Some(Bytes::from_static(b"done")),
        }
    }

    fn released() -> Columns {
        let bare =
            Columns { fingerprint: None, gone: None, form: None, media: None, outcome: None, ..completed() };
        Columns { phase: 3, ..bare }
    }

    #[test]
    fn a_record_is_read_as_it_was_kept() {
        let record = completed().read().unwrap();
        assert_eq!((record.fence.as_u64(), record.attempt, record.on_lapse), (3, 1, OnLapse::Hold));
        let Phase::Completed { outcome, until, gone, .. } = record.phase else { panic!("{record:?}") };
        assert_eq!(outcome, Outcome::tombstone(Media(9), "done"));
        assert_eq!((until.as_micros(), gone.as_micros()), (100, 200));
        assert_eq!(released().read().unwrap().phase, Phase::Released { until: Timestamp::from_micros(100) });
    }

    #[test]
    fn what_no_record_can_have_is_named() {
        let spoilt: [(&str, Columns); 14] = [
            ("phase", Columns { phase: 5, ..completed() }),
            ("holder", Columns { holder: Bytes::from_static(&[7; 15]), ..completed() }),
            ("fence", Columns { fence: -1, ..completed() }),
            ("attempt", Columns { attempt: 1 << 32, ..completed() }),
            ("on_lapse", Columns { on_lapse: 2, ..completed() }),
            ("retention", Columns { retention: -1, ..completed() }),
            ("fingerprint", Columns { fingerprint: Some(Bytes::new()), ..completed() }),
            ("until", Columns { until: None, ..completed() }),
            ("gone", Columns { gone: Some(-1), ..completed() }),
            ("form", Columns { form: Some(2), ..completed() }),
            ("media", Columns { media: Some(1 << 16), ..completed() }),
            ("outcome", Columns { outcome: None, ..completed() }),
            ("outcome", Columns { outcome: Some(Bytes::new()), ..released() }),
            ("fingerprint", Columns { fingerprint: completed().fingerprint, ..released() }),
        ];
        for (column, columns) in spoilt {
            assert_eq!(columns.read().unwrap_err().column, column);
        }
    }
}
