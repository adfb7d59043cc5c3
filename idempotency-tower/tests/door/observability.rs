//! What is logged and counted of everything that can befall a request, and that nothing of it is the caller's own.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Full, combinators::UnsyncBoxBody};
use idempotency_core::StoreErrorKind;
use idempotency_store_contract::faults::{CAUSE, Call, Fault};
use idempotency_tower::{Ending, OnServerError, PolicyBuilder, Scope, Secret, observability::Metrics};
use tokio::sync::Semaphore;

use self::ears::Ears;
use crate::setup::{BodyError, Door, Incoming, OwnBody, policy, text};

mod ears;

/// Stands in everything that belongs to a caller or a handler, and nowhere else.
const CANARY: &str = "canary";
const PAGE: &str = include_str!("../../docs/observability.md");
const FAILS: Fault = Fault::Fails(StoreErrorKind::Unavailable);

/// Lets gated handlers of a test go on.
type Gate = &'static Semaphore;

fn gate() -> Gate {
    Box::leak(Box::new(Semaphore::new(0)))
}

/// A body of which nothing comes but an error.
struct Breaks(SizeHint);

impl Body for Breaks {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(Some(Err(BodyError("canary in a body's error"))))
    }

    fn size_hint(&self) -> SizeHint {
        self.0
    }
}

/// Does what the path says, and says so in a log of its own.
async fn handle(request: Incoming, gate: Gate) -> Result<Response<OwnBody>, idempotency_tower::BoxError> {
    tracing::info!("the handler begins");
    let mut response = Response::new(text("a canary answer"));
    match request.uri().path() {
        "/gated" => {
            gate.acquire().await.unwrap().forget();
            tracing::info!("the handler goes on");
        }
        "/panics" => panic!("canary in a panic"),
        "/fails" => return Err("canary in an error".into()),
        "/breaks" => response = Response::new(UnsyncBoxBody::new(Breaks(SizeHint::new()))),
        "/breaks-in-memory" => response = Response::new(UnsyncBoxBody::new(Breaks(SizeHint::with_exact(4)))),
        "/unknown" => drop(response.extensions_mut().insert(Ending::Unknown)),
        "/head-only" => drop(response.extensions_mut().insert(Ending::KeepHead)),
        _ => {}
    }
    Ok(response)
}

fn guarded(policy: PolicyBuilder) -> (Door, Gate) {
    let gate = gate();
    let policy = policy.secret(Secret::new(1, *b"canary secret of thirty-two byte"));
    let door = Door::observed(policy, Metrics::new(), move |request| Box::pin(handle(request, gate)));
    (door, gate)
}

fn ask(path: &str, body: &'static str) -> Request<Full<Bytes>> {
    Request::post(format!("{path}?canary=query"))
        .header("idempotency-key", "canary-key")
        .header("authorization", "Bearer canary")
        .header("cookie", "sid=canary")
        .header("x-api-key", "canary")
        .body(Full::from(body))
        .unwrap()
}

const BODY: &str = r#"{"card":"canary"}"#;

#[tokio::test]
async fn a_run_its_copies_and_another_payload() {
    let ears = Ears::open();
    let (door, gate) = guarded(policy());
    let first = tokio::spawn(door.send(ask("/gated", BODY)));
    while door.runs() == 0 {
        tokio::task::yield_now().await;
    }
    ears.moved(&[("idempotency.claims{verdict=granted}", 1), ("idempotency.live_runs", 1)]);
    assert_eq!(door.send(ask("/gated", BODY)).await.code(), "conflict");
    ears.moved(&[("idempotency.claims{verdict=in_flight}", 1), ("idempotency.conflicts", 1)]);
    gate.add_permits(1);
    assert_eq!(first.await.unwrap().status, 200);
    ears.moved(&[("idempotency.stored", 1), ("idempotency.live_runs", -1)]);
    assert!(door.send(ask("/gated", BODY)).await.is_replay());
    ears.moved(&[("idempotency.claims{verdict=completed}", 1), ("idempotency.replays", 1)]);
    assert_eq!(door.send(ask("/gated", "canary")).await.code(), "fingerprint-mismatch");
    ears.moved(&[("idempotency.claims{verdict=mismatch}", 1), ("idempotency.mismatches", 1)]);

    let log = ears.log();
    let begins = log.line("the handler begins");
    for field in ["operation=", "verdict=\"granted\"", "fence=", "attempt=1"] {
        assert!(begins.contains(field), "{field} is not in the span of {begins}");
    }
    assert!(log.line("the operation runs").starts_with("DEBUG"));
    assert!(log.line("answered with the outcome").starts_with("DEBUG"));
    for verdict in ["in_flight", "completed", "mismatch"] {
        log.line(&format!("verdict=\"{verdict}\""));
    }
    let mismatch = log.line("another payload");
    assert!(mismatch.starts_with("INFO") && mismatch.contains(r#"differing=["body"]"#), "{mismatch}");
}

#[tokio::test]
async fn a_run_whose_client_left_logs_inside_its_span() {
    let ears = Ears::open();
    let (door, gate) = guarded(policy());
    let mut leaving = door.open(ask("/gated", BODY));
    assert!(futures_util::poll!(&mut leaving).is_pending());
    while door.runs() == 0 {
        assert!(futures_util::poll!(&mut leaving).is_pending());
        tokio::task::yield_now().await;
    }
    drop(leaving);
    gate.add_permits(1);
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    let goes_on = ears.log().line("the handler goes on");
    assert!(goes_on.contains("idempotency{") && goes_on.contains("fence="), "{goes_on}");
    ears.moved(&[("idempotency.claims{verdict=granted}", 1), ("idempotency.stored", 1)]);
}

#[tokio::test]
async fn runs_that_fail() {
    let ears = Ears::open();
    let (door, _) = guarded(policy());
    let released = [("idempotency.claims{verdict=granted}", 1), ("idempotency.released{why=not_applied}", 1)];
    assert_eq!(door.send(ask("/panics", BODY)).await.code(), "internal");
    ears.moved(&released);
    assert!(door.open(ask("/fails", BODY)).await.is_err());
    ears.moved(&released);
    let response = door.open(ask("/breaks", BODY)).await.unwrap();
    assert!(http_body_util::BodyExt::collect(response.into_body()).await.is_err());
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    ears.moved(&released);
    assert_eq!(door.send(ask("/breaks-in-memory", BODY)).await.code(), "internal");
    ears.moved(&released);
    let log = ears.log();
    assert_eq!(log.count("broke off"), 2, "the streamed one and the one of known length");
    for (text, level) in
        [("a handler panicked", "ERROR"), ("inner service failed", "ERROR"), ("broke off", "WARN")]
    {
        let line = log.line(text);
        assert!(line.starts_with(level) && line.contains("operation="), "{line}");
    }
}

#[tokio::test]
async fn operations_in_doubt_or_not_for_keeping() {
    let ears = Ears::open();
    let (door, _) = guarded(policy().on_server_error(OnServerError::Hold));
    assert_eq!(door.send(ask("/unknown", BODY)).await.status, 200);
    ears.moved(&[("idempotency.claims{verdict=granted}", 1), ("idempotency.released{why=unknown}", 1)]);
    assert_eq!(door.send(ask("/unknown", BODY)).await.code(), "outcome-unknown");
    ears.moved(&[("idempotency.claims{verdict=in_doubt}", 1), ("idempotency.in_doubt", 1)]);
    assert!(ears.log().line("nobody knows").starts_with("WARN"));

    let (door, _) = guarded(policy());
    assert_eq!(door.send(ask("/head-only", BODY)).await.status, 200);
    assert_eq!(door.send(ask("/head-only", BODY)).await.code(), "result-not-replayable");
    ears.moved(&[
        ("idempotency.claims{verdict=granted}", 1),
        ("idempotency.stored", 1),
        ("idempotency.claims{verdict=completed}", 1),
    ]);
}

#[tokio::test]
async fn a_store_that_does_not_answer() {
    let ears = Ears::open();
    let (door, _) = guarded(policy().completion_retry(Duration::from_millis(1)));
    door.faults.set(Call::Claim, FAILS);
    assert_eq!(door.send(ask("/", BODY)).await.code(), "store-unavailable");
    ears.moved(&[("idempotency.store.failures{call=claim,kind=unavailable}", 1)]);
    door.faults.mend(Call::Claim);
    door.faults.set(Call::Complete, FAILS);
    assert_eq!(door.send(ask("/", BODY)).await.status, 200);
    ears.moved(&[
        ("idempotency.claims{verdict=granted}", 1),
        ("idempotency.store.failures{call=complete,kind=unavailable}", 1),
        ("idempotency.outcomes_lost{kind=unavailable}", 1),
        ("idempotency.lapsed", 1),
    ]);
    let log = ears.log();
    assert!(log.line("could not be stored").starts_with("ERROR"));
    let failed = log.line("a store call failed");
    assert!(failed.starts_with("WARN") && failed.contains(r#"call="claim" kind="unavailable""#), "{failed}");

    let (door, _) = guarded(policy().fail_open());
    door.faults.set(Call::Claim, FAILS);
    assert_eq!(door.send(ask("/panics", BODY)).await.code(), "internal");
    ears.moved(&[
        ("idempotency.store.failures{call=claim,kind=unavailable}", 1),
        ("idempotency.unrecorded_runs", 1),
    ]);
    assert!(ears.log().line("no record").contains("verdict=\"unrecorded\""));
}

#[tokio::test]
async fn a_run_that_is_taken_over() {
    let ears = Ears::open();
    let (door, gate) = guarded(policy());
    door.faults.set(Call::Renew, Fault::Hangs);
    let late = tokio::spawn(door.send(ask("/gated", BODY)));
    ears.heard("lost its lease").await;
    let second = tokio::spawn(door.send(ask("/gated", BODY)));
    while door.runs() < 2 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(2);
    assert_eq!((late.await.unwrap().status, second.await.unwrap().status), (409, 200));
    let moved = ears.drain();
    for metric in
        ["idempotency.lease_lost", "idempotency.takeovers", "idempotency.fenced", "idempotency.stored"]
    {
        assert_eq!(moved.get(metric), Some(&1), "{metric} in {moved:?}");
    }
    assert_eq!(moved.get("idempotency.live_runs"), Some(&0));
    let log = ears.log();
    for text in ["a run takes over", "lost its lease", "another one took its place"] {
        let line = log.line(text);
        assert!(line.starts_with("WARN") && line.contains("operation="), "{line}");
    }
}

#[tokio::test]
async fn requests_that_claim_nothing_and_one_too_many() {
    let ears = Ears::open();
    let principal = |parts: &http::request::Parts| {
        parts.headers.get("x-tenant").map(|tenant| Scope::principal(tenant.to_str().unwrap()))
    };
    let (door, gate) = guarded(policy().required().max_request_bytes(64).max_live_runs(1).scope(principal));
    let mut bad = ask("/", BODY);
    bad.headers_mut().insert("idempotency-key", "\"canary".parse().unwrap());
    assert_eq!(door.send(bad).await.code(), "invalid-key");
    assert_eq!(door.send(ask("/", BODY)).await.code(), "missing-principal");
    let scoped = |path, body| {
        let mut request = ask(path, body);
        request.headers_mut().insert("x-tenant", "canary-tenant".parse().unwrap());
        request
    };
    let long = "canary canary canary canary canary canary canary canary canary canary";
    assert_eq!(door.send(scoped("/", long)).await.code(), "payload-too-large");
    ears.moved(&[]);
    for code in ["invalid-key", "missing-principal", "payload-too-large"] {
        assert!(ears.log().line(code).starts_with("DEBUG"));
    }

    let first = tokio::spawn(door.send(scoped("/gated", BODY)));
    while door.runs() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(door.send(scoped("/gated", BODY)).await.code(), "overloaded");
    gate.add_permits(1);
    assert_eq!(first.await.unwrap().status, 200);
    ears.moved(&[
        ("idempotency.claims{verdict=granted}", 1),
        ("idempotency.stored", 1),
        ("idempotency.overloaded", 1),
    ]);
}

#[test]
fn the_page_names_every_metric_with_its_unit() {
    let ears = Ears::open();
    let _metrics = Metrics::new();
    let described = ears.described();
    assert!(described.len() > 15, "{described:?}");
    for (name, unit) in &described {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{name}`")));
        assert!(row.is_some_and(|row| row.contains(unit.as_str())), "{name} in {unit}: {row:?}");
    }
    let rows = PAGE.lines().filter(|line| line.starts_with("| `idempotency."));
    assert_eq!(rows.count(), described.len());
}
