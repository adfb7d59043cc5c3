//! Where the server to grade is.

use std::{fmt, str::FromStr};

use http::{Uri, uri::Scheme};

/// A server, and the path its pages begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    host: String,
    port: u16,
    prefix: String,
}

impl Target {
    /// What a socket connects to.
    pub(crate) fn address(&self) -> (&str, u16) {
        (self.host.trim_start_matches('[').trim_end_matches(']'), self.port)
    }

    /// What a Host field says.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Where a page is, in a request line.
    pub(crate) fn path(&self, page: &str) -> String {
        format!("{}{page}", self.prefix)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.prefix)
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let uri: Uri = text.parse()?;
        let scheme = uri.scheme().ok_or(TargetError::NoScheme)?;
        if *scheme == Scheme::HTTPS {
            return Err(TargetError::Tls);
        }
        if *scheme != Scheme::HTTP {
            return Err(TargetError::NoScheme);
        }
        if uri.query().is_some() {
            return Err(TargetError::Query);
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(TargetError::NoHost)?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let port = match authority.strip_prefix(host).ok_or(TargetError::NoHost)?.strip_prefix(':') {
            None => 80,
            Some(port) => port.parse().map_err(|_| TargetError::NoHost)?,
        };
        Ok(Self { host: host.to_owned(), port, prefix: uri.path().trim_end_matches('/').to_owned() })
    }
}

/// Why a text is no target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// It is no URL.
    #[error("it is not a URL")]
    NoUrl(#[from] http::uri::InvalidUri),
    /// It does not begin with `http://`.
    #[error("it does not begin with http://")]
    NoScheme,
    /// The suite sends its own bytes, and speaks no TLS.
    #[error("this suite speaks no TLS: grade the server behind its TLS, or through a local plain proxy")]
    Tls,
    /// It names no host, or a port that is none.
    #[error("it names no host and port")]
    NoHost,
    /// A query has no place before a page.
    #[error("it has a query, before which no page can stand")]
    Query,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_and_written() {
        for (text, written) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://localhost", "http://localhost:80"),
            ("http://localhost:1/", "http://localhost:1"),
            ("http://[::1]:2/api/v1/", "http://[::1]:2/api/v1"),
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), written);
        }
        let target: Target = "http://[::1]:2/api".parse().unwrap();
        assert_eq!(target.address(), ("::1", 2));
        assert_eq!(target.path("/echo?a=b"), "/api/echo?a=b");
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in [
            "",
            "localhost:80",
            "ftp://localhost",
            "https://localhost",
            "http://",
            "http://a:99999",
            "http://user@a",
            "http://a/?b",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
