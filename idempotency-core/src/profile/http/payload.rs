//! What a request says, without what changes from try to try.

use std::borrow::Cow;

use super::{BodyContent, syntax::trim_ows};
use crate::{Fingerprint, FingerprintBuilder, Part, Secret};

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
    /// What counts of the body: its bytes as the door reads them, unless a policy says otherwise.
    pub body: &'a BodyContent<'a>,
    /// Headers that a policy selects, from [`SelectedHeaders::read`](super::SelectedHeaders::read).
    pub headers: &'a [(&'a str, &'a [u8])],
    /// What binds the request to its caller, from [`Credentials::read`](super::Credentials::read); empty when a scope
    /// does.
    pub credentials: &'a [(&'a str, &'a [u8])],
}

impl Payload<'_> {
    /// The fingerprint of these parts, keyed by `secret` if there is one.
    pub fn fingerprint(&self, secret: Option<&Secret>) -> Fingerprint {
        let mut parts = match secret {
            None => Fingerprint::builder(),
            Some(secret) => Fingerprint::keyed(secret),
        };
        parts.add(Part::Method, self.method.as_bytes());
        parts.add(Part::Path, self.path.as_bytes());
        if let Some(query) = self.query {
            parts.add(Part::Query, query.as_bytes());
        }
        if let Some(value) = self.content_type {
            parts.add(Part::ContentType, &essence(value));
        }
        if let Some(value) = self.content_encoding {
            parts.add(Part::ContentEncoding, &lower(trim_ows(value)));
        }
        add_fields(&mut parts, Part::Headers, self.headers);
        add_fields(&mut parts, Part::Credentials, self.credentials);
        add_body(&mut parts, self.body);
        parts.finish()
    }
}

/// Nothing read is nothing set: a part without fields is absent.
fn add_fields(parts: &mut FingerprintBuilder<'_>, part: Part, fields: &[(&str, &[u8])]) {
    if !fields.is_empty() {
        parts.add_fields(part, fields.iter().flat_map(|(name, value)| [name.as_bytes(), value]));
    }
}

/// Whatever was read of a body is framed under the name of its reading, so that none passes for another's.
fn add_body(parts: &mut FingerprintBuilder<'_>, content: &BodyContent<'_>) {
    match content {
        BodyContent::Bytes(bytes) => parts.add(Part::Body, bytes),
        BodyContent::Unreadable(bytes) => parts.add_fields(Part::Body, [&b"unreadable"[..], bytes]),
        BodyContent::Json(text) => parts.add_fields(Part::Body, [&b"json"[..], text]),
        BodyContent::Multipart(form) => {
            parts.add_fields(Part::Body, [&b"multipart"[..]].into_iter().chain(form.iter().copied()));
        }
        BodyContent::Own(meaning) => parts.add_fields(Part::Body, [&b"own"[..], meaning]),
        BodyContent::LeftOut => {}
    }
}

/// Shows kinds and counts only: bodies and credentials are never printed.
impl std::fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payload")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("body", &self.body)
            .field("credentials", &self.credentials.len())
            .finish_non_exhaustive()
    }
}

/// The media type of a `Content-Type` value: what stands before the first parameter, in lower case.
pub(super) fn essence(value: &[u8]) -> Cow<'_, [u8]> {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    lower(trim_ows(&value[..end]))
}

fn lower(value: &[u8]) -> Cow<'_, [u8]> {
    // Without an early end, so that many bytes are compared at once.
    if value.iter().fold(false, |upper, byte| upper | byte.is_ascii_uppercase()) {
        Cow::Owned(value.to_ascii_lowercase())
    } else {
        Cow::Borrowed(value)
    }
}

#[cfg(test)]
mod tests;
