//! The service on a clock of its own, spoken to without a socket, its two documents at hand.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Request, StatusCode},
};
use axum_memory_policies::{
    app::{Books, app},
    policies::Layers,
};
use http_body_util::BodyExt;
use idempotency_core::clock::{Clock, Timestamp};
use idempotency_store_memory::MemoryStore;
use serde_json::Value;
use tower::ServiceExt;

pub(crate) struct Site {
    app: Router,
    pub(crate) layers: Layers<MemoryStore>,
    pub(crate) books: Books,
    pub(crate) clock: Hands,
    pub(crate) contract: Value,
    pub(crate) openapi: Value,
}

impl Site {
    pub(crate) async fn open() -> Self {
        let (books, clock) = (Books::default(), Hands::default());
        let store = MemoryStore::builder().clock(clock.clone()).build().unwrap();
        let layers = Layers::on(store).unwrap();
        let app = app(Arc::clone(&books), &layers).unwrap();
        let contract = read(&app, "/.well-known/idempotency").await;
        let openapi = read(&app, "/openapi.json").await;
        Self { app, layers, books, clock, contract, openapi }
    }

    pub(crate) fn routes(&self) -> Vec<Value> {
        self.contract["routes"].as_array().unwrap().clone()
    }

    /// Sends `ask`, and finds its answer in the OpenAPI document.
    pub(crate) async fn send(&self, ask: &Ask) -> Answer {
        let response = self.app.clone().oneshot(ask.request()).await.unwrap();
        let (head, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        let replayed = head.headers.contains_key("idempotency-replayed");
        let answer = Answer { status: head.status, replayed, headers: head.headers, text };
        if let Some(code) = answer.code() {
            let status = answer.status.as_str();
            assert!(
                self.describes(&ask.path, status, &code),
                "OpenAPI has no {status} {code} at {}",
                ask.path
            );
        }
        if answer.replayed {
            let headers =
                &self.openapi["paths"][&ask.path]["post"]["responses"][answer.status.as_str()]["headers"];
            let markers = ["idempotency-replayed", "idempotency-replay", "preference-applied"];
            for marker in markers.into_iter().filter(|name| answer.headers.contains_key(*name)) {
                assert!(headers[marker].is_object(), "OpenAPI has no {marker} at {}", ask.path);
            }
        }
        answer
    }

    /// Whether the OpenAPI document has a refusal of this status and code at `path`.
    pub(crate) fn describes(&self, path: &str, status: &str, code: &str) -> bool {
        let response = &self.openapi["paths"][path]["post"]["responses"][status];
        let schema = &response["content"]["application/problem+json"]["schema"];
        let codes = &schema["allOf"][1]["properties"]["code"]["enum"];
        codes.as_array().is_some_and(|codes| codes.iter().any(|known| known == code))
    }

    /// Drives `asking` until `reached`.
    pub(crate) async fn until<F>(&self, asking: &mut Pin<Box<F>>, reached: impl Fn(&Self) -> bool)
    where
        F: Future<Output = Answer>,
    {
        while !reached(self) {
            tokio::select! {
                biased;
                answer = &mut *asking => panic!("answered too early: {answer:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
}

async fn read(app: &Router, path: &str) -> Value {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()["content-type"]),
        (StatusCode::OK, &"application/json".parse().unwrap())
    );
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

/// A request to be.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    path: String,
    body: String,
    headers: Vec<(&'static str, String)>,
}

impl Ask {
    /// Alice's, as JSON, without a key.
    pub(crate) fn new(path: &str, body: impl Into<String>) -> Self {
        let ask = Self { path: path.to_owned(), body: body.into(), headers: Vec::new() };
        ask.from("alice").content_type("application/json")
    }

    pub(crate) fn key(&self, key: &str) -> Self {
        self.with("idempotency-key", Some(key.to_owned()))
    }

    pub(crate) fn prefer(&self, preference: &str) -> Self {
        self.with("prefer", Some(preference.to_owned()))
    }

    pub(crate) fn content_type(&self, media_type: &str) -> Self {
        self.with("content-type", Some(media_type.to_owned()))
    }

    pub(crate) fn from(&self, name: &str) -> Self {
        self.with("authorization", Some(format!("Bearer {name}")))
    }

    pub(crate) fn anonymous(&self) -> Self {
        self.with("authorization", None)
    }

    fn with(&self, name: &'static str, value: Option<String>) -> Self {
        let mut changed = self.clone();
        changed.headers.retain(|(known, _)| *known != name);
        changed.headers.extend(value.map(|value| (name, value)));
        changed
    }

    fn request(&self) -> Request<Body> {
        let request = Request::post(&self.path);
        let headers = self.headers.iter();
        let request = headers.fold(request, |request, (name, value)| request.header(*name, value));
        request.body(Body::from(self.body.clone())).unwrap()
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) replayed: bool,
    pub(crate) text: String,
    headers: HeaderMap,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}")).to_str().unwrap()
    }

    /// Is the refusal that the contract promises.
    pub(crate) fn is(&self, promised: &Value) {
        assert_eq!(promised["answer"], "refuse", "{promised}");
        let code = self.code();
        let code = code.unwrap_or_else(|| panic!("{promised} was promised: {} {}", self.status, self.text));
        assert_eq!(self.status.as_u16(), promised["status"], "{code}");
        assert_eq!(promised["code"], code);
    }

    /// The code of a refusal.
    fn code(&self) -> Option<String> {
        let is_problem = self.headers.get("content-type").is_some_and(|it| it == "application/problem+json");
        let problem: Value = is_problem.then(|| serde_json::from_str(&self.text).unwrap())?;
        Some(problem["code"].as_str().unwrap().to_owned())
    }
}

/// A clock that tests set forward.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hands(Arc<AtomicU64>);

impl Hands {
    pub(crate) fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000 + self.0.load(Ordering::SeqCst))
    }
}

/// The seconds of an ISO 8601 duration: days, hours, minutes, seconds.
pub(crate) fn seconds(duration: &Value) -> u64 {
    let text = duration.as_str().unwrap().strip_prefix('P').unwrap();
    let (mut total, mut digits, mut in_time) = (0, String::new(), false);
    for letter in text.chars() {
        let unit = match (letter, in_time) {
            ('T', _) => {
                in_time = true;
                continue;
            }
            ('0'..='9', _) => {
                digits.push(letter);
                continue;
            }
            ('D', false) => 86_400,
            ('H', true) => 3_600,
            ('M', true) => 60,
            ('S', true) => 1,
            _ => panic!("not a duration: {duration}"),
        };
        total += std::mem::take(&mut digits).parse::<u64>().unwrap() * unit;
    }
    total
}
