//! What a policy may choose beyond how runs end.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{IdempotencyLayer, OnServerError, Policy, Refusal};
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

#[tokio::test]
async fn layers_under_other_policies_share_one_engine() {
    let layer = IdempotencyLayer::with_policy(MemoryStore::new(), policy().max_live_runs(1).build().unwrap());
    let strict = layer.under(Policy::builder().required().build().unwrap());
    let strict = strict.layer(service_fn(async |_: http::Request<idempotency_tower::RequestBody<_>>| {
        Ok::<_, std::convert::Infallible>(done())
    }));
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let slow = layer.layer(service_fn({
        let gate = std::sync::Arc::clone(&gate);
        move |_: http::Request<idempotency_tower::RequestBody<_>>| {
            let gate = std::sync::Arc::clone(&gate);
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
