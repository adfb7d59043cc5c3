//! What a policy promises to callers: read by programs, and published.
//!
//! Both are made from the very policies that the layers act on, so neither can say anything else than what is done.

use std::time::Duration;

use http::{HeaderName, Method};
use idempotency_core::{
    OnLapse,
    profile::http::{Code, Ending, KeySyntax, OnServerError, contract, ending_of},
};
use serde_json::{Value, json};

use crate::{
    Oversized, Policy,
    policy::{Force, StoreDown},
    scope::Callers,
};

mod document;

/// What a policy promises to callers; nothing of how the service tells them apart, nor of its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Promise {
    /// The guarded methods.
    pub methods: Vec<Method>,
    /// The header that carries the key.
    pub header: HeaderName,
    /// Which spellings of a key are read.
    pub syntax: KeySyntax,
    /// Whether a request without a key is refused.
    pub required: bool,
    /// Within what a key is unique.
    pub key_space: KeySpace,
    /// The longest request body, in bytes.
    pub max_request_bytes: usize,
    /// The longest response body that is kept, in bytes; a store may keep less.
    pub max_response_bytes: usize,
    /// What becomes of a longer one.
    pub oversized: Oversized,
    /// How long an answer is replayed after its completion.
    pub retention: Duration,
    /// How long a key is refused after that. Zero: it is new at once.
    pub rejects_expired_for: Duration,
    /// How long a copy of a running request waits at most. `None`: it is refused at once.
    pub wait: Option<Duration>,
    /// The longest `Retry-After` of a conflict.
    pub retry_after_cap: Duration,
    /// What a server error means for the key.
    pub on_server_error: OnServerError,
    /// What the death of a run means for the key.
    pub on_lapse: OnLapse,
    /// The header that marks a replay.
    pub replayed_header: HeaderName,
    /// Whether requests run unprotected, and marked so, while the store does not answer.
    pub fails_open: bool,
    /// What the `type` of a refusal's problem document starts with; its code follows. `None`: refusals are told in the
    /// service's own way.
    pub problem_base: Option<String>,
    /// The service's documentation, which every refusal links.
    pub docs: Option<String>,
}

/// Within what a key is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeySpace {
    /// All callers; whoever knows a key gets its answer.
    Shared,
    /// All callers; the answer is only for the credentials that the key was first used with.
    Credentials,
    /// One principal.
    Principal,
    /// One principal, or all callers without one, told apart by their credentials.
    PrincipalOrCredentials,
}

impl Policy {
    /// What it promises; `None` in the shadow, where it changes nothing.
    pub fn promise(&self) -> Option<Promise> {
        if self.force == Force::Shadow {
            return None;
        }
        Some(Promise {
            methods: self.methods.clone(),
            header: self.header.clone(),
            syntax: self.syntax,
            required: self.required,
            key_space: KeySpace::of(&self.callers),
            max_request_bytes: self.max_request_bytes,
            max_response_bytes: self.max_response_bytes,
            oversized: self.oversized,
            retention: self.terms.retention,
            rejects_expired_for: self.terms.then_reject,
            wait: self.wait,
            retry_after_cap: self.retry_after_cap,
            on_server_error: self.on_server_error,
            on_lapse: self.terms.on_lapse,
            replayed_header: self.replayed_header.clone(),
            fails_open: self.store_down == StoreDown::FailOpen,
            problem_base: self.render.is_none().then(|| self.problem_base.to_string()),
            docs: self.docs_url().map(str::to_owned),
        })
    }

    fn docs_url(&self) -> Option<&str> {
        let link = self.docs_link.as_ref()?.to_str().ok()?;
        link.strip_prefix('<')?.split_once('>').map(|(url, _)| url)
    }
}

impl Promise {
    /// The codes of the refusals that a caller can meet.
    pub fn codes(&self) -> Vec<Code> {
        let all = [
            (Code::MissingKey, self.required),
            (Code::InvalidKey, true),
            (Code::UnreadableBody, true),
            (Code::MissingPrincipal, self.key_space == KeySpace::Principal),
            (Code::PayloadTooLarge, true),
            (Code::Conflict, true),
            // A handler can say it of its run under any policy.
            (Code::OutcomeUnknown, true),
            (Code::ResultNotReplayable, self.oversized == Oversized::Tombstone),
            (Code::KeyExpired, !self.rejects_expired_for.is_zero()),
            (Code::FingerprintMismatch, true),
            (Code::CredentialsMismatch, self.key_space.binds_credentials()),
            (Code::StoreUnavailable, !self.fails_open),
            (Code::Overloaded, true),
            (Code::Internal, true),
        ];
        all.into_iter().filter(|(_, met)| *met).map(|(code, _)| code).collect()
    }

    /// Whether an answer of this status is every duplicate's, where the handler says nothing else.
    pub fn keeps(&self, status: u16) -> bool {
        ending_of(status, self.on_server_error) == Ending::Keep
    }
}

impl KeySpace {
    const fn of(callers: &Callers) -> Self {
        match callers {
            Callers::Shared => Self::Shared,
            Callers::ByCredentials(_) => Self::Credentials,
            Callers::ByScope(_, None) => Self::Principal,
            Callers::ByScope(_, Some(_)) => Self::PrincipalOrCredentials,
        }
    }

    /// Whether another caller's key can be met, and is refused.
    pub const fn binds_credentials(self) -> bool {
        matches!(self, Self::Credentials | Self::PrincipalOrCredentials)
    }
}

/// The contract of a service: what each of its routes does with keys, for clients to read at
/// [`WELL_KNOWN`](Self::WELL_KNOWN) before they send one.
///
/// The draft says that a resource must publish this (section 2.5.2) and leaves open how; this is JSON, its durations
/// ISO 8601.
///
/// ```
/// use idempotency_tower::{Contract, Policy};
///
/// let policy = Policy::builder().required().build()?;
/// let document = Contract::new().route("/orders", &policy).document();
///
/// assert_eq!(document["routes"][0]["path"], "/orders");
/// assert_eq!(document["routes"][0]["key"]["required"], true);
/// assert_eq!(document["routes"][0]["retention"], "P1D");
/// # Ok::<(), idempotency_tower::PolicyError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Contract {
    routes: Vec<Value>,
}

impl Contract {
    /// The path to serve it at.
    pub const WELL_KNOWN: &str = contract::WELL_KNOWN;

    /// A contract of no routes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what `policy` does on `path`, as the service writes its paths. A policy in the shadow adds nothing.
    #[must_use]
    pub fn route(mut self, path: &str, policy: &Policy) -> Self {
        self.routes.extend(policy.promise().map(|promise| document::route(path, &promise)));
        self
    }

    /// The document, `application/json`.
    pub fn document(&self) -> Value {
        json!({
            "specification": {
                "name": contract::DRAFT_NAME,
                "version": contract::DRAFT_VERSION,
                "url": contract::DRAFT_URL,
            },
            "routes": self.routes,
        })
    }
}

#[cfg(test)]
mod tests;
