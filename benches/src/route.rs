//! The ways a request can take through the layer, and what has to be there before it takes one.

use std::sync::Arc;

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use tokio::task::JoinHandle;
use tower_service::Service;

use crate::{
    Candidate,
    app::{Gate, HOLD, PATH},
    key::fresh_key,
};

pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A way through the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// No key: the request passes.
    NoKey,
    /// A key nobody used before: the handler runs and its answer is kept.
    FirstRun,
    /// A key whose answer is kept.
    Replay,
    /// The same key with another body.
    Mismatch,
    /// A key whose first request is still running.
    InFlight,
}

impl Route {
    /// All of them, in the order of a table.
    pub const ALL: [Self; 5] = [Self::NoKey, Self::FirstRun, Self::Replay, Self::Mismatch, Self::InFlight];

    /// What a table calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoKey => "no key",
            Self::FirstRun => "first run",
            Self::Replay => "replay",
            Self::Mismatch => "mismatch",
            Self::InFlight => "in flight",
        }
    }
}

/// One candidate, ready for requests that all take one route.
#[derive(Debug)]
pub struct Track {
    router: Router,
    route: Route,
    known: HeaderValue,
    body: Bytes,
    expected: StatusCode,
    held: Option<(Arc<Gate>, JoinHandle<()>)>,
}

impl Track {
    /// Wraps the service anew, and sends what must have come before.
    pub async fn lay(candidate: &Candidate, route: Route, body_bytes: usize) -> Self {
        let (router, gate) = candidate.build();
        let expected = candidate.status(route);
        let body = Bytes::from(vec![b'a'; body_bytes]);
        let mut track = Self { router, route, known: key(), body, expected, held: None };
        match route {
            Route::NoKey | Route::FirstRun => {}
            Route::Replay => track.send_first(track.body.clone()).await,
            Route::Mismatch => track.send_first(Bytes::from(vec![b'b'; body_bytes])).await,
            Route::InFlight => track.hold_first(gate).await,
        }
        track
    }

    /// A batch of requests, ready to be sent.
    pub fn requests(&self, count: usize) -> Vec<Request<Body>> {
        let request = || match self.route {
            Route::NoKey => request(self.body.clone(), None),
            Route::FirstRun => request(self.body.clone(), Some(key())),
            Route::Replay | Route::Mismatch | Route::InFlight => {
                request(self.body.clone(), Some(self.known.clone()))
            }
        };
        (0..count).map(|_| request()).collect()
    }

    /// Sends the requests one after another and reads every answer to its end.
    ///
    /// # Panics
    /// When an answer is not the one this route leads to: then something else would be measured.
    pub async fn send(&mut self, requests: Vec<Request<Body>>) {
        for request in requests {
            let status = send(&mut self.router, request).await;
            assert_eq!(status, self.expected, "{}", self.route.name());
        }
    }

    async fn send_first(&mut self, body: Bytes) {
        let status = send(&mut self.router, request(body, Some(self.known.clone()))).await;
        assert_eq!(status, StatusCode::CREATED, "the first request runs");
    }

    async fn hold_first(&mut self, gate: Arc<Gate>) {
        let mut request = request(self.body.clone(), Some(self.known.clone()));
        request.headers_mut().insert(HOLD, HeaderValue::from_static("true"));
        let mut router = self.router.clone();
        let first = tokio::spawn(async move {
            send(&mut router, request).await;
        });
        gate.entered().await;
        self.held = Some((gate, first));
    }

    /// Lets a request that is still held go, and waits for it.
    pub async fn clear(self) {
        if let Some((gate, first)) = self.held {
            gate.open();
            first.await.expect("the held request is answered");
        }
    }
}

async fn send(router: &mut Router, request: Request<Body>) -> StatusCode {
    let Ok(response) = router.call(request).await;
    let (head, body) = response.into_parts();
    body.collect().await.expect("the body is whole");
    head.status
}

fn request(body: Bytes, key: Option<HeaderValue>) -> Request<Body> {
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static(PATH);
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if let Some(key) = key {
        headers.insert(KEY, key);
    }
    request
}

fn key() -> HeaderValue {
    HeaderValue::try_from(fresh_key()).expect("hex digits and dashes are a header")
}
