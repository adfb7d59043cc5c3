//! The options of a policy about callers: how they are told apart.

use std::sync::Arc;

use http::{HeaderName, request::Parts};
use idempotency_core::{
    Scope,
    policy::PolicyError,
    profile::http::{CREDENTIAL_HEADERS, Credentials},
};

use super::PolicyBuilder;
use crate::scope::{Callers, Principal};

/// What a builder was told, before it is known whether it makes sense.
#[derive(Default)]
pub(super) struct CallerOptions {
    scope: Option<Principal>,
    or_shared: bool,
    headers: Option<Vec<String>>,
    cookies: Option<Vec<String>>,
    shared: bool,
}

impl PolicyBuilder {
    /// Gives every principal a key space of its own. `principal` reads it from what an authentication layer outside
    /// this one verified, never from a header a caller can choose; `None` is refused with 403 `missing-principal`.
    #[must_use]
    pub fn scope<F>(mut self, principal: F) -> Self
    where
        F: Fn(&Parts) -> Option<Scope> + Send + Sync + 'static,
    {
        self.callers.scope = Some(Arc::new(principal));
        self
    }

    /// With a scope: requests without a principal share one key space, their credentials bound.
    #[must_use]
    pub const fn or_shared(mut self) -> Self {
        self.callers.or_shared = true;
        self
    }

    /// Without a scope: binds these headers as credentials in place of [`CREDENTIAL_HEADERS`], which are `Authorization`,
    /// `Proxy-Authorization`, `Cookie` and the usual headers for API keys and tokens.
    #[must_use]
    pub fn credential_headers<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.callers.headers = Some(owned(names));
        self
    }

    /// Without a scope: binds these cookies in place of the whole Cookie header, beside the other credential headers.
    #[must_use]
    pub fn bind_cookies<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.callers.cookies = Some(owned(names));
        self
    }

    /// Whoever knows a key gets its answer, whatever the credentials.
    #[must_use]
    pub const fn shared_by_all_callers(mut self) -> Self {
        self.callers.shared = true;
        self
    }
}

fn owned<I>(names: I) -> Vec<String>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    names.into_iter().map(|name| name.as_ref().to_owned()).collect()
}

impl CallerOptions {
    /// How callers are told apart, if the options make sense together.
    pub(super) fn rules(self) -> Result<Callers, PolicyError> {
        let credentials = self.credentials()?;
        match (self.scope, self.shared, self.or_shared) {
            (Some(_), true, _) => {
                Err(PolicyError::Door("shared_by_all_callers contradicts scope: use or_shared"))
            }
            (None, _, true) => Err(PolicyError::Door("or_shared without a scope means nothing")),
            (None, true, _) if credentials.is_some() => {
                Err(PolicyError::Door("shared_by_all_callers contradicts bound credentials"))
            }
            (Some(_), _, false) if credentials.is_some() => {
                Err(PolicyError::Door("with a scope, credentials are bound only under or_shared"))
            }
            (Some(scope), _, false) => Ok(Callers::ByScope(scope, None)),
            (Some(scope), _, true) => Ok(Callers::ByScope(scope, Some(credentials.unwrap_or_default()))),
            (None, true, _) => Ok(Callers::Shared),
            (None, false, _) => Ok(Callers::ByCredentials(credentials.unwrap_or_default())),
        }
    }

    /// The credentials that were named. A name that binds nothing is an error: it would let one caller have another's
    /// answer.
    fn credentials(&self) -> Result<Option<Credentials>, PolicyError> {
        let (headers, cookies) = (self.headers.as_deref(), self.cookies.as_deref());
        if headers.is_some_and(<[_]>::is_empty) {
            return Err(PolicyError::Door("credential_headers names none: say shared_by_all_callers"));
        }
        if headers.unwrap_or_default().iter().any(|name| HeaderName::try_from(name).is_err()) {
            return Err(PolicyError::Door("credential_headers names what no header can be called"));
        }
        if cookies.is_some_and(<[_]>::is_empty) {
            return Err(PolicyError::Door("bind_cookies names none: say which credential_headers to bind"));
        }
        // Both are tokens, and the case of a cookie's counts.
        if cookies.unwrap_or_default().iter().any(|name| HeaderName::try_from(name).is_err()) {
            return Err(PolicyError::Door("bind_cookies names what no cookie can be called"));
        }
        let named = match (headers, cookies) {
            (None, None) => return Ok(None),
            (Some(headers), None) => Credentials::headers(headers),
            (Some(headers), Some(cookies)) => Credentials::headers(headers).bind_cookies(cookies),
            (None, Some(cookies)) => Credentials::headers(CREDENTIAL_HEADERS).bind_cookies(cookies),
        };
        Ok(Some(named))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn rule(builder: PolicyBuilder) -> &'static str {
        match builder.build().unwrap_err() {
            PolicyError::Door(rule) => rule,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn contradictions_about_callers_are_refused() {
        let new = Policy::builder;
        assert_eq!(rule(new().or_shared()), "or_shared without a scope means nothing");
        let both = new().scope(|_| None).shared_by_all_callers();
        assert_eq!(rule(both), "shared_by_all_callers contradicts scope: use or_shared");
        let bound = new().scope(|_| None).bind_cookies(["sid"]);
        assert_eq!(rule(bound), "with a scope, credentials are bound only under or_shared");
        let shared = new().bind_cookies(["sid"]).shared_by_all_callers();
        assert_eq!(rule(shared), "shared_by_all_callers contradicts bound credentials");
    }

    #[test]
    fn names_that_would_bind_nothing_are_refused() {
        let none: [&str; 0] = [];
        let new = Policy::builder;
        let rules = [
            (new().credential_headers(none), "credential_headers names none: say shared_by_all_callers"),
            (new().bind_cookies(none), "bind_cookies names none: say which credential_headers to bind"),
        ];
        for (builder, expected) in rules {
            assert_eq!(rule(builder), expected);
        }
        for name in ["Authorization:", "", "x auth"] {
            let headers = new().credential_headers(["cookie", name]);
            assert_eq!(rule(headers), "credential_headers names what no header can be called", "{name:?}");
        }
        for name in ["sid=", "", "a;b", "a b"] {
            let cookies = new().bind_cookies(["sid", name]);
            assert_eq!(rule(cookies), "bind_cookies names what no cookie can be called", "{name:?}");
        }
    }

    #[test]
    fn headers_and_cookies_are_both_bound_in_either_order() {
        let bound = |builder: PolicyBuilder| match builder.build().unwrap().callers {
            Callers::ByCredentials(credentials) => credentials,
            other => panic!("{other:?}"),
        };
        let expected = Credentials::headers(["authorization"]).bind_cookies(["sid"]);
        let new = Policy::builder;
        assert_eq!(bound(new().bind_cookies(["sid"]).credential_headers(["authorization"])), expected);
        assert_eq!(bound(new().credential_headers(["authorization"]).bind_cookies(["sid"])), expected);
        assert_eq!(bound(new().bind_cookies(["sid"])), Credentials::default().bind_cookies(["sid"]));
    }

    #[test]
    fn callers_are_told_apart_as_asked() {
        let callers = |builder: PolicyBuilder| builder.build().unwrap().callers;
        assert!(matches!(callers(Policy::builder()), Callers::ByCredentials(_)));
        assert!(matches!(callers(Policy::builder().shared_by_all_callers()), Callers::Shared));
        assert!(matches!(callers(Policy::builder().scope(|_| None)), Callers::ByScope(_, None)));
        assert!(matches!(
            callers(Policy::builder().scope(|_| None).or_shared()),
            Callers::ByScope(_, Some(_))
        ));
    }
}
