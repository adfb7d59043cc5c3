//! First answers, replays and refusals.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::Full;
use idempotency_tower::{Attempt, Code, Policy, ReplayedFields, Verdict};

use crate::setup::{Door, policy, post, text};

fn created() -> Response<crate::setup::OwnBody> {
    Response::builder()
        .status(201)
        .header(header::LOCATION, "/orders/1")
        .header(header::SET_COOKIE, "sid=1")
        .header("x-multi", "one")
        .header("x-multi", "two")
        .header("x-request-id", "r1")
        .header("x-hop", "1")
        .header(header::CONNECTION, "X-Hop")
        .header("idempotency-replayed", "true")
        .header("preference-applied", "wait=9")
        .body(text("order 1"))
        .unwrap()
}

#[tokio::test]
async fn the_second_copy_gets_the_first_ones_answer() {
    let door = Door::answering(policy(), created);
    let first = door.send(post("k", "a")).await;
    let second = door.send(post("k", "a")).await;
    assert_eq!((first.status, second.status, door.runs()), (201, 201, 1));
    assert_eq!(first.body, second.body);
    assert!(!first.is_replay() && second.is_replay());
}

#[tokio::test]
async fn a_replay_repeats_what_belongs_to_the_answer_and_nothing_else() {
    let door = Door::answering(policy(), created);
    let first = door.send(post("k", "a")).await;
    let second = door.send(post("k", "a")).await;
    assert_eq!(first.header("set-cookie"), Some("sid=1"));
    assert_eq!(first.header("x-request-id"), Some("r1"));
    assert_eq!(first.header("preference-applied"), None, "the markers are the layer's");
    let multi: Vec<_> = second.headers.get_all("x-multi").iter().collect();
    assert_eq!(multi, ["one", "two"]);
    assert_eq!(second.header("location"), Some("/orders/1"));
    assert_eq!(second.header("cache-control"), Some("no-store"));
    for absent in ["set-cookie", "x-request-id", "x-hop", "connection"] {
        assert_eq!(second.header(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn a_route_may_repeat_more_fields_or_fewer() {
    let fields = ReplayedFields::default().allow(["x-request-id"]).deny(["Location"]);
    let door = Door::answering(policy().replayed_fields(fields), created);
    door.send(post("k", "a")).await;
    let second = door.send(post("k", "a")).await;
    assert_eq!((second.header("x-request-id"), second.header("location")), (Some("r1"), None));
}

#[tokio::test]
async fn a_handlers_own_cache_control_is_kept() {
    let answer = || Response::builder().header("cache-control", "private").body(text("x")).unwrap();
    let door = Door::answering(policy(), answer);
    door.send(post("k", "a")).await;
    assert_eq!(door.send(post("k", "a")).await.header("cache-control"), Some("private"));
}

#[tokio::test]
async fn requests_without_a_key_and_safe_methods_pass_untouched() {
    let door = Door::answering(policy(), created);
    for _ in 0..2 {
        let unkeyed = Request::post("/orders").body(Full::from("a")).unwrap();
        assert!(!door.send(unkeyed).await.headers.contains_key("idempotency-replay"));
        for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE] {
            let keyed = Request::builder().method(method).uri("/orders").header("idempotency-key", "k");
            door.send(keyed.body(Full::default()).unwrap()).await;
        }
    }
    assert_eq!(door.runs(), 12);
}

#[tokio::test]
async fn a_missing_key_is_refused_where_one_is_required() {
    let door = Door::answering(policy().required(), created);
    let refused = door.send(Request::post("/orders").body(Full::from("a")).unwrap()).await;
    assert_eq!((refused.status, refused.code().as_str(), door.runs()), (400, "missing-key", 0));
    let passed = door.send(Request::get("/orders").body(Full::default()).unwrap()).await;
    assert_eq!((passed.status, door.runs()), (201, 1));
}

#[tokio::test]
async fn bad_keys_are_refused_before_the_body_is_read() {
    let door = Door::answering(policy(), created);
    let long = "k".repeat(256);
    for key in ["", "\"\"", "\"open", "a b", "a,b", "\"a\\x\"", &long] {
        let refused = door.send(post(key, "a")).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid-key"), "{key:?}");
        assert!(
            key.len() < 3 || !String::from_utf8_lossy(&refused.body).contains(key),
            "{key:?} is told back"
        );
    }
    let twice = Request::post("/").header("idempotency-key", "k").header("idempotency-key", "k");
    assert_eq!(door.send(twice.body(Full::default()).unwrap()).await.code(), "invalid-key");
    assert_eq!(door.runs(), 0);
}

#[tokio::test]
async fn another_payload_is_refused_and_named_by_its_parts() {
    let door = Door::answering(policy(), created);
    door.send(post("k", "a")).await;
    let base = || Request::post("/orders?shop=1").header("idempotency-key", "k");
    let full = |body: &'static str| Full::from(body);
    let cases: [(Request<Full<Bytes>>, &[&str]); 6] = [
        (base().body(full("b")).unwrap(), &["body"]),
        (base().uri("/refunds?shop=1").body(full("a")).unwrap(), &["path"]),
        (base().uri("/orders?shop=2").body(full("a")).unwrap(), &["query"]),
        (base().method(Method::PATCH).body(full("a")).unwrap(), &["method"]),
        (base().header("content-type", "text/plain").body(full("b")).unwrap(), &["content-type", "body"]),
        (base().header("content-encoding", "gzip").body(full("a")).unwrap(), &["content-encoding"]),
    ];
    for (request, parts) in cases {
        let refused = door.send(request).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "fingerprint-mismatch"), "{parts:?}");
        assert_eq!(refused.problem()["mismatch"], serde_json::json!(parts));
    }
    assert!(door.send(post("k", "a")).await.is_replay(), "a mismatch leaves the record alone");
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn a_handler_learns_its_attempt_and_outer_layers_the_verdict() {
    let door = Door::new(policy(), |request| {
        let attempt = request.extensions().get::<Attempt>().cloned().unwrap();
        assert_eq!((attempt.number(), attempt.is_takeover()), (1, false));
        assert!(
            attempt.provider_key().len() == 64
                && attempt.provider_key().starts_with(&attempt.address().to_string())
        );
        let body = format!("{} {}", attempt.key().as_str(), attempt.fence());
        let body = http_body_util::BodyExt::boxed_unsync(http_body_util::BodyExt::map_err(
            Full::from(body),
            crate::setup::never,
        ));
        Box::pin(async { Ok(Response::new(body)) })
    });
    let verdict = async |request| *door.open(request).await.unwrap().extensions().get::<Verdict>().unwrap();
    assert!(matches!(verdict(post("\"the key\"", "a")).await, Verdict::Ran { attempt: 1, .. }));
    assert_eq!(verdict(post("\"the key\"", "a")).await, Verdict::Replayed);
    assert_eq!(verdict(post("\"the key\"", "b")).await, Verdict::Refused(Code::FingerprintMismatch));
    let replay = door.send(post("\"the key\"", "a")).await;
    assert!(replay.body.starts_with(b"the key "), "{replay:?}");
}

#[tokio::test]
async fn a_replay_holds_nothing_of_the_request_it_answers() {
    #[derive(Clone)]
    struct Principal;

    let door = Door::answering(policy(), || Response::new(text("order 1")));
    let copy = || {
        let mut request = post("k", "a");
        request.extensions_mut().insert(Principal);
        for number in 0..40 {
            let name = http::HeaderName::try_from(format!("x-caller-{number}")).unwrap();
            request.headers_mut().append(name, header::HeaderValue::from_static("secret"));
        }
        request
    };
    door.send(copy()).await;
    let replay = door.open(copy()).await.unwrap();
    assert_eq!(replay.extensions().get::<Verdict>(), Some(&Verdict::Replayed));
    assert!(replay.extensions().get::<Principal>().is_none());
    assert_eq!(replay.extensions().len(), 1);
    let fields: BTreeSet<_> = replay.headers().keys().map(header::HeaderName::as_str).collect();
    assert_eq!(fields, BTreeSet::from(["cache-control", "idempotency-replayed"]));
}

#[tokio::test]
async fn the_layer_inside_itself_guards_once() {
    let inner = Door::answering(policy(), created);
    let layer = inner.layer.clone();
    let both = tower::Layer::layer(
        &layer,
        tower::service_fn({
            let inner = std::sync::Arc::new(inner);
            move |request: Request<_>| {
                let inner = std::sync::Arc::clone(&inner);
                async move {
                    let (parts, _) =
                        Request::<idempotency_tower::RequestBody<Full<Bytes>>>::into_parts(request);
                    inner.open(Request::from_parts(parts, Full::from("a"))).await
                }
            }
        }),
    );
    let answer = tower::ServiceExt::oneshot(both, post("k", "a")).await.unwrap();
    assert_eq!(answer.status(), 201);
}

#[tokio::test]
async fn names_of_header_and_marker_are_a_policys_to_choose() {
    let builder = Policy::builder()
        .header(header::HeaderName::from_static("x-idempotency-key"))
        .replayed_header(header::HeaderName::from_static("idempotent-replayed"));
    let door = Door::answering(builder, created);
    let request = || Request::post("/").header("x-idempotency-key", "k").body(Full::from("a")).unwrap();
    door.send(request()).await;
    let replay = door.send(request()).await;
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!(replay.header("idempotency-replayed"), None);
    door.send(post("k", "a")).await;
    assert_eq!(door.runs(), 2, "the usual header means nothing here");
}
