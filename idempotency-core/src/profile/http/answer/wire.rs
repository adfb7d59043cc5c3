//! Lengths, framed bytes and fields, written and read back.

use std::ops::Range;

use bytes::Bytes;

use super::AnswerError;

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
    pub(super) const fn new(bytes: &'a Bytes) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn framed(&mut self) -> Result<Bytes, AnswerError> {
        self.framed_range().map(|range| self.bytes.slice(range))
    }

    /// The same, without a share in the memory.
    pub(super) fn slice(&mut self) -> Result<&'a [u8], AnswerError> {
        self.framed_range().map(|range| &self.bytes[range])
    }

    /// All that `read` reads.
    pub(super) fn taken(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), AnswerError>,
    ) -> Result<Bytes, AnswerError> {
        let start = self.at;
        read(self)?;
        Ok(self.bytes.slice(start..self.at))
    }

    fn framed_range(&mut self) -> Result<Range<usize>, AnswerError> {
        let len = self.varint()?;
        if len > self.left() {
            return Err(AnswerError::Length);
        }
        let start = self.at;
        self.at += len;
        Ok(start..self.at)
    }

    pub(super) fn varint(&mut self) -> Result<usize, AnswerError> {
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
