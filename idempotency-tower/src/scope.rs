//! Whose key space a request belongs to.

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderValue, request::Parts};
use idempotency_core::{
    Scope,
    profile::http::{Credentials, Refusal},
};

use crate::error::caught;

/// Reads the principal of a request.
pub(crate) type Principal = Arc<dyn Fn(&Parts) -> Option<Scope> + Send + Sync>;

/// How a policy tells callers apart.
#[derive(Clone)]
pub(crate) enum Callers {
    /// One key space; the credentials are bound into the fingerprint, so no answer leaves its principal.
    ByCredentials(Credentials),
    /// One key space, and whoever knows a key gets its answer.
    Shared,
    /// A key space each. Without a principal: a refusal, or the shared space with these credentials bound.
    ByScope(Principal, Option<Credentials>),
}

impl Callers {
    /// The scope of a request, and the credentials to bind into its fingerprint.
    pub(crate) fn identify<'a>(&'a self, parts: &'a Parts) -> Result<Caller<'a>, Refusal> {
        match self {
            Self::ByCredentials(credentials) => Ok(Caller::bound(credentials, &parts.headers)),
            Self::Shared => Ok(Caller { scope: Scope::shared(), credentials: Vec::new() }),
            Self::ByScope(principal, fallback) => {
                let named = caught("scope", || principal(parts))?.filter(|scope| !scope.names_nobody());
                match (named, fallback) {
                    (Some(scope), _) => Ok(Caller { scope, credentials: Vec::new() }),
                    (None, Some(credentials)) => Ok(Caller::bound(credentials, &parts.headers)),
                    (None, None) => Err(Refusal::missing_principal()),
                }
            }
        }
    }
}

/// Who sent a request.
pub(crate) struct Caller<'a> {
    pub(crate) scope: Scope,
    pub(crate) credentials: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Caller<'a> {
    fn bound(credentials: &'a Credentials, headers: &'a HeaderMap) -> Self {
        // Most requests of a service behind a gateway have none, and one look at each name they do have tells.
        if !headers.keys().any(|name| credentials.are_in(name.as_str())) {
            return Self { scope: Scope::shared(), credentials: Vec::new() };
        }
        let lines = |name: &str| headers.get_all(name).iter().map(HeaderValue::as_bytes);
        Self { scope: Scope::shared(), credentials: credentials.read(lines) }
    }
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByCredentials(credentials) => f.debug_tuple("ByCredentials").field(credentials).finish(),
            Self::Shared => f.write_str("Shared"),
            Self::ByScope(_, fallback) => f.debug_tuple("ByScope").field(fallback).finish_non_exhaustive(),
        }
    }
}
