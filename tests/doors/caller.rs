//! Who calls a door, in words that all doors share: what is called, and what comes of it. `caller/http.rs` and
//! `caller/grpc.rs` translate.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tonic::transport::{Channel, Endpoint};

use crate::client::Client;

mod by_grpc;
mod by_http;

/// What is called. Every page counts its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// Counts up, and answers after a while.
    Count {
        ms: u64,
    },
    /// Places an order that outlives the process, and answers after a while.
    Order {
        ms: u64,
    },
    /// Places an order, and answers once nobody holds it.
    Held,
    /// Answers with the payload.
    Echo,
    /// Is not available: 503, UNAVAILABLE.
    Unavailable,
    /// Declines in words of its own, which are no refusal of the door's: 422, `FAILED_PRECONDITION`.
    Decline,
    Panic,
    /// Answers with fields that are replayed, and with some that are not.
    Fields,
    /// Answers with trailers.
    Trailers,
    /// Answers with a long body.
    Large {
        bytes: usize,
    },
}

/// One call, to be sent as often as one likes.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    page: Page,
    /// One line each.
    keys: Vec<Vec<u8>>,
    payload: String,
    fields: Vec<(&'static str, &'static str)>,
    deadline: Option<Duration>,
}

impl Call {
    pub(crate) fn to(page: Page, key: &str) -> Self {
        Self::with_keys(page, [key.as_bytes().to_vec()])
    }

    pub(crate) fn unkeyed(page: Page) -> Self {
        Self::with_keys(page, [])
    }

    pub(crate) fn with_keys(page: Page, keys: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let keys = keys.into_iter().collect();
        Self { page, keys, payload: "tea".to_owned(), fields: Vec::new(), deadline: None }
    }

    pub(crate) fn saying(self, payload: impl Into<String>) -> Self {
        Self { payload: payload.into(), ..self }
    }

    pub(crate) fn with(mut self, field: &'static str, value: &'static str) -> Self {
        self.fields.push((field, value));
        self
    }

    /// The caller waits no longer than this.
    pub(crate) fn within(self, deadline: Duration) -> Self {
        Self { deadline: Some(deadline), ..self }
    }
}

/// What a caller is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    /// The handler's answer.
    Ran(Answer),
    /// The handler's answer once more.
    Replayed(Answer),
    InFlight {
        retry_after: Duration,
    },
    /// The parts in which the payloads differ.
    Mismatch(Vec<String>),
    OtherCredentials,
    MissingKey,
    InvalidKey,
    NoPrincipal,
    TooLarge,
    InDoubt,
    NotReplayable,
    /// The store does not answer.
    Down {
        retry_after: Duration,
    },
    /// The handler panicked, or its record cannot be read.
    Broken,
    /// The connection ended, or the caller's deadline passed.
    Nothing,
}

/// What a handler answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) end: End,
    /// Byte for byte; of gRPC, the messages in a row.
    pub(crate) body: Bytes,
    pub(crate) fields: HeaderMap,
    pub(crate) trailers: HeaderMap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Well,
    Unavailable,
    Declined,
}

impl Told {
    /// A refusal by its code in a problem, which is its reason in a status, too, but for the spelling.
    fn refused(code: &str, retry_after: Option<Duration>, differing: Vec<String>) -> Self {
        let retry_after = || retry_after.unwrap_or_else(|| panic!("{code} says when to try again"));
        match code {
            "conflict" => Self::InFlight { retry_after: retry_after() },
            "fingerprint-mismatch" => Self::Mismatch(differing),
            "credentials-mismatch" => Self::OtherCredentials,
            "missing-key" => Self::MissingKey,
            "invalid-key" => Self::InvalidKey,
            "missing-principal" => Self::NoPrincipal,
            "payload-too-large" => Self::TooLarge,
            "outcome-unknown" => Self::InDoubt,
            "result-not-replayable" => Self::NotReplayable,
            "store-unavailable" => Self::Down { retry_after: retry_after() },
            "internal" => Self::Broken,
            other => panic!("no door says {other}"),
        }
    }

    pub(crate) const fn is_in_flight(&self) -> bool {
        matches!(self, Self::InFlight { .. })
    }

    #[track_caller]
    pub(crate) fn ran(self) -> Answer {
        match self {
            Self::Ran(answer) => answer,
            other => panic!("it did not run: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn replayed(self) -> Answer {
        match self {
            Self::Replayed(answer) => answer,
            other => panic!("it is no replay: {other:?}"),
        }
    }
}

impl Answer {
    /// All values of a field, in their order.
    pub(crate) fn values(&self, name: &str) -> Vec<&[u8]> {
        self.fields.get_all(name).iter().map(http::HeaderValue::as_bytes).collect()
    }
}

/// Somebody who calls one server.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    Http(Client),
    Grpc { endpoint: Box<Endpoint>, channel: Channel },
}

impl Caller {
    pub(crate) fn of_grpc(endpoint: Endpoint) -> Self {
        let channel = endpoint.connect_lazy();
        Self::Grpc { endpoint: Box::new(endpoint), channel }
    }

    /// Somebody else, who shares no connection with this one. (Of HTTP/1.1, every request has one of its own.)
    pub(crate) fn stranger(&self) -> Self {
        match self {
            Self::Http(client) => Self::Http(*client),
            Self::Grpc { endpoint, .. } => Self::of_grpc(Endpoint::clone(endpoint)),
        }
    }

    /// Sends `call` and reads the whole answer. Dropped before it is done, the caller has left.
    pub(crate) async fn send(&self, call: Call) -> Told {
        match self {
            Self::Http(client) => by_http::send(client, call).await,
            Self::Grpc { channel, .. } => by_grpc::send(channel, call).await,
        }
    }

    /// How often pages ran that are guarded.
    pub(crate) async fn runs(&self) -> u64 {
        match self {
            Self::Http(client) => by_http::number(client, "/counter", "count").await,
            Self::Grpc { channel, .. } => {
                by_grpc::number(channel, idempotency_fixture::grpc::Method::Runs).await
            }
        }
    }

    /// How many orders were placed, by this server and those before it.
    pub(crate) async fn orders(&self) -> u64 {
        match self {
            Self::Http(client) => by_http::number(client, "/orders", "orders").await,
            Self::Grpc { channel, .. } => {
                by_grpc::number(channel, idempotency_fixture::grpc::Method::Orders).await
            }
        }
    }

    /// Fields of its fields page that a replay gives back.
    pub(crate) const fn replayed_fields(&self) -> &'static [&'static str] {
        match self {
            Self::Http(_) => &["location", "x-multi", "link", "etag"],
            Self::Grpc { .. } => &["location", "x-multi", "x-run-bin"],
        }
    }
}
