//! What a request says, without what changes from try to try.

use std::borrow::Cow;

use super::syntax::trim_ows;
use crate::{Fingerprint, FingerprintBuilder, Part};

/// The parts of a request that make it this request and no other.
///
/// Framing, the order of headers and headers made for one try (request ids, dates, signatures, `User-Agent`) are not
/// among them, so that a true retry is recognised.
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    /// The method, as it was sent: methods are case-sensitive.
    pub method: &'a str,
    /// The full path the caller sent, before any router took a prefix off; not decoded.
    pub path: &'a str,
    /// The raw query, without the question mark. An absent one is not an empty one.
    pub query: Option<&'a str>,
    /// The `Content-Type` value. Its case and its parameters do not count.
    pub content_type: Option<&'a [u8]>,
    /// The `Content-Encoding` value. Its case does not count.
    pub content_encoding: Option<&'a [u8]>,
    /// The body's bytes, as the door reads them.
    pub body: &'a [u8],
    /// What binds the request to its caller, from [`Credentials::read`](super::Credentials::read); empty when a scope
    /// does.
    pub credentials: &'a [(&'a str, &'a [u8])],
}

impl Payload<'_> {
    /// The fingerprint of these parts.
    pub fn fingerprint(&self) -> Fingerprint {
        self.parts().build()
    }

    /// The same parts before they are sealed, for a policy that adds to them or reads the body another way.
    pub fn parts(&self) -> FingerprintBuilder {
        let mut parts = Fingerprint::builder()
            .part(Part::Method, self.method.as_bytes())
            .part(Part::Path, self.path.as_bytes())
            .part(Part::Body, self.body);
        if let Some(query) = self.query {
            parts = parts.part(Part::Query, query.as_bytes());
        }
        if let Some(value) = self.content_type {
            parts = parts.part(Part::ContentType, &essence(value));
        }
        if let Some(value) = self.content_encoding {
            parts = parts.part(Part::ContentEncoding, &lower(trim_ows(value)));
        }
        if !self.credentials.is_empty() {
            let fields = self.credentials.iter().flat_map(|(name, value)| [name.as_bytes(), value]);
            parts = parts.fields(Part::Credentials, fields);
        }
        parts
    }
}

/// Shows sizes only: bodies and credentials are never printed.
impl std::fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payload")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("body_bytes", &self.body.len())
            .field("credentials", &self.credentials.len())
            .finish_non_exhaustive()
    }
}

/// The media type of a `Content-Type` value: what stands before the first parameter, in lower case.
fn essence(value: &[u8]) -> Cow<'_, [u8]> {
    let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    lower(trim_ows(&value[..end]))
}

fn lower(value: &[u8]) -> Cow<'_, [u8]> {
    if value.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(value.to_ascii_lowercase())
    } else {
        Cow::Borrowed(value)
    }
}

#[cfg(test)]
mod tests;
