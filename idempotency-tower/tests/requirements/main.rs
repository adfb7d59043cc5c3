//! What an idempotent HTTP service is required to do by the checklist in `tests/cases/requirements.txt`, as far as no
//! other test says it. A test is called `req_area_N_what`; `scripts/coverage` sees that no requirement is without one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use idempotency_core::clock::{ManualClock, Timestamp};
use idempotency_store_contract::faults::{Call, Fault};
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{
    Attempt, BoxError, Code, Ending, IdempotencyLayer, Refusal, RequestBody, Scope, client::KeyLayer,
};
use tokio::sync::Semaphore;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use setup::{Answer, Door, policy, post, text};

#[allow(dead_code, reason = "the tests of the door use the rest")]
#[path = "../door/setup.rs"]
mod setup;

fn done() -> Response<setup::OwnBody> {
    Response::new(text("done"))
}

fn sent(method: Method, key: &str) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri("/orders").header("Idempotency-KEY", key);
    request.body(Full::from("a")).unwrap()
}

#[tokio::test]
async fn req_core_5_ten_thousand_keys_are_version_4_and_differ() {
    let client = KeyLayer::new().layer(service_fn(async |request: Request<Full<Bytes>>| {
        let key = request.headers()["idempotency-key"].to_str().unwrap().trim_matches('"').to_owned();
        Ok::<_, BoxError>(Response::new(key))
    }));
    let mut drawn = HashSet::new();
    for _ in 0..10_000 {
        let request = Request::post("http://shop.example/orders").body(Full::default()).unwrap();
        let key = client.clone().oneshot(request).await.unwrap().into_body();
        assert_eq!(uuid::Uuid::parse_str(&key).unwrap().get_version_num(), 4, "{key}");
        assert!(drawn.insert(key));
    }
}

#[tokio::test]
async fn req_http_1_post_and_patch_are_guarded_by_default_and_others_by_choice() {
    let door = Door::answering(policy(), done);
    for (method, is_guarded) in [
        (Method::POST, true),
        (Method::PATCH, true),
        (Method::PUT, false),
        (Method::DELETE, false),
        (Method::from_bytes(b"post").unwrap(), false), // methods are told apart by case
    ] {
        door.send(sent(method.clone(), method.as_str())).await;
        assert_eq!(
            door.send(sent(method.clone(), method.as_str())).await.is_replay(),
            is_guarded,
            "{method}"
        );
    }
    let chosen = Door::answering(policy().methods([Method::PUT, Method::DELETE]), done);
    for (method, is_guarded) in [(Method::PUT, true), (Method::DELETE, true), (Method::POST, false)] {
        chosen.send(sent(method.clone(), method.as_str())).await;
        assert_eq!(
            chosen.send(sent(method.clone(), method.as_str())).await.is_replay(),
            is_guarded,
            "{method}"
        );
    }
}

#[tokio::test]
async fn req_http_2_the_header_is_found_in_any_case_and_refused_when_repeated() {
    let door = Door::answering(policy(), done);
    door.send(sent(Method::POST, "k")).await;
    assert!(door.send(sent(Method::POST, "k")).await.is_replay());
    let mut twice = sent(Method::POST, "k");
    twice.headers_mut().append("idempotency-key", "k".parse().unwrap());
    assert_eq!(door.send(twice).await.code(), "invalid-key");
}

#[tokio::test]
async fn req_http_3_a_missing_key_is_refused_with_a_link_to_the_rules() {
    let door = Door::answering(policy().required().docs_url("https://shop.example/keys"), done);
    let unkeyed = Request::post("/orders").body(Full::from("a")).unwrap();
    let refused = door.send(unkeyed).await;
    assert_eq!((refused.status, refused.code().as_str(), door.runs()), (400, "missing-key", 0));
    assert_eq!(refused.header("link"), Some("<https://shop.example/keys>; rel=\"describedby\""));
}

#[tokio::test]
async fn req_http_6_the_handler_reads_the_body_that_was_compared() {
    let door = Door::new(policy().max_request_bytes(5), |request| {
        Box::pin(async move {
            let size = http_body::Body::size_hint(request.body()).exact();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(size, Some(body.len() as u64));
            Ok(Response::new(Full::from(body).map_err(setup::never).boxed_unsync()))
        })
    });
    assert_eq!(door.send(post("k", "exact")).await.body, "exact");
    assert_eq!(door.send(post("k", "exact")).await.body, "exact");
    assert_eq!(door.send(post("k", "other")).await.code(), "fingerprint-mismatch");
    assert_eq!(door.send(post("k", "longer")).await.code(), "payload-too-large");
    assert_eq!(door.runs(), 1);
}

/// 4.5 s into a lease of 30 s there are 25.5 s left, said as 26.
#[tokio::test]
async fn req_http_10_retry_after_is_the_lease_left_in_whole_seconds() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
    let store = MemoryStore::builder().clock(Arc::clone(&clock)).build().unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let service = IdempotencyLayer::new(store).layer(service_fn({
        let gate = Arc::clone(&gate);
        move |_: Request<RequestBody<Full<Bytes>>>| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, BoxError>(done())
            }
        }
    }));
    let mut first = Box::pin(service.clone().oneshot(post("k", "a")));
    assert!(futures_util::poll!(&mut first).is_pending());
    for (passed, seconds) in [(4_500, "26"), (25_000, "1"), (499, "1")] {
        clock.advance(Duration::from_millis(passed));
        let refused = Answer::read(service.clone().oneshot(post("k", "a")).await.unwrap()).await;
        assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("conflict", Some(seconds)));
    }
    gate.add_permits(1);
    assert_eq!(Answer::read(first.await.unwrap()).await.body, "done");
}

/// Every code this door answers whole requests with, by what brings it about.
async fn every_refusal(
    with: fn(idempotency_tower::PolicyBuilder) -> idempotency_tower::PolicyBuilder,
) -> Vec<(Code, Answer)> {
    let answering = |policy, answer: fn() -> Response<setup::OwnBody>| Door::answering(with(policy), answer);
    let said: fn(Ending) -> Response<setup::OwnBody> =
        |ending| Response::builder().extension(ending).body(text("done")).unwrap();
    let mut seen = Vec::new();
    let unkeyed = Request::post("/").body(Full::default()).unwrap();
    seen.push((Code::MissingKey, answering(policy().required(), done).send(unkeyed).await));
    seen.push((Code::InvalidKey, answering(policy(), done).send(post("", "a")).await));
    let nobody = answering(policy().scope(|_| None::<Scope>), done);
    seen.push((Code::MissingPrincipal, nobody.send(post("k", "a")).await));
    let small = answering(policy().max_request_bytes(1), done);
    seen.push((Code::PayloadTooLarge, small.send(post("k", "too long")).await));
    let door = answering(policy(), done);
    door.send(post("k", "a")).await;
    seen.push((Code::FingerprintMismatch, door.send(post("k", "b")).await));
    let mut other = post("k", "a");
    other.headers_mut().insert("authorization", "bob".parse().unwrap());
    seen.push((Code::CredentialsMismatch, door.send(other).await));
    let doubtful = Door::answering(with(policy()), move || said(Ending::Unknown));
    doubtful.send(post("k", "a")).await;
    seen.push((Code::OutcomeUnknown, doubtful.send(post("k", "a")).await));
    let unkept = Door::answering(with(policy()), move || said(Ending::KeepHead));
    unkept.send(post("k", "a")).await;
    seen.push((Code::ResultNotReplayable, unkept.send(post("k", "a")).await));
    let moment = Duration::from_micros(1);
    let expired =
        answering(policy().retention(moment).reject_expired_keys_for(Duration::from_secs(60)), done);
    expired.send(post("k", "a")).await;
    seen.push((Code::KeyExpired, expired.send(post("k", "a")).await));
    for (code, kind) in [
        (Code::StoreUnavailable, idempotency_core::StoreErrorKind::Unavailable),
        (Code::Overloaded, idempotency_core::StoreErrorKind::Full),
        (Code::Internal, idempotency_core::StoreErrorKind::Corrupt),
    ] {
        let down = answering(policy(), done);
        down.faults.set(Call::Claim, Fault::Fails(kind));
        seen.push((code, down.send(post("k", "a")).await));
    }
    seen.push((Code::Conflict, conflict(with(policy())).await));
    seen
}

async fn conflict(policy: idempotency_tower::PolicyBuilder) -> Answer {
    let gate = Arc::new(Semaphore::new(0));
    let door = Door::new(policy, {
        let gate = Arc::clone(&gate);
        move |_| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                Ok(done())
            })
        }
    });
    let mut first = Box::pin(door.open(post("k", "a")));
    assert!(futures_util::poll!(&mut first).is_pending());
    door.send(post("k", "a")).await
}

#[tokio::test]
async fn req_http_13_every_refusal_is_a_problem_with_its_code() {
    for (code, answer) in every_refusal(|policy| policy).await {
        assert_eq!((answer.status, answer.code().as_str()), (code.status(), code.name()));
        let problem = answer.problem();
        assert_eq!(problem["title"], code.title());
        let members: Vec<_> = problem.as_object().unwrap().keys().map(String::as_str).collect();
        let known = ["code", "detail", "mismatch", "original_status", "status", "title", "type"];
        assert!(members.iter().all(|member| known.contains(member)), "{code}: {members:?}");
        let retries = matches!(code, Code::Conflict | Code::StoreUnavailable | Code::Overloaded);
        assert_eq!(answer.header("retry-after").is_some(), retries, "{code}");
    }
}

#[tokio::test]
async fn req_http_13_a_renderer_of_ones_own_keeps_what_the_protocol_needs() {
    let own = |policy: idempotency_tower::PolicyBuilder| {
        policy.docs_url("https://shop.example/keys").render(|refusal: &Refusal| {
            Response::builder().status(refusal.code.status()).body(Bytes::from("sorry")).unwrap()
        })
    };
    for (code, answer) in every_refusal(own).await {
        assert_eq!((answer.status, &answer.body[..]), (code.status(), &b"sorry"[..]), "{code}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{code}");
        assert!(answer.header("link").is_some(), "{code}");
        let retries = matches!(code, Code::Conflict | Code::StoreUnavailable | Code::Overloaded);
        assert_eq!(answer.header("retry-after").is_some(), retries, "{code}");
    }
}

/// There is no option for it: what takes the key off a request takes the guard off it.
#[tokio::test]
async fn req_http_15_a_layer_outside_may_leave_single_requests_unguarded() {
    let dry_runs_are_not_guarded = |mut request: Request<Full<Bytes>>| {
        if request.headers().contains_key("x-dry-run") {
            request.headers_mut().remove("idempotency-key");
        }
        request
    };
    let service = ServiceBuilder::new()
        .map_request(dry_runs_are_not_guarded)
        .layer(IdempotencyLayer::new(MemoryStore::new()))
        .service(service_fn(async |request: Request<RequestBody<Full<Bytes>>>| {
            assert_eq!(
                request.extensions().get::<Attempt>().is_none(),
                request.headers().contains_key(HeaderName::from_static("x-dry-run"))
            );
            Ok::<_, BoxError>(done())
        }));
    let send = async |request| Answer::read(service.clone().oneshot(request).await.unwrap()).await;
    for _ in 0..2 {
        let mut dry = post("k", "a");
        dry.headers_mut().insert("x-dry-run", "1".parse().unwrap());
        assert!(!send(dry).await.is_replay());
    }
    assert!(!send(post("k", "a")).await.is_replay());
    assert!(send(post("k", "a")).await.is_replay());
}
