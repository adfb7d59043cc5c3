//! A key that belongs to one request and refuses every other.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use http::request::Parts;
use idempotency_core::{Fingerprint, Key, Part, Parts as Differing};
use uuid::Uuid;

/// The key of one operation, for all the times it is sent.
///
/// Put a clone into a request's extensions and [`KeyLayer`](super::KeyLayer) sends it as that request's key, whatever
/// the method. The first request it goes with binds it: method, URI and body. With any other request it is a [`Misuse`], and nothing is sent. Clones share the binding.
///
/// The binding lives in memory. A program that must find its key again after a restart writes [`key`](Self::key) down
/// before the first try, and makes the same value [`From`] it; a service that guards its routes refuses another payload
/// under that key all the same.
#[derive(Clone)]
pub struct OperationKey {
    inner: Arc<Inner>,
}

struct Inner {
    key: Key,
    bound: OnceLock<Fingerprint>,
}

impl OperationKey {
    /// A fresh random key (UUID, version 4), bound to nothing yet.
    ///
    /// # Panics
    /// When the operating system has no randomness to give.
    pub fn random() -> Self {
        random_key().into()
    }

    /// The key itself. Do not log it: it names somebody's operation.
    pub fn key(&self) -> &Key {
        &self.inner.key
    }

    /// Binds the key to a request, or checks that it is bound to this one.
    pub(super) fn bind(&self, parts: &Parts, body: &[u8]) -> Result<(), Misuse> {
        let asked = fingerprint(parts, body);
        let bound = self.inner.bound.get_or_init(|| asked);
        if *bound == asked {
            return Ok(());
        }
        Err(Misuse::OtherRequest { differing: bound.differing_parts(&asked) })
    }
}

impl From<Key> for OperationKey {
    fn from(key: Key) -> Self {
        Self { inner: Arc::new(Inner { key, bound: OnceLock::new() }) }
    }
}

/// Shows the key's length and a digest of what it is bound to.
impl fmt::Debug for OperationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationKey")
            .field("key", &self.inner.key)
            .field("bound", &self.inner.bound.get())
            .finish()
    }
}

/// Why a request is not sent with the key it was given. No character of a key or a payload is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// An [`OperationKey`] belongs to the request it first went with.
    #[error("the operation key belongs to another request: it differs in {}", names(*differing))]
    OtherRequest {
        /// The parts in which the requests differ.
        differing: Differing,
    },
    /// A request has an [`OperationKey`] or a key header of its caller, not both.
    #[error("the request has both an operation key and a key header")]
    TwoKeys,
    /// A key that holds a space, a comma or a quote cannot be written [`Bare`](super::Spelling::Bare).
    #[error("the key holds a separator and cannot be written without quotes")]
    NeedsQuotes,
}

/// A fresh random key.
pub(super) fn random_key() -> Key {
    Key::new(Uuid::new_v4().to_string()).expect("a UUID is 36 bytes of visible ASCII")
}

/// What a request asks, and of whom. Credentials do not count, so that a token may be refreshed between two tries.
fn fingerprint(parts: &Parts, body: &[u8]) -> Fingerprint {
    let uri = &parts.uri;
    let scheme = uri.scheme_str().unwrap_or_default().to_ascii_lowercase();
    let authority =
        uri.authority().map(|authority| authority.as_str().to_ascii_lowercase()).unwrap_or_default();
    let place = [scheme.as_bytes(), authority.as_bytes(), uri.path().as_bytes()];
    let asked = Fingerprint::builder()
        .part(Part::Method, parts.method.as_str().as_bytes())
        .fields(Part::Path, place)
        .part(Part::Body, body);
    match uri.query() {
        Some(query) => asked.part(Part::Query, query.as_bytes()).build(),
        None => asked.build(),
    }
}

fn names(differing: Differing) -> String {
    differing.iter().map(Part::name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn order() -> http::request::Builder {
        Request::post("http://shop.example/orders?shop=1")
    }

    fn parts(builder: http::request::Builder) -> Parts {
        builder.body(()).unwrap().into_parts().0
    }

    fn differing(misuse: Misuse) -> Vec<Part> {
        let Misuse::OtherRequest { differing } = misuse else { panic!("{misuse}") };
        differing.iter().collect()
    }

    #[test]
    fn a_key_belongs_to_the_request_it_first_went_with() {
        let key = OperationKey::random();
        let again = key.clone();
        key.bind(&parts(order()), b"tea").unwrap();
        again.bind(&parts(order()), b"tea").unwrap();
        let refused = |builder, body: &[u8]| differing(again.bind(&parts(builder), body).unwrap_err());
        assert_eq!(refused(order(), b"coffee"), [Part::Body]);
        assert_eq!(refused(order().method("PATCH"), b"tea"), [Part::Method]);
        assert_eq!(refused(order().uri("http://shop.example/orders?shop=2"), b"tea"), [Part::Query]);
        assert_eq!(refused(order().uri("http://shop.example/others?shop=1"), b"tea"), [Part::Path]);
        assert_eq!(refused(order().uri("http://else.example/orders?shop=1"), b"tea"), [Part::Path]);
        assert_eq!(refused(order().uri("https://shop.example/orders?shop=1"), b"tea"), [Part::Path]);
        assert_eq!(refused(order().uri("http://shop.example/orders"), b"tea"), [Part::Query]);
    }

    #[test]
    fn what_may_change_from_try_to_try_does_not_unbind() {
        let key = OperationKey::random();
        key.bind(&parts(order().header("authorization", "Bearer a")), b"tea").unwrap();
        let renewed = order().header("authorization", "Bearer b").uri("http://SHOP.example/orders?shop=1");
        key.bind(&parts(renewed), b"tea").unwrap();
    }

    #[test]
    fn neither_debug_nor_display_shows_a_key_or_a_payload() {
        let key = OperationKey::from(Key::new("order-4711").unwrap());
        assert_eq!(format!("{key:?}"), "OperationKey { key: Key(10 bytes), bound: None }");
        key.bind(&parts(order()), b"tea").unwrap();
        let shown = format!("{key:?}");
        assert!(shown.contains("bound: Some(Fingerprint(") && !shown.contains("4711"), "{shown}");
        let misuse = key.bind(&parts(order()), b"coffee").unwrap_err();
        assert_eq!(misuse.to_string(), "the operation key belongs to another request: it differs in body");
    }
}
