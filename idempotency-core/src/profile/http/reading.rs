//! Reading a body for its meaning: two spellings of one body are one payload where a policy says so.

use super::{payload::essence, syntax::trim_ows};

mod json;
mod multipart;

/// Which bodies are compared by what they say instead of byte for byte. None by default.
///
/// A body that cannot be read as what its `Content-Type` says is compared byte for byte, and never equals one that can.
/// The body is compared as the door reads it: one with a content coding is not decoded first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BodyReading {
    json: bool,
    multipart: bool,
}

impl BodyReading {
    /// Compares `application/json` and `+json` bodies in their canonical form (RFC 8785): white space, the order of
    /// members and the spelling of strings and numbers (`1.0` and `1`) do not count; the order of an array and the types
    /// of values do. For I-JSON (RFC 7493) of at most 64 levels: one with a repeated member, a number from 2^53 on or
    /// that is no integer and has more than 15 digits, or half a surrogate pair is compared byte for byte.
    #[must_use]
    pub const fn canonical_json(self) -> Self {
        Self { json: true, ..self }
    }

    /// Compares `multipart/form-data` bodies part by part: the boundary does not count, every byte of the parts does, and
    /// so does their order. For at most 1,000 parts, with nothing before the first and nothing after the last.
    #[must_use]
    pub const fn multipart_by_part(self) -> Self {
        Self { multipart: true, ..self }
    }

    /// What counts of `body`, under its `Content-Type` value.
    pub fn read<'a>(self, content_type: Option<&[u8]>, body: &'a [u8]) -> BodyContent<'a> {
        let Some(value) = content_type.filter(|_| self != Self::default()) else {
            return BodyContent::Bytes(body);
        };
        let media_type = essence(value);
        if self.json && is_json(&media_type) {
            return json::canonical(body).map_or(BodyContent::Unreadable(body), BodyContent::Json);
        }
        if self.multipart && *media_type == *b"multipart/form-data" {
            let parts = multipart::boundary(value).and_then(|boundary| multipart::parts(body, boundary));
            return parts.map_or(BodyContent::Unreadable(body), BodyContent::Multipart);
        }
        BodyContent::Bytes(body)
    }
}

/// What counts of a body. Values of different kinds are different payloads.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyContent<'a> {
    /// Every byte.
    Bytes(&'a [u8]),
    /// Every byte of a body that a [`BodyReading`] could not read.
    Unreadable(&'a [u8]),
    /// The canonical form of JSON.
    Json(Vec<u8>),
    /// The parts of a form, each with its header lines.
    Multipart(Vec<&'a [u8]>),
    /// What the service itself takes for the body's meaning.
    Own(&'a [u8]),
    /// Nothing: requests that differ in nothing but their bodies are one payload, and the second one gets the answer to
    /// the first one's.
    LeftOut,
}

/// Shows the kind only: bodies are never printed.
impl std::fmt::Debug for BodyContent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bytes(_) => "Bytes",
            Self::Unreadable(_) => "Unreadable",
            Self::Json(_) => "Json",
            Self::Multipart(_) => "Multipart",
            Self::Own(_) => "Own",
            Self::LeftOut => "LeftOut",
        })
    }
}

fn is_json(media_type: &[u8]) -> bool {
    media_type == b"application/json" || media_type.ends_with(b"+json")
}

#[cfg(test)]
mod tests;
