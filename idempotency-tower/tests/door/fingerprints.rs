//! What counts as the same request: readings of the body, selected headers, and secrets that change.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{IdempotencyLayer, PolicyBuilder, RequestBody, Secret};
use tower::{Layer, ServiceExt, service_fn};

use crate::setup::{Answer, Door, policy, post, text};

fn created() -> Response<crate::setup::OwnBody> {
    Response::builder().status(201).body(text("created")).unwrap()
}

fn typed(content_type: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request =
        Request::post("/orders").header("idempotency-key", "k").header("content-type", content_type);
    request.body(Full::new(body.into())).unwrap()
}

fn json(body: &'static str) -> Request<Full<Bytes>> {
    typed("application/json", body)
}

/// A form with one file, as a client sends it that draws this boundary.
fn form(boundary: &str, file_name: &str, file: &str) -> Request<Full<Bytes>> {
    let body = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{file_name}\"\r\n\
         Content-Type: text/plain\r\n\r\n{file}\r\n--{boundary}--\r\n"
    );
    typed(&format!("multipart/form-data; boundary={boundary}"), body)
}

async fn assert_replayed(door: &Door, request: Request<Full<Bytes>>) {
    let answer = door.send(request).await;
    assert!(answer.is_replay() && answer.status == 201, "{answer:?}");
    assert_eq!(door.runs(), 1);
}

/// Refused, with the parts that differ.
async fn assert_refused(door: &Door, request: Request<Full<Bytes>>, parts: &[&str]) {
    let refused = door.send(request).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "fingerprint-mismatch"));
    assert_eq!(refused.problem()["mismatch"], serde_json::json!(parts));
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn canonical_json_forgives_spelling_and_nothing_else() {
    let door = Door::answering(policy().canonical_json(), created);
    door.send(json(r#"{"a":1,"b":[1,2]}"#)).await;
    assert_replayed(&door, json("{ \"b\":[1,2],\n\"a\":1.0 }")).await;
    assert_refused(&door, json(r#"{"a":1,"b":[2,1]}"#), &["body"]).await;
    assert_refused(&door, json(r#"{"a":"1","b":[1,2]}"#), &["body"]).await;
    assert_refused(&door, typed("text/plain", r#"{"a":1,"b":[1,2]}"#), &["content-type", "body"]).await;
}

#[tokio::test]
async fn by_default_the_order_of_members_counts() {
    let door = Door::answering(policy(), created);
    door.send(json(r#"{"a":1,"b":2}"#)).await;
    assert_refused(&door, json(r#"{"b":2,"a":1}"#), &["body"]).await;
}

#[tokio::test]
async fn repeated_members_are_compared_byte_for_byte() {
    let door = Door::answering(policy().canonical_json(), created);
    door.send(json(r#"{"a":1,"a":2}"#)).await;
    assert_replayed(&door, json(r#"{"a":1,"a":2}"#)).await;
    assert_refused(&door, json(r#"{"a":1, "a":2}"#), &["body"]).await;
    assert_refused(&door, json(r#"{"a":2}"#), &["body"]).await;
}

#[tokio::test]
async fn a_form_may_draw_a_new_boundary() {
    let door = Door::answering(policy().multipart_by_part(), created);
    door.send(form("AAA111", "a.txt", "hello")).await;
    assert_replayed(&door, form("BBB222", "a.txt", "hello")).await;
    assert_refused(&door, form("BBB222", "a.txt", "hellO"), &["body"]).await;
    assert_refused(&door, form("BBB222", "b.txt", "hello"), &["body"]).await;

    let door = Door::answering(policy(), created);
    door.send(form("AAA111", "a.txt", "hello")).await;
    assert_refused(&door, form("BBB222", "a.txt", "hello"), &["body"]).await;
}

#[tokio::test]
async fn both_readings_stand_side_by_side() {
    let door = Door::answering(policy().canonical_json().multipart_by_part(), created);
    door.send(form("AAA111", "a.txt", "hello")).await;
    assert_replayed(&door, form("BBB222", "a.txt", "hello")).await;
    assert_refused(&door, json("[]"), &["content-type", "body"]).await;
}

#[tokio::test]
async fn selected_headers_count_and_no_others() {
    let shop = |shop: &'static str, try_id: &'static str| {
        let mut request = post("k", "a");
        request.headers_mut().insert("x-shop", shop.parse().unwrap());
        request.headers_mut().insert("x-request-id", try_id.parse().unwrap());
        request
    };
    let door = Door::answering(policy().fingerprint_headers(["X-Shop"]), created);
    door.send(shop("1", "first")).await;
    assert_replayed(&door, shop("1", "second")).await;
    assert_refused(&door, shop("2", "third"), &["headers"]).await;
    assert_refused(&door, post("k", "a"), &["headers"]).await;
}

#[tokio::test]
async fn a_service_may_say_what_its_bodies_mean() {
    let meaning = |_: &http::request::Parts, body: &Bytes| body.slice(..body.len().min(3));
    let door = Door::answering(policy().fingerprint_body(meaning), created);
    door.send(post("k", "abc at noon")).await;
    assert_replayed(&door, post("k", "abc at one")).await;
    assert_refused(&door, post("k", "abd at noon"), &["body"]).await;
}

#[tokio::test]
async fn a_body_left_out_is_not_compared_but_all_else_is() {
    let door = Door::answering(policy().body_left_out_of_the_fingerprint(), created);
    door.send(post("k", "a")).await;
    assert_replayed(&door, post("k", "b")).await;
    let mut other = post("k", "a");
    *other.uri_mut() = "/refunds?shop=1".parse().unwrap();
    assert_refused(&door, other, &["path"]).await;
}

/// Hosts of one service on one store, deployed one after the other.
#[derive(Default)]
struct Hosts {
    store: MemoryStore,
    runs: Arc<AtomicUsize>,
}

impl Hosts {
    /// Sends a request to a host that was just deployed with this policy.
    async fn send(&self, policy: PolicyBuilder, request: Request<Full<Bytes>>) -> Answer {
        let runs = Arc::clone(&self.runs);
        let handler = service_fn(move |_: Request<RequestBody<Full<Bytes>>>| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, Infallible>(created()) }
        });
        let layer = IdempotencyLayer::with_policy(self.store.clone(), policy.build().unwrap());
        Answer::read(layer.layer(handler).oneshot(request).await.unwrap()).await
    }

    async fn assert_replayed(&self, policy: PolicyBuilder) {
        let answer = self.send(policy, post("k", "a")).await;
        assert!(answer.is_replay(), "{answer:?}");
        assert_eq!(self.runs.load(Ordering::SeqCst), 1);
    }

    /// Refused because of a secret that the host does not know, and not run.
    async fn assert_unknown(&self, policy: PolicyBuilder) {
        let refused = self.send(policy, post("k", "a")).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "fingerprint-mismatch"));
        assert_eq!(refused.problem()["mismatch"], serde_json::json!(["secret"]));
        assert_eq!(self.runs.load(Ordering::SeqCst), 1);
    }
}

fn secret(id: u32) -> Secret {
    Secret::new(id, [id as u8; 32])
}

#[tokio::test]
async fn a_secret_may_be_changed_while_the_one_before_is_known() {
    let hosts = Hosts::default();
    hosts.send(policy().secret(secret(1)), post("k", "a")).await;
    hosts.assert_replayed(policy().secret(secret(1))).await;
    hosts.assert_replayed(policy().secret(secret(2)).previous_secret(secret(1))).await;
    hosts.assert_replayed(policy().secret(secret(1)).previous_secret(secret(2))).await;
    hosts.assert_unknown(policy().secret(secret(2))).await;
    hosts.assert_unknown(policy().secret(secret(3)).previous_secret(secret(2))).await;
    hosts.assert_unknown(policy()).await;
    let other = policy().secret(secret(2)).previous_secret(secret(1));
    let refused = hosts.send(other, post("k", "b")).await;
    assert_eq!(refused.problem()["mismatch"], serde_json::json!(["body"]));
}

#[tokio::test]
async fn a_first_secret_may_follow_none() {
    let hosts = Hosts::default();
    hosts.send(policy(), post("k", "a")).await;
    hosts.assert_replayed(policy().secret(secret(1)).previously_without_secret()).await;
    hosts.assert_unknown(policy().secret(secret(1))).await;
}

/// Two layers on one engine know different secrets; a copy that waits is told by its own.
#[tokio::test]
async fn a_waiting_copy_is_not_told_by_a_layer_with_other_secrets() {
    let wait = |policy: PolicyBuilder| policy.wait(std::time::Duration::from_secs(5)).build().unwrap();
    let known = wait(policy().secret(secret(2)).previous_secret(secret(1)));
    let unknown = wait(policy().secret(secret(2)));
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let handler = service_fn({
        let gate = Arc::clone(&gate);
        move |_: Request<RequestBody<Full<Bytes>>>| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, Infallible>(created())
            }
        }
    });
    let store = MemoryStore::new();
    let first = IdempotencyLayer::with_policy(store.clone(), wait(policy().secret(secret(1))));
    let running = tokio::spawn(first.layer(handler.clone()).oneshot(post("k", "a")));
    while first.live_runs() == 0 {
        tokio::task::yield_now().await;
    }
    let layer = IdempotencyLayer::with_policy(store, known);
    let waiting = tokio::spawn(layer.layer(handler.clone()).oneshot(post("k", "a")));
    while layer.waiters() == 0 {
        tokio::task::yield_now().await;
    }
    let refused = layer.under(unknown).layer(handler).oneshot(post("k", "a")).await.unwrap();
    assert_eq!(refused.status(), 422);
    gate.add_permits(1);
    assert_eq!(running.await.unwrap().unwrap().status(), 201);
    assert!(Answer::read(waiting.await.unwrap().unwrap()).await.is_replay());
}
