//! The answer a replay gives back, and its stored form.
//!
//! ```text
//! stored  = format(1) kind(1) status(2, big-endian) fields [body [fields]]
//! fields  = count *(name value)
//! name, value, body = length bytes
//! count, length     = LEB128, shortest form
//! ```
//! What a store gives back is checked to the last byte before any of it is answered: a stored answer that was cut or
//! mixed up is an error, never a shorter answer.

use bytes::Bytes;

use crate::{Form, Media, Outcome};

const FORMAT: u8 = 1;
/// Format, kind and status.
const PREFIX_BYTES: usize = 4;

/// Header or trailer fields: names in lower case, order and repeats kept.
pub type Fields = Vec<(Bytes, Bytes)>;

/// A whole answer, as every replay gives it back. [`headers::is_replayed`](super::headers::is_replayed) says which
/// fields belong in it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        put_fields(&mut out, &self.headers);
        put_framed(&mut out, &self.body);
        if let Some(trailers) = &self.trailers {
            put_fields(&mut out, trailers);
        }
        Outcome::whole(Self::MEDIA, out)
    }

    /// The length of [`encode`](Self::encode)'s bytes, to hold against
    /// [`Store::max_outcome_bytes`](crate::Store::max_outcome_bytes).
    pub fn encoded_len(&self) -> usize {
        let trailers = self.trailers.as_ref().map_or(0, fields_len);
        PREFIX_BYTES + fields_len(&self.headers) + framed_len(self.body.len()) + trailers
    }

    /// The longest body, in bytes, with which this answer's other parts still fit into `max_outcome_bytes`.
    pub fn body_room(&self, max_outcome_bytes: usize) -> usize {
        let rest = self.encoded_len() - framed_len(self.body.len());
        let room = max_outcome_bytes.saturating_sub(rest);
        room.saturating_sub(varint_len(room))
    }
}

/// Status and headers of an answer whose body was not kept, for a route that chose to replay them all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        put_fields(&mut out, &self.headers);
        Outcome::tombstone(Answer::MEDIA, out)
    }

    /// The length of [`encode`](Self::encode)'s bytes.
    pub fn encoded_len(&self) -> usize {
        PREFIX_BYTES + fields_len(&self.headers)
    }
}

/// What is left of an answer that cannot be replayed: enough for a refusal to say where the result is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// The status, 100 to 999.
    pub status: u16,
    /// The answer's `Location`, if it had one.
    pub location: Option<Bytes>,
}

impl Tombstone {
    /// The tombstone that is refused as not replayable.
    pub fn encode(&self) -> Outcome {
        let mut out = start(self.encoded_len(), Kind::Tombstone, self.status);
        put_fields(&mut out, &self.fields());
        Outcome::tombstone(Answer::MEDIA, out)
    }

    /// The length of [`encode`](Self::encode)'s bytes.
    pub fn encoded_len(&self) -> usize {
        PREFIX_BYTES + fields_len(&self.fields())
    }

    fn fields(&self) -> Fields {
        let location = self.location.clone();
        location.into_iter().map(|value| (Bytes::from_static(LOCATION), value)).collect()
    }
}

const LOCATION: &[u8] = b"location";

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
        let mut reader = Reader { bytes: &outcome.bytes, at: 0 };
        if reader.byte()? != FORMAT {
            return Err(AnswerError::Format);
        }
        let kind =
            Kind::of(reader.byte()?).filter(|kind| kind.form() == outcome.form).ok_or(AnswerError::Kind)?;
        let status = u16::from_be_bytes([reader.byte()?, reader.byte()?]);
        if !(100..=999).contains(&status) {
            return Err(AnswerError::Status);
        }
        let headers = reader.fields()?;
        let stored = match kind {
            Kind::Whole => Self::Whole(Answer { status, headers, body: reader.framed()?, trailers: None }),
            Kind::WholeWithTrailers => {
                let body = reader.framed()?;
                Self::Whole(Answer { status, headers, body, trailers: Some(reader.fields()?) })
            }
            Kind::Omitted => Self::Omitted(Head { status, headers }),
            Kind::Tombstone => {
                let location = headers.into_iter().find(|(name, _)| name == LOCATION).map(|(_, value)| value);
                Self::Tombstone(Tombstone { status, location })
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
}

impl Kind {
    const fn of(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Whole),
            1 => Some(Self::WholeWithTrailers),
            2 => Some(Self::Omitted),
            3 => Some(Self::Tombstone),
            _ => None,
        }
    }

    const fn form(self) -> Form {
        match self {
            Self::Whole | Self::WholeWithTrailers => Form::Whole,
            Self::Omitted | Self::Tombstone => Form::Tombstone,
        }
    }
}

fn start(len: usize, kind: Kind, status: u16) -> Vec<u8> {
    let mut out = Vec::with_capacity(len);
    out.extend([FORMAT, kind as u8]);
    out.extend(status.to_be_bytes());
    out
}

fn put_fields(out: &mut Vec<u8>, fields: &Fields) {
    put_varint(out, fields.len());
    for (name, value) in fields {
        put_framed(out, name);
        put_framed(out, value);
    }
}

fn put_framed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn fields_len(fields: &Fields) -> usize {
    let each = fields.iter().map(|(name, value)| framed_len(name.len()) + framed_len(value.len()));
    varint_len(fields.len()) + each.sum::<usize>()
}

const fn framed_len(len: usize) -> usize {
    varint_len(len) + len
}

const fn varint_len(number: usize) -> usize {
    (usize::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
}

impl Reader<'_> {
    /// A field's fewest bytes: two lengths and a name, which is never empty.
    const FEWEST_FIELD_BYTES: usize = 3;

    fn fields(&mut self) -> Result<Fields, AnswerError> {
        let count = self.varint()?;
        if count > self.left() / Self::FEWEST_FIELD_BYTES {
            return Err(AnswerError::Length);
        }
        let mut fields = Fields::with_capacity(count);
        for _ in 0..count {
            let name = self.framed()?;
            if name.is_empty() {
                return Err(AnswerError::Length);
            }
            fields.push((name, self.framed()?));
        }
        Ok(fields)
    }

    fn framed(&mut self) -> Result<Bytes, AnswerError> {
        let len = self.varint()?;
        if len > self.left() {
            return Err(AnswerError::Length);
        }
        let start = self.at;
        self.at += len;
        Ok(self.bytes.slice(start..self.at))
    }

    fn varint(&mut self) -> Result<usize, AnswerError> {
        let mut number: usize = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.byte()?;
            let digit = usize::from(byte & 0x7f);
            if digit << shift >> shift != digit || (byte == 0 && shift > 0) {
                return Err(AnswerError::Length);
            }
            number |= digit << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(AnswerError::Length)
    }

    fn byte(&mut self) -> Result<u8, AnswerError> {
        let byte = *self.bytes.get(self.at).ok_or(AnswerError::Length)?;
        self.at += 1;
        Ok(byte)
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }
}

#[cfg(test)]
mod tests;
