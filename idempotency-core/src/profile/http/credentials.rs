//! What tells one caller from another when no scope does.

use super::{
    selected::{SelectedHeaders, in_order},
    syntax::trim_ows,
};

/// The headers that carry credentials unless a policy names others: those that clients and gateways are known to use.
///
/// What is drawn anew for every try (`X-Csrf-Token`, signatures) is not among them, or no retry would be recognised.
pub const CREDENTIAL_HEADERS: [&str; 11] = [
    "api-key",
    "authorization",
    "cookie",
    "private-token",
    "proxy-authorization",
    "x-access-token",
    "x-amz-security-token",
    "x-api-key",
    "x-api-token",
    "x-auth-token",
    "x-goog-api-key",
];

const COOKIE: &str = "cookie";

/// Which credentials are bound into a request's fingerprint, so that no answer leaves its principal.
///
/// The default takes the whole of [`CREDENTIAL_HEADERS`]. The order in which names are given does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    headers: SelectedHeaders,
    cookies: Option<Vec<Box<str>>>,
}

impl Credentials {
    /// No credentials at all: for a service with a scope, or whose callers share everything.
    pub fn none() -> Self {
        Self { headers: SelectedHeaders::default(), cookies: None }
    }

    /// The whole value of each of these headers. Their case does not matter.
    pub fn headers<I>(names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Self { headers: SelectedHeaders::new(names), cookies: None }
    }

    /// Binds these cookies in place of the whole `Cookie` header, which browsers fill with much that changes between
    /// two tries of one caller. Cookie names are case-sensitive.
    #[must_use]
    pub fn bind_cookies<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.cookies = Some(in_order(names.into_iter().map(|name| name.as_ref().to_owned())));
        self
    }

    /// Whether the header of this lower-case name can hold credentials.
    pub fn are_in(&self, name: &str) -> bool {
        self.headers.names().any(|known| known == name) || (self.cookies.is_some() && name == COOKIE)
    }

    /// The request's credentials in a fixed order; `lines` gives the values of all lines of a header by its lower-case
    /// name.
    ///
    /// A cookie is its raw `name=value` pair under the name `cookie`, so an absent one differs from an empty one and none
    /// can pass for a header. The whole `Cookie` header is all its pairs, since HTTP/2 may send each as a line of its own.
    pub fn read<'a, L>(&self, lines: impl Fn(&str) -> L) -> Vec<(&str, &'a [u8])>
    where
        L: IntoIterator<Item = &'a [u8]>,
    {
        let pairs = || {
            let pairs = lines(COOKIE).into_iter().flat_map(|line| line.split(|byte| *byte == b';'));
            pairs.map(trim_ows).filter(|pair| !pair.is_empty()).map(|pair| (COOKIE, pair))
        };
        let mut read = Vec::new();
        for name in self.headers.names() {
            match (name, &self.cookies) {
                (COOKIE, None) => read.extend(pairs()),
                (COOKIE, Some(_)) => {}
                _ => read.extend(lines(name).into_iter().map(|value| (name, value))),
            }
        }
        for name in self.cookies.iter().flatten() {
            read.extend(pairs().filter(|(_, pair)| cookie_name(pair) == name.as_bytes()));
        }
        read
    }
}

impl Default for Credentials {
    fn default() -> Self {
        Self::headers(CREDENTIAL_HEADERS)
    }
}

fn cookie_name(pair: &[u8]) -> &[u8] {
    let end = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
    trim_ows(&pair[..end])
}

#[cfg(test)]
mod tests;
