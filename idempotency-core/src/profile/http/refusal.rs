//! What is answered when a request is neither run nor replayed: a problem (RFC 9457) with a stable code.

use std::{borrow::Cow, fmt, time::Duration};

use bytes::Bytes;

use super::{KeyRule, Tombstone};
use crate::{Part, Parts, StoreError, StoreErrorKind};

/// The longest `Retry-After` of a conflict unless a policy says otherwise: a full lease overshoots most handlers.
pub const RETRY_AFTER_CAP: Duration = Duration::from_secs(30);

/// A refusal's stable name, for programs. Each has a section in [`problems`](super::problems).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The route requires a key.
    MissingKey,
    /// The key header breaks a rule.
    InvalidKey,
    /// The route's scope finds no principal in the request.
    MissingPrincipal,
    /// The body is longer than the route reads.
    PayloadTooLarge,
    /// The body could not be read to its end.
    UnreadableBody,
    /// The first request still runs.
    Conflict,
    /// The key belongs to another payload.
    FingerprintMismatch,
    /// The key belongs to other credentials.
    CredentialsMismatch,
    /// Nobody knows how the first request ended.
    OutcomeUnknown,
    /// The first request is done; its answer was not kept.
    ResultNotReplayable,
    /// The first request's answer is no longer kept, and the key is not new yet.
    KeyExpired,
    /// The store does not answer.
    StoreUnavailable,
    /// A bound of the service or its store is reached.
    Overloaded,
    /// A webhook's signature does not verify.
    SignatureInvalid,
    /// The endpoint is not configured as it must be.
    ConfigurationError,
    /// The service failed.
    Internal,
}

impl Code {
    /// Every code.
    pub const ALL: [Self; 16] = [
        Self::MissingKey,
        Self::InvalidKey,
        Self::MissingPrincipal,
        Self::PayloadTooLarge,
        Self::UnreadableBody,
        Self::Conflict,
        Self::FingerprintMismatch,
        Self::CredentialsMismatch,
        Self::OutcomeUnknown,
        Self::ResultNotReplayable,
        Self::KeyExpired,
        Self::StoreUnavailable,
        Self::Overloaded,
        Self::SignatureInvalid,
        Self::ConfigurationError,
        Self::Internal,
    ];

    /// The name, as in the problem's `code` and at the end of its `type`.
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// The HTTP status.
    pub const fn status(self) -> u16 {
        self.words().1
    }

    /// The problem's `title`: the same for every refusal with this code.
    pub const fn title(self) -> &'static str {
        self.words().2
    }

    const fn words(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::MissingKey => ("missing-key", 400, "An idempotency key is required"),
            Self::InvalidKey => ("invalid-key", 400, "The idempotency key is not valid"),
            Self::MissingPrincipal => ("missing-principal", 403, "The request names no principal"),
            Self::PayloadTooLarge => ("payload-too-large", 413, "The request body is too large"),
            Self::UnreadableBody => ("unreadable-body", 400, "The request body cannot be read"),
            Self::Conflict => ("conflict", 409, "The first request is still in progress"),
            Self::FingerprintMismatch => {
                ("fingerprint-mismatch", 422, "The idempotency key belongs to another payload")
            }
            Self::CredentialsMismatch => {
                ("credentials-mismatch", 422, "The idempotency key belongs to other credentials")
            }
            Self::OutcomeUnknown => ("outcome-unknown", 409, "How the first request ended is not known"),
            Self::ResultNotReplayable => {
                ("result-not-replayable", 409, "The first request is done and its answer was not kept")
            }
            Self::KeyExpired => ("key-expired", 410, "The idempotency key has expired"),
            Self::StoreUnavailable => ("store-unavailable", 503, "The idempotency store is not available"),
            Self::Overloaded => ("overloaded", 503, "The service takes no more requests for now"),
            Self::SignatureInvalid => ("signature-invalid", 401, "The signature is not valid"),
            Self::ConfigurationError => ("configuration-error", 500, "The endpoint is not configured"),
            Self::Internal => ("internal", 500, "The service failed"),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An answer that is neither a run nor a replay. No value of a request is in it: no key, no payload, no credential.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The stable code; it decides status and title.
    pub code: Code,
    /// What this request did not satisfy, for people.
    pub detail: Cow<'static, str>,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// The parts in which a mismatched payload differs.
    pub differing: Parts,
    /// The status of a first answer that was not kept.
    pub original_status: Option<u16>,
    /// The `Location` of a first answer that was not kept.
    pub location: Option<Bytes>,
}

impl Refusal {
    /// A refusal with no more than a code and a detail.
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            detail: detail.into(),
            retry_after: None,
            differing: Parts::default(),
            original_status: None,
            location: None,
        }
    }

    /// The route requires a key and the request has no `header`.
    pub fn missing_key(header: &str) -> Self {
        Self::new(Code::MissingKey, format!("the {header} header is required here"))
    }

    /// The key header breaks `rule`.
    pub fn invalid_key(rule: KeyRule) -> Self {
        Self::new(Code::InvalidKey, rule.to_string())
    }

    /// The route's scope finds no principal in the request.
    pub fn missing_principal() -> Self {
        Self::new(Code::MissingPrincipal, "keys belong to a principal here, and the request names none")
    }

    /// The body is longer than `limit` bytes, declared or real.
    pub fn payload_too_large(limit: usize) -> Self {
        Self::new(Code::PayloadTooLarge, format!("the request body is longer than {limit} bytes"))
    }

    /// The body broke off or could not be read to its end.
    pub fn unreadable_body() -> Self {
        Self::new(Code::UnreadableBody, "the request body ended early or could not be read; nothing was run")
    }

    /// The first request still runs; its lease has `left` to go. `Retry-After` is at least 1 second and at most `cap`,
    /// of which [`RETRY_AFTER_CAP`] is the default.
    pub fn conflict(left: Duration, cap: Duration) -> Self {
        let left = left.as_secs().saturating_add(u64::from(left.subsec_nanos() > 0));
        let detail = "a request with this key is in progress; retry after the time given";
        Self::new(Code::Conflict, detail).retry_after(left.clamp(1, cap.as_secs().max(1)))
    }

    /// The key belongs to a payload that differs in `parts`. Other credentials get a code of their own.
    pub fn mismatch(parts: Parts) -> Self {
        if parts.contains(Part::Credentials) {
            let detail = "this key was first used with other credentials; \
                          a refreshed token or a renewed cookie counts as other credentials";
            let differing = Parts::from_iter([Part::Credentials]);
            return Self { differing, ..Self::new(Code::CredentialsMismatch, detail) };
        }
        if parts.contains(Part::Secret) {
            let detail = "this key was first used under a secret the service no longer knows; \
                          whether this is the same request cannot be told, and it was not run";
            return Self { differing: parts, ..Self::new(Code::FingerprintMismatch, detail) };
        }
        let names: Vec<_> = parts.iter().map(Part::name).collect();
        let detail = if names.is_empty() {
            Cow::from("this key was first used with another payload")
        } else {
            format!("this key was first used with another payload: it differs in {}", names.join(", ")).into()
        };
        Self { differing: parts, ..Self::new(Code::FingerprintMismatch, detail) }
    }

    /// Nobody knows how the first request ended.
    pub fn outcome_unknown() -> Self {
        let detail = "a request with this key ran and did not say how it ended; \
                      it is not run again until that is found out";
        Self::new(Code::OutcomeUnknown, detail)
    }

    /// The first request is done; `tombstone` is what was kept of its answer.
    pub fn result_not_replayable(tombstone: Tombstone) -> Self {
        let detail = "the request with this key is done and is not run again; its answer was not kept";
        Self {
            original_status: Some(tombstone.status),
            location: tombstone.location,
            ..Self::new(Code::ResultNotReplayable, detail)
        }
    }

    /// The first request's answer is no longer kept, and the route does not run its key anew yet.
    pub fn key_expired() -> Self {
        Self::new(
            Code::KeyExpired,
            "a request with this key was done before, and its answer is no longer kept; find out how it ended before you send \
             it under a new key",
        )
    }

    /// The store failed before anything ran. A failure at a completion is never answered with it: that client gets the
    /// real response.
    pub fn store(error: &StoreError) -> Self {
        match error.kind {
            StoreErrorKind::Unavailable | StoreErrorKind::Schema | StoreErrorKind::Refused => Self::new(
                Code::StoreUnavailable,
                "the request was not run, since its key could not be recorded",
            )
            .retry_after(1),
            StoreErrorKind::Full => {
                let detail = "the request was not run, since the store holds as many records as it may";
                Self::new(Code::Overloaded, detail).retry_after(1)
            }
            StoreErrorKind::Corrupt => Self::unreadable_record(),
            StoreErrorKind::TooLarge => {
                Self::new(Code::Internal, "the store cannot hold the record of this request")
            }
        }
    }

    /// What stands at the key cannot be read: it is neither run nor answered.
    pub fn unreadable_record() -> Self {
        Self::new(Code::Internal, "what is recorded for this key cannot be read; the request was not run")
    }

    /// `limit` keyed requests run, and no more may.
    pub fn overloaded(limit: usize) -> Self {
        let detail =
            format!("the request was not run: the limit of {limit} keyed requests at once is reached");
        Self::new(Code::Overloaded, detail).retry_after(1)
    }

    /// The handler panicked.
    pub fn panicked() -> Self {
        Self::new(Code::Internal, "the request's handler failed")
    }

    fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }
}

/// Shows that there is a location, and not which: it is part of an answer.
impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("code", &self.code)
            .field("detail", &self.detail)
            .field("retry_after", &self.retry_after)
            .field("differing", &self.differing)
            .field("original_status", &self.original_status)
            .field("location_bytes", &self.location.as_ref().map(Bytes::len))
            .finish()
    }
}

#[cfg(test)]
mod tests;
