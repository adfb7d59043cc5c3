//! Visits in memory, and the cookie that a client without a cookie jar would send.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use actix_session::storage::{LoadError, SaveError, SessionKey, SessionStore, UpdateError};
use actix_web::{
    cookie::{Cookie, CookieJar, Key, time::Duration},
    dev::ServiceRequest,
    http::header::{COOKIE, HeaderValue},
};
use uuid::Uuid;

/// The header that tells callers apart.
const CALLER: &str = "x-caller";

/// What a visit holds: each field's text.
type Fields = HashMap<String, String>;

/// All visits, which never end. One that nobody began is there too, and empty.
#[derive(Debug, Clone, Default)]
pub struct Visits(Arc<Mutex<HashMap<String, Fields>>>);

impl Visits {
    fn put(&self, visit: &SessionKey, fields: Fields) {
        let mut visits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        visits.insert(visit.as_ref().to_owned(), fields);
    }
}

impl SessionStore for Visits {
    async fn load(&self, visit: &SessionKey) -> Result<Option<Fields>, LoadError> {
        let visits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(visits.get(visit.as_ref()).cloned().unwrap_or_default()))
    }

    async fn save(&self, fields: Fields, _: &Duration) -> Result<SessionKey, SaveError> {
        let visit = SessionKey::try_from(Uuid::new_v4().to_string());
        let visit = visit.map_err(|error| SaveError::Other(error.into()))?;
        self.put(&visit, fields);
        Ok(visit)
    }

    async fn update(
        &self,
        visit: SessionKey,
        fields: Fields,
        _: &Duration,
    ) -> Result<SessionKey, UpdateError> {
        self.put(&visit, fields);
        Ok(visit)
    }

    async fn update_ttl(&self, _: &SessionKey, _: &Duration) -> Result<(), anyhow::Error> {
        Ok(())
    }

    async fn delete(&self, visit: &SessionKey) -> Result<(), anyhow::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(visit.as_ref());
        Ok(())
    }
}

/// Gives requests the cookie of their caller's visit.
#[derive(Clone)]
pub struct Visitor(Key);

/// A visitor whose cookies are sealed with `key`.
pub fn visitor(key: &Key) -> Visitor {
    Visitor(key.clone())
}

impl Visitor {
    /// Adds the cookie to the request.
    pub fn enter(&self, request: &mut ServiceRequest) {
        let caller = request.headers().get(CALLER).map_or(&b"nobody"[..], HeaderValue::as_bytes);
        let visit = format!("visit of {}", String::from_utf8_lossy(caller));
        let mut jar = CookieJar::new();
        jar.private_mut(&self.0).add(Cookie::new("id", visit));
        let sealed = jar.get("id").map(|cookie| cookie.encoded().to_string());
        let sealed = sealed.and_then(|cookie| HeaderValue::try_from(cookie).ok());
        request.headers_mut().append(COOKIE, sealed.expect("a sealed cookie is a header value"));
    }
}
