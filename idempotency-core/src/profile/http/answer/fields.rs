//! Header or trailer fields as they are stored.

use std::fmt;

use bytes::Bytes;

use super::{
    AnswerError,
    wire::{Reader, put_framed, put_varint, varint_len},
};

/// Header or trailer fields: names in lower case, order and repeats kept.
///
/// They are held as they are stored, so that neither writing nor reading a field copies it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Fields {
    count: usize,
    /// Name and value of each, framed by their lengths.
    framed: Bytes,
}

impl Fields {
    /// No fields.
    pub const fn new() -> Self {
        Self { count: 0, framed: Bytes::new() }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Names and values, in their order. A value shares the fields' memory.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Bytes)> {
        let mut reader = Reader::new(&self.framed);
        // Whatever is here was put or checked field by field.
        std::iter::from_fn(move || Some((reader.slice().ok()?, reader.framed().ok()?)))
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, AnswerError> {
        let count = reader.varint()?;
        let framed = reader.taken(|reader| {
            for _ in 0..count {
                if reader.slice()?.is_empty() {
                    return Err(AnswerError::Length); // a name is never empty
                }
                reader.slice()?;
            }
            Ok(())
        })?;
        Ok(Self { count, framed })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.count);
        out.extend_from_slice(&self.framed);
    }

    pub(super) const fn stored_len(&self) -> usize {
        varint_len(self.count) + self.framed.len()
    }
}

/// Names must be in lower case.
impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for Fields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        const USUAL: usize = 128;
        let (mut count, mut framed) = (0, Vec::with_capacity(USUAL));
        for (name, value) in fields {
            put_framed(&mut framed, name.as_ref());
            put_framed(&mut framed, value.as_ref());
            count += 1;
        }
        Self { count, framed: framed.into() }
    }
}

/// Shows how many there are, and none of them.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fields({})", self.count)
    }
}
