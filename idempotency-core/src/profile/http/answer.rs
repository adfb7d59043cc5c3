//! The answer a replay gives back, and its stored form.
//!
//! ```text
//! whole     = format(1) kind(1) status(2, big-endian) fields body [fields]
//! omitted   = format(1) kind(1) status(2, big-endian) fields
//! tombstone = format(1) kind(1) status(2, big-endian) [location]
//! fields    = count *(name value)
//! name, value, body, location = length bytes
//! count, length               = LEB128, shortest form
//! ```
//! What a store gives back is checked to the last byte before any of it is answered: a stored answer that was cut or
//! mixed up is an error, never a shorter answer.

use std::fmt;

use bytes::Bytes;

pub use self::fields::Fields;
use self::wire::{Reader, framed_len, put_framed, varint_len};
use crate::{Form, Media, Outcome};

mod fields;
mod wire;

const FORMAT: u8 = 1;
/// Format, kind and status.
const PREFIX_BYTES: usize = 4;

/// A whole answer, as every replay gives it back. [`headers::is_replayed`](super::headers::is_replayed) says which
/// fields belong in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status, 100 to 999.
    pub status: u16,
    /// The headers.
    pub headers: Fields,
    /// The body, with its content coding.
    pub body: Bytes,
    /// The trailers; none is not the same as an empty list.
    pub trailers: Option<Fields>,
}

impl Answer {
    /// How the bytes of every outcome of this profile are encoded.
    pub const MEDIA: Media = Media(1);

    /// The outcome that answers replays in full.
    pub fn encode(&self) -> Outcome {
        let kind = if self.trailers.is_some() { Kind::WholeWithTrailers } else { Kind::Whole };
        let mut out = start(self.encoded_len(), kind, self.status);
        self.headers.put(&mut out);
        put_framed(&mut out, &self.body);
        if let Some(trailers) = &self.trailers {
            trailers.put(&mut out);
        }
        Outcome::whole(Self::MEDIA, out)
    }

    /// The length of [`encode`](Self::encode)'s bytes, to hold against
    /// [`Store::max_outcome_bytes`](crate::Store::max_outcome_bytes).
    pub fn encoded_len(&self) -> usize {
        let trailers = self.trailers.as_ref().map_or(0, Fields::stored_len);
        PREFIX_BYTES + self.headers.stored_len() + framed_len(self.body.len()) + trailers
    }

    /// The longest body, in bytes, with which this answer's other parts still fit into `max_outcome_bytes`.
    pub fn body_room(&self, max_outcome_bytes: usize) -> usize {
        let rest = self.encoded_len() - framed_len(self.body.len());
        let room = max_outcome_bytes.saturating_sub(rest);
        room.saturating_sub(varint_len(room))
    }
}

/// Status and headers of an answer whose body was not kept, for a route that chose to replay them all the same.
#[derive(Clone, PartialEq, Eq)]
pub struct Head {
    /// The status, 100 to 999.
    pub status: u16,
    /// The headers.
    pub headers: Fields,
}

impl Head {
    /// The tombstone that replays without a body.
    pub fn encode(&self) -> Outcome {
        let mut out = start(self.encoded_len(), Kind::Omitted, self.status);
        self.headers.put(&mut out);
        Outcome::tombstone(Answer::MEDIA, out)
    }

    /// The length of [`encode`](Self::encode)'s bytes.
    pub fn encoded_len(&self) -> usize {
        PREFIX_BYTES + self.headers.stored_len()
    }
}

/// What is left of an answer that cannot be replayed: enough for a refusal to say where the result is.
#[derive(Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// The status, 100 to 999.
    pub status: u16,
    /// The answer's `Location`, if it had one.
    pub location: Option<Bytes>,
}

impl Tombstone {
    /// The tombstone that is refused as not replayable.
    pub fn encode(&self) -> Outcome {
        let kind = if self.location.is_some() { Kind::TombstoneWithLocation } else { Kind::Tombstone };
        let mut out = start(self.encoded_len(), kind, self.status);
        if let Some(location) = &self.location {
            put_framed(&mut out, location);
        }
        Outcome::tombstone(Answer::MEDIA, out)
    }

    /// The length of [`encode`](Self::encode)'s bytes.
    pub fn encoded_len(&self) -> usize {
        PREFIX_BYTES + self.location.as_ref().map_or(0, |location| framed_len(location.len()))
    }
}

/// Shows lengths and counts only: what was answered is somebody's, and debug output ends in logs.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .field("trailers", &self.trailers.as_ref().map(Fields::len))
            .finish()
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head").field("status", &self.status).field("headers", &self.headers.len()).finish()
    }
}

impl fmt::Debug for Tombstone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tombstone")
            .field("status", &self.status)
            .field("location_bytes", &self.location.as_ref().map(Bytes::len))
            .finish()
    }
}

/// What an outcome of this profile says. How it was stored decides, not the policy of the one who reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// Replay it.
    Whole(Answer),
    /// Replay it with an empty body and [`IDEMPOTENCY_REPLAY`](super::headers::IDEMPOTENCY_REPLAY)`: omitted`.
    Omitted(Head),
    /// Refuse it as not replayable.
    Tombstone(Tombstone),
}

impl Stored {
    /// Reads an outcome. The parts share the outcome's memory; nothing is copied, and no more fields are made room for
    /// than the bytes can hold.
    ///
    /// # Errors
    /// [`AnswerError`] when the bytes are not exactly what one of the `encode`s writes.
    pub fn decode(outcome: &Outcome) -> Result<Self, AnswerError> {
        if outcome.media != Answer::MEDIA {
            return Err(AnswerError::Media);
        }
        let mut reader = Reader::new(&outcome.bytes);
        if reader.byte()? != FORMAT {
            return Err(AnswerError::Format);
        }
        let kind = Kind::of(reader.byte()?).filter(|kind| kind.form() == outcome.form);
        let kind = kind.ok_or(AnswerError::Kind)?;
        let status = u16::from_be_bytes([reader.byte()?, reader.byte()?]);
        if !(100..=999).contains(&status) {
            return Err(AnswerError::Status);
        }
        let stored = match kind {
            Kind::Whole | Kind::WholeWithTrailers => {
                let (headers, body) = (Fields::read(&mut reader)?, reader.framed()?);
                let has_trailers = matches!(kind, Kind::WholeWithTrailers);
                let trailers = has_trailers.then(|| Fields::read(&mut reader)).transpose()?;
                Self::Whole(Answer { status, headers, body, trailers })
            }
            Kind::Omitted => Self::Omitted(Head { status, headers: Fields::read(&mut reader)? }),
            Kind::Tombstone => Self::Tombstone(Tombstone { status, location: None }),
            Kind::TombstoneWithLocation => {
                Self::Tombstone(Tombstone { status, location: Some(reader.framed()?) })
            }
        };
        if reader.left() > 0 {
            return Err(AnswerError::Trailing);
        }
        Ok(stored)
    }
}

/// Why stored bytes are no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Another profile wrote it.
    #[error("the stored outcome is not an HTTP answer")]
    Media,
    /// A later version wrote it.
    #[error("the stored answer has a format this version does not know")]
    Format,
    /// Its kind is unknown, or a tombstone is stored as a whole answer or the other way round.
    #[error("the stored answer's kind is unknown or contradicts its record")]
    Kind,
    /// Its status is outside 100 to 999.
    #[error("the stored answer's status is none")]
    Status,
    /// It was cut, or a length in it is wrong.
    #[error("the stored answer is cut short or a length in it is wrong")]
    Length,
    /// Something follows its end.
    #[error("something follows the end of the stored answer")]
    Trailing,
}

#[derive(Clone, Copy)]
enum Kind {
    Whole = 0,
    WholeWithTrailers = 1,
    Omitted = 2,
    Tombstone = 3,
    TombstoneWithLocation = 4,
}

impl Kind {
    const fn of(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Whole),
            1 => Some(Self::WholeWithTrailers),
            2 => Some(Self::Omitted),
            3 => Some(Self::Tombstone),
            4 => Some(Self::TombstoneWithLocation),
            _ => None,
        }
    }

    const fn form(self) -> Form {
        match self {
            Self::Whole | Self::WholeWithTrailers => Form::Whole,
            Self::Omitted | Self::Tombstone | Self::TombstoneWithLocation => Form::Tombstone,
        }
    }
}

fn start(len: usize, kind: Kind, status: u16) -> Vec<u8> {
    let mut out = Vec::with_capacity(len);
    out.extend([FORMAT, kind as u8]);
    out.extend(status.to_be_bytes());
    out
}

#[cfg(test)]
mod tests;
