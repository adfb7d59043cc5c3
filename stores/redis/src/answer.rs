//! What scripts answer.

use idempotency_core::{
    Address, CorruptRecord, Fence, Record, Settled, StoreError, clock::Timestamp, machine::Step,
};
use redis::Value;

use crate::{error::StrangeAnswer, record};

/// The answer to a transition.
pub(crate) enum Answer {
    /// A claim was granted.
    Granted { attempt: u32, fence: Fence },
    /// Something else was written, or was written before.
    Applied,
    /// Nothing was written.
    Stands(Standing),
}

/// What stands at an address, and when it did.
pub(crate) struct Standing {
    pub(crate) now: Timestamp,
    record: Option<Vec<u8>>,
}

impl Answer {
    pub(crate) fn read(answer: Value) -> Result<Self, StrangeAnswer> {
        match answer {
            Value::Int(1) => Ok(Self::Applied),
            Value::BulkString(words) => {
                let (attempt, fence) = record::grant(&words).ok_or(StrangeAnswer)?;
                Ok(Self::Granted { attempt, fence })
            }
            answer => Standing::read(answer).map(Self::Stands),
        }
    }

    /// Whether an ending or a renewal counted; if nothing was written, the law says whether it did before.
    pub(crate) fn settle(
        self,
        address: &Address,
        law: impl FnOnce(Option<&Record>, Timestamp) -> Step<Settled>,
    ) -> Result<Settled, StoreError> {
        match self {
            Self::Applied => Ok(Settled::Applied),
            Self::Stands(standing) => standing.explain(address, law),
            Self::Granted { .. } => Err(StrangeAnswer.into()),
        }
    }
}

impl Standing {
    pub(crate) fn read(answer: Value) -> Result<Self, StrangeAnswer> {
        let Value::Array(answer) = answer else { return Err(StrangeAnswer) };
        match <[Value; 2]>::try_from(answer) {
            Ok([Value::BulkString(now), record]) => {
                let now = record::time(&now).ok_or(StrangeAnswer)?;
                let record = match record {
                    Value::Nil => None,
                    Value::BulkString(record) => Some(record),
                    _ => return Err(StrangeAnswer),
                };
                Ok(Self { now, record })
            }
            _ => Err(StrangeAnswer),
        }
    }

    /// The record, which stands at `address`.
    pub(crate) fn record(self, address: &Address) -> Result<Option<Record>, CorruptRecord> {
        self.record.map(record::read).transpose().map_err(|corrupt| corrupt.at(*address))
    }

    /// The verdict of the law on what stands there. A record that the law would write over, and the script did not, is
    /// none that the script could read.
    pub(crate) fn explain<V>(
        self,
        address: &Address,
        law: impl FnOnce(Option<&Record>, Timestamp) -> Step<V>,
    ) -> Result<V, StoreError> {
        let now = self.now;
        match law(self.record(address)?.as_ref(), now) {
            Step { write: None, verdict } => Ok(verdict),
            Step { write: Some(_), .. } => Err(CorruptRecord::at_column("format").at(*address).into()),
        }
    }
}
