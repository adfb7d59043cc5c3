//! What of a request is compared with the first one's under the same key, and by which secrets it is keyed.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Uri, header, request::Parts};
use idempotency_core::{
    Fingerprint, Secret,
    profile::http::{BodyContent, BodyReading, Payload, SelectedHeaders},
};

use crate::scope::Caller;

/// Takes from a request what its body means.
pub(crate) type OwnReading = Arc<dyn Fn(&Parts, &Bytes) -> Bytes + Send + Sync>;

/// How a policy takes fingerprints. The default compares bodies byte for byte and keys nothing.
#[derive(Clone, Default)]
pub(crate) struct Fingerprints {
    pub(super) body: BodyRule,
    pub(super) headers: SelectedHeaders,
    pub(super) secret: Option<Secret>,
    pub(super) previous: Option<Previous>,
}

/// What counts of a body.
#[derive(Clone)]
pub(super) enum BodyRule {
    Read(BodyReading),
    Own(OwnReading),
    LeftOut,
}

/// What keyed the records from before the current secret.
#[derive(Clone)]
pub(super) enum Previous {
    Secret(Secret),
    NoSecret,
}

impl Fingerprints {
    /// The same, of what `meaning` makes of bodies that nothing else was said about.
    pub(super) fn of_meaning(self, meaning: fn(&Parts, &Bytes) -> Bytes) -> Self {
        let body = match self.body {
            BodyRule::Read(_) => BodyRule::Own(Arc::new(meaning)),
            chosen => chosen,
        };
        Self { body, ..self }
    }

    /// What a request asks, and the same as records from before the current secret have it, where those count too.
    pub(crate) fn take(
        &self,
        parts: &Parts,
        uri: &Uri,
        caller: &Caller<'_>,
        body: &Bytes,
    ) -> (Fingerprint, Option<Fingerprint>) {
        let line = |name| parts.headers.get(name).map(HeaderValue::as_bytes);
        let content_type = line(header::CONTENT_TYPE);
        let meaning;
        let content = match &self.body {
            BodyRule::Read(reading) => reading.read(content_type, body),
            BodyRule::Own(read) => {
                meaning = read(parts, body);
                BodyContent::Own(&meaning)
            }
            BodyRule::LeftOut => BodyContent::LeftOut,
        };
        let lines = |name: &str| parts.headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let payload = Payload {
            method: parts.method.as_str(),
            path: uri.path(),
            query: uri.query(),
            content_type,
            content_encoding: line(header::CONTENT_ENCODING),
            body: &content,
            headers: &self.headers.read(lines),
            credentials: &caller.credentials,
        };
        let previous = self.previous.as_ref().map(|previous| match previous {
            Previous::Secret(secret) => payload.fingerprint(Some(secret)),
            Previous::NoSecret => payload.fingerprint(None),
        });
        (payload.fingerprint(self.secret.as_ref()), previous)
    }
}

impl Default for BodyRule {
    fn default() -> Self {
        Self::Read(BodyReading::default())
    }
}
