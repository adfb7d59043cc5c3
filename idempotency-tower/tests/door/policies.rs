//! What a policy may choose beyond how runs end.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use idempotency_core::Address;
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{Event, IdempotencyLayer, Observer, OnServerError, Policy, Refusal};
use tower::{Layer, ServiceExt, service_fn};

use crate::setup::{Answer, Door, policy, post, text};

fn done() -> Response<crate::setup::OwnBody> {
    Response::new(text("done"))
}

#[tokio::test]
async fn refusals_link_to_the_services_own_pages() {
    let policy =
        policy().problem_base("https://docs.example/problems/").docs_url("https://docs.example/keys");
    let door = Door::answering(policy, done);
    for refused in [door.send(post("", "a")).await, door.send(post("\"open", "a")).await] {
        assert_eq!(refused.problem()["type"], "https://docs.example/problems/invalid-key");
        assert_eq!(refused.header("link"), Some("<https://docs.example/keys>; rel=\"describedby\""));
    }
    assert_eq!(door.send(post("k", "a")).await.header("link"), None, "a first answer is the handler's");
}

#[tokio::test]
async fn a_policy_may_render_refusals_its_own_way() {
    let render = |refusal: &Refusal| {
        let body = Bytes::from(format!("sorry: {}", refusal.code));
        Response::builder()
            .status(refusal.code.status())
            .header("cache-control", "private")
            .body(body)
            .unwrap()
    };
    let door = Door::answering(policy().render(render).on_server_error(OnServerError::Hold), || {
        Response::builder().status(500).body(text("oops")).unwrap()
    });
    door.send(post("k", "a")).await;
    let refused = door.send(post("k", "a")).await;
    assert_eq!((refused.status, &refused.body[..]), (409, &b"sorry: outcome-unknown"[..]));
    assert_eq!(refused.header("cache-control"), Some("private"), "what the renderer set stands");
}

#[tokio::test]
async fn a_renderer_that_panics_is_done_without() {
    let render = |_: &Refusal| -> Response<Bytes> { panic!("out of paper") };
    let door = Door::answering(policy().render(render), done);
    assert_eq!(door.send(post("\"open", "a")).await.code(), "invalid-key");
}

#[tokio::test]
async fn an_expired_key_is_new_or_refused_as_the_policy_says() {
    let expires = || policy().retention(Duration::from_millis(150));
    let door = Door::answering(expires(), done);
    door.send(post("k", "a")).await;
    while door.send(post("k", "a")).await.is_replay() {
        tokio::task::yield_now().await;
    }
    assert_eq!(door.runs(), 2, "an expired key runs as new");

    let door = Door::answering(expires().reject_expired_keys_for(Duration::from_secs(60)), done);
    door.send(post("k", "a")).await;
    let refused = loop {
        let answer = door.send(post("k", "a")).await;
        if !answer.is_replay() {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((refused.status, refused.code().as_str(), door.runs()), (410, "key-expired", 1));
    assert_eq!(door.send(post("k", "other")).await.code(), "key-expired", "whatever the payload");
}

/// What an observer saw, by name.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Observer for Seen {
    fn observe(&self, _: &Address, event: &Event<'_>) {
        let name = format!("{event:?}");
        let end = name.find([' ', '(']).unwrap_or(name.len());
        self.0.lock().unwrap().push(name[..end].to_owned());
    }
}

#[tokio::test]
async fn a_policy_in_the_shadow_changes_nothing_and_counts() {
    let seen = Seen::default();
    let policy = policy().required().max_request_bytes(4).in_the_shadow().build().unwrap();
    let layer = IdempotencyLayer::observed(MemoryStore::new(), policy, seen.clone());
    let service =
        layer.layer(service_fn(async |request: http::Request<idempotency_tower::RequestBody<_>>| {
            assert!(request.extensions().get::<idempotency_tower::Attempt>().is_none());
            let body = http_body_util::BodyExt::collect(request.into_body()).await.unwrap().to_bytes();
            let body =
                http_body_util::BodyExt::map_err(http_body_util::Full::from(body), crate::setup::never);
            Ok::<_, std::convert::Infallible>(
                Response::builder()
                    .header("idempotency-replayed", "the handler's own")
                    .body(http_body_util::BodyExt::boxed_unsync(body))
                    .unwrap(),
            )
        }));
    let send = async |key: &str, body: &'static str| {
        let request = if key.is_empty() {
            http::Request::post("/").body(http_body_util::Full::<Bytes>::from(body)).unwrap()
        } else {
            post(key, body)
        };
        Answer::read(service.clone().oneshot(request).await.unwrap()).await
    };
    for (key, body) in [("k", "a"), ("k", "a"), ("k", "b"), ("\"bad", "a"), ("", "a"), ("k", "too long")] {
        let answer = send(key, body).await;
        assert_eq!((answer.status, &answer.body[..]), (200, body.as_bytes()), "{key:?} {body:?}");
        assert_eq!(answer.header("idempotency-replayed"), Some("the handler's own"));
        assert_eq!(layer.drain(Duration::from_secs(60)).await.left, 0);
    }
    assert_eq!(*seen.0.lock().unwrap(), ["Granted", "Stored", "Completed", "Mismatch"]);
}

#[tokio::test]
async fn a_body_too_long_for_the_shadow_reaches_the_handler_whole() {
    let policy = policy().max_request_bytes(4).in_the_shadow().build().unwrap();
    let layer = IdempotencyLayer::with_policy(MemoryStore::new(), policy);
    let service = layer.layer(service_fn(
        async |request: http::Request<idempotency_tower::RequestBody<crate::setup::OwnBody>>| {
            let body = http_body_util::BodyExt::collect(request.into_body())
                .await
                .map(http_body_util::Collected::to_bytes);
            let text = match body {
                Ok(bytes) => bytes,
                Err(error) => Bytes::from(format!("error: {error}")),
            };
            let body =
                http_body_util::BodyExt::map_err(http_body_util::Full::from(text), crate::setup::never);
            Ok::<_, std::convert::Infallible>(Response::new(http_body_util::BodyExt::boxed_unsync(body)))
        },
    ));
    let data = |text: &'static str| Ok(http_body::Frame::data(Bytes::from_static(text.as_bytes())));
    let send = async |frames: Vec<Result<http_body::Frame<Bytes>, crate::setup::BodyError>>| {
        let body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
        let body = http_body_util::BodyExt::boxed_unsync(body);
        let request = http::Request::post("/").header("idempotency-key", "k").body(body).unwrap();
        Answer::read(service.clone().oneshot(request).await.unwrap()).await.body
    };
    assert_eq!(send(vec![data("abc"), data("def"), data("ghi")]).await, "abcdefghi");
    let broken = vec![data("abc"), Err(crate::setup::BodyError("reset by peer"))];
    assert_eq!(send(broken).await, "error: reset by peer");
}

#[tokio::test]
async fn layers_under_other_policies_share_one_engine() {
    let layer = IdempotencyLayer::with_policy(MemoryStore::new(), policy().max_live_runs(1).build().unwrap());
    let strict = layer.under(Policy::builder().required().build().unwrap());
    let strict = strict.layer(service_fn(async |_: http::Request<idempotency_tower::RequestBody<_>>| {
        Ok::<_, std::convert::Infallible>(done())
    }));
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let slow = layer.layer(service_fn({
        let gate = Arc::clone(&gate);
        move |_: http::Request<idempotency_tower::RequestBody<_>>| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, std::convert::Infallible>(done())
            }
        }
    }));
    let unkeyed = http::Request::post("/").body(http_body_util::Full::<Bytes>::default()).unwrap();
    assert_eq!(Answer::read(strict.clone().oneshot(unkeyed).await.unwrap()).await.code(), "missing-key");
    let running = tokio::spawn(slow.oneshot(post("k", "a")));
    while layer.live_runs() == 0 {
        tokio::task::yield_now().await;
    }
    let refused = Answer::read(strict.oneshot(post("other", "a")).await.unwrap()).await;
    assert_eq!(refused.code(), "overloaded", "the bound is the engine's");
    gate.add_permits(1);
    assert_eq!(running.await.unwrap().unwrap().status(), 200);
}
