//! Which requests get a key, and how it is written.

use http::{HeaderName, Method, Request, header::Entry};
use idempotency_core::{Key, profile::http::headers};

use crate::client::{Misuse, Spelling, operation_key::random_key};

/// Which requests get a key, and how it is written.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) methods: Vec<Method>,
    pub(super) header: HeaderName,
    pub(super) spelling: Spelling,
}

/// In the extensions of a request whose key makes it safe to try again.
#[derive(Debug, Clone, Copy)]
pub(in crate::client) struct Keyed;

impl Rules {
    /// Writes `key` into the request's header.
    pub(super) fn write<B>(&self, key: &Key, request: &mut Request<B>) -> Result<(), Misuse> {
        let value = self.spelling.write(key)?;
        request.headers_mut().insert(self.header.clone(), value);
        request.extensions_mut().insert(Keyed);
        Ok(())
    }

    /// Keeps the key that a request's caller set, out of sight, or gives it a fresh one.
    pub(super) fn keep_or_write<B>(&self, request: &mut Request<B>) -> Result<(), Misuse> {
        let Entry::Occupied(mut own) = request.headers_mut().entry(&self.header) else {
            return self.write(&random_key(), request);
        };
        own.iter_mut().for_each(|value| value.set_sensitive(true));
        request.extensions_mut().insert(Keyed);
        Ok(())
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            methods: vec![Method::POST, Method::PATCH],
            header: HeaderName::from_static(headers::IDEMPOTENCY_KEY),
            spelling: Spelling::default(),
        }
    }
}
