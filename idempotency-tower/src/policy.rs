//! What an [`IdempotencyLayer`](crate::IdempotencyLayer) does, checked before it does it.

use std::{borrow::Cow, fmt, pin::Pin, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Method, Uri, request::Parts};
use idempotency_core::{
    policy::{Bounds, Terms},
    profile::http::{
        Credentials, KeySyntax, OnServerError, RETRY_AFTER_CAP,
        headers::{self, ReplayedFields},
        problems,
    },
};

use self::fingerprint::Fingerprints;
use crate::{Protocol, refusal::Render, scope::Callers};

pub use builder::PolicyBuilder;

mod builder;
mod fingerprint;

/// A run on its way to a task of its own.
pub type RunFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

type Carry = Arc<dyn Fn(RunFuture) -> RunFuture + Send + Sync>;

/// What becomes of an answer that is longer than the layer keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Oversized {
    /// Duplicates are refused as not replayable, with the first answer's status and `Location`.
    #[default]
    Tombstone,
    /// Duplicates get the first answer's status and headers with an empty body and `Idempotency-Replay: omitted`.
    OmitBody,
}

/// What becomes of a keyed request while the store does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreDown {
    FailClosed,
    FailOpen,
}

/// Whether a policy acts or only watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Force {
    Full,
    Shadow,
}

/// What the layer does, checked. The default takes POST and PATCH, leaves the key optional, binds credentials, keeps
/// answers of up to 1 MiB for 24 h, and refuses keyed requests while the store does not answer.
#[derive(Clone)]
pub struct Policy {
    pub(crate) methods: Vec<Method>,
    pub(crate) header: HeaderName,
    pub(crate) syntax: KeySyntax,
    pub(crate) required: bool,
    pub(crate) callers: Callers,
    pub(crate) uri: fn(&Parts) -> &Uri,
    pub(crate) fingerprints: Fingerprints,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) max_request_bytes: usize,
    pub(crate) max_response_bytes: usize,
    pub(crate) oversized: Oversized,
    pub(crate) on_server_error: OnServerError,
    pub(crate) retry_after_cap: Duration,
    pub(crate) settle_wait: Duration,
    pub(crate) replayed_header: HeaderName,
    pub(crate) replayed_fields: ReplayedFields,
    pub(crate) carry: Option<Carry>,
    pub(crate) store_down: StoreDown,
    pub(crate) force: Force,
    pub(crate) wait: Option<Duration>,
    pub(crate) render: Option<Arc<dyn Render>>,
    pub(crate) problem_base: Cow<'static, str>,
    pub(crate) docs_link: Option<HeaderValue>,
    pub(crate) terms: Terms,
    pub(crate) bounds: Bounds,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            methods: vec![Method::POST, Method::PATCH],
            header: HeaderName::from_static(headers::IDEMPOTENCY_KEY),
            syntax: KeySyntax::default(),
            required: false,
            callers: Callers::ByCredentials(Credentials::default()),
            uri: |parts| &parts.uri,
            fingerprints: Fingerprints::default(),
            protocol: None,
            max_request_bytes: 1 << 20,
            max_response_bytes: 1 << 20,
            oversized: Oversized::default(),
            on_server_error: OnServerError::default(),
            retry_after_cap: RETRY_AFTER_CAP,
            settle_wait: Duration::from_secs(2),
            replayed_header: HeaderName::from_static(headers::IDEMPOTENCY_REPLAYED),
            replayed_fields: ReplayedFields::default(),
            carry: None,
            store_down: StoreDown::FailClosed,
            force: Force::Full,
            wait: None,
            render: None,
            problem_base: problems::TYPE_BASE.into(),
            docs_link: None,
            terms: Terms::default(),
            bounds: Bounds::default(),
        }
    }
}

impl Policy {
    /// Starts from the default.
    ///
    /// ```
    /// use std::time::Duration;
    /// use idempotency_tower::{OnLapse, OnServerError, Policy};
    ///
    /// // Money: what failed or lapsed does not run again without somebody's word.
    /// let policy = Policy::builder()
    ///     .required()
    ///     .on_server_error(OnServerError::Hold)
    ///     .on_lapse(OnLapse::Hold)
    ///     .retention(Duration::from_secs(7 * 24 * 60 * 60))
    ///     .build()?;
    /// # Ok::<(), idempotency_tower::PolicyError>(())
    /// ```
    ///
    /// Under such a policy a 5xx, a 408, a panic, an inner error and a lapsed lease leave the operation in doubt. The
    /// other statuses that come before a handler ran or that pass (401, 403, 405, 407, 411, 413, 415, 421, 423, 425, 426,
    /// 428, 429 and 431) still free the key: a handler that answers with one of them after its effect must say
    /// [`Ending::Keep`](crate::Ending::Keep).
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }

    /// The same policy with the caller's own URI read by `uri`, for a framework whose routers take prefixes off the
    /// request's.
    #[must_use]
    pub fn with_original_uri(self, uri: fn(&Parts) -> &Uri) -> Self {
        Self { uri, ..self }
    }

    /// The same policy for requests and answers in `protocol`, its refusals in that protocol's words in place of any
    /// [`render`](PolicyBuilder::render).
    #[must_use]
    pub fn speaking(self, protocol: Protocol) -> Self {
        Self {
            fingerprints: self.fingerprints.of_meaning(protocol.meaning),
            render: Some(Arc::new(protocol.refusal)),
            protocol: Some(protocol),
            ..self
        }
    }

    /// The header that carries the key.
    pub const fn key_header(&self) -> &HeaderName {
        &self.header
    }

    /// Whether a request of `method` is looked at: its method is guarded, and it has the key's header (which `has_header`
    /// is asked for) or is refused without it. All others pass untouched; a door for which a look costs something can
    /// spare it them.
    pub fn looks_at(&self, method: &Method, has_header: impl FnOnce(&HeaderName) -> bool) -> bool {
        self.covers(method) && (self.required || has_header(&self.header))
    }

    pub(crate) fn covers(&self, method: &Method) -> bool {
        // The methods of a policy are HTTP's own.
        self.protocol.is_some() || self.methods.contains(method)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("methods", &self.methods)
            .field("header", &self.header)
            .field("required", &self.required)
            .field("callers", &self.callers)
            .field("terms", &self.terms)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}
