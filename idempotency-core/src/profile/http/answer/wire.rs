//! Lengths, framed bytes and fields, written and read back.

use bytes::Bytes;

use super::{AnswerError, Fields};

pub(super) fn put_fields(out: &mut Vec<u8>, fields: &Fields) {
    put_varint(out, fields.len());
    for (name, value) in fields {
        put_framed(out, name);
        put_framed(out, value);
    }
}

pub(super) fn put_framed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len());
    out.extend_from_slice(bytes);
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn fields_len(fields: &Fields) -> usize {
    let each = fields.iter().map(|(name, value)| framed_len(name.len()) + framed_len(value.len()));
    varint_len(fields.len()) + each.sum::<usize>()
}

pub(super) const fn framed_len(len: usize) -> usize {
    varint_len(len) + len
}

pub(super) const fn varint_len(number: usize) -> usize {
    (usize::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

/// Reads what the `put`s wrote, and believes no length it has not checked.
pub(super) struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
}

impl<'a> Reader<'a> {
    /// A field's fewest bytes: two lengths and a name, which is never empty.
    const FEWEST_FIELD_BYTES: usize = 3;

    pub(super) const fn new(bytes: &'a Bytes) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn fields(&mut self) -> Result<Fields, AnswerError> {
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

    pub(super) fn framed(&mut self) -> Result<Bytes, AnswerError> {
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

    pub(super) fn byte(&mut self) -> Result<u8, AnswerError> {
        let byte = *self.bytes.get(self.at).ok_or(AnswerError::Length)?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }
}
