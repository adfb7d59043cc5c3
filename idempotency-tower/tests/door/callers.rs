//! Callers told apart, callers that leave, and callers in a crowd.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use idempotency_store_contract::faults::{Call, Fault};
use idempotency_tower::{PolicyBuilder, Scope};
use tokio::sync::Semaphore;
use tracing::instrument::WithSubscriber;

use crate::setup::{Door, Incoming, policy, post, text};

fn door(policy: PolicyBuilder) -> Door {
    Door::answering(policy, || Response::new(text("secret of the first caller")))
}

fn as_caller(header: &str, value: &str) -> Request<Full<Bytes>> {
    let mut request = post("k", "a");
    request
        .headers_mut()
        .insert(http::HeaderName::from_bytes(header.as_bytes()).unwrap(), value.parse().unwrap());
    request
}

/// A handler that runs until the test lets it end.
fn gated(policy: PolicyBuilder) -> (Arc<Door>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let door = Door::new(policy, {
        let gate = Arc::clone(&gate);
        move |_: Incoming| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                Ok(Response::new(text("done")))
            })
        }
    });
    (Arc::new(door), gate)
}

#[tokio::test]
async fn another_caller_never_gets_the_first_ones_answer() {
    for header in ["authorization", "proxy-authorization", "x-api-key", "cookie"] {
        let door = door(policy());
        door.send(as_caller(header, "alice")).await;
        for other in [as_caller(header, "bob"), post("k", "a")] {
            let refused = door.send(other).await;
            assert_eq!((refused.status, refused.code().as_str()), (422, "credentials-mismatch"), "{header}");
            assert_eq!(refused.problem()["mismatch"], serde_json::json!(["credentials"]));
            assert!(!String::from_utf8_lossy(&refused.body).contains("secret"));
        }
        assert!(door.send(as_caller(header, "alice")).await.is_replay());
        assert_eq!(door.runs(), 1);
    }
}

#[tokio::test]
async fn another_caller_is_told_nothing_about_the_first_ones_payload() {
    let door = door(policy());
    door.send(as_caller("authorization", "alice")).await;
    let mut other = as_caller("authorization", "bob");
    *other.uri_mut() = "/elsewhere".parse().unwrap();
    assert_eq!(door.send(other).await.problem()["mismatch"], serde_json::json!(["credentials"]));
}

#[tokio::test]
async fn a_scope_gives_every_principal_a_key_space() {
    let scope = |parts: &http::request::Parts| Some(Scope::from(parts.headers.get("x-user")?.to_str().ok()?));
    let scoped = door(policy().scope(scope));
    assert!(!scoped.send(as_caller("x-user", "alice")).await.is_replay());
    assert!(!scoped.send(as_caller("x-user", "bob")).await.is_replay());
    assert!(scoped.send(as_caller("x-user", "alice")).await.is_replay());
    let refused = scoped.send(post("k", "a")).await;
    assert_eq!((refused.status, refused.code().as_str(), scoped.runs()), (403, "missing-principal", 2));

    let with_fallback = door(policy().scope(scope).or_shared());
    assert!(!with_fallback.send(as_caller("authorization", "alice")).await.is_replay());
    assert_eq!(with_fallback.send(as_caller("authorization", "bob")).await.code(), "credentials-mismatch");
}

#[tokio::test]
async fn sharing_by_all_callers_is_a_choice_with_a_name() {
    let door = door(policy().shared_by_all_callers());
    door.send(as_caller("authorization", "alice")).await;
    assert!(door.send(as_caller("authorization", "bob")).await.is_replay());
}

#[tokio::test]
async fn a_bound_cookie_leaves_the_others_out() {
    let door = door(policy().bind_cookies(["sid"]));
    door.send(as_caller("cookie", "sid=1; seen=monday")).await;
    assert!(door.send(as_caller("cookie", "seen=tuesday; sid=1")).await.is_replay());
    assert_eq!(door.send(as_caller("cookie", "sid=2; seen=monday")).await.code(), "credentials-mismatch");
}

#[tokio::test]
async fn a_crowd_of_copies_runs_once() {
    let (door, gate) = gated(policy());
    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let door = Arc::clone(&door);
        crowd.spawn(async move { door.send(post("k", "a")).await });
    }
    let mut conflicts = 0;
    while conflicts < 49 {
        let answer = crowd.join_next().await.unwrap().unwrap();
        assert_eq!(answer.code(), "conflict");
        assert_eq!(answer.header("retry-after"), Some("1"));
        conflicts += 1;
    }
    gate.add_permits(1);
    assert_eq!(crowd.join_next().await.unwrap().unwrap().body, "done");
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn a_caller_that_leaves_does_not_stop_the_run() {
    let (door, gate) = gated(policy());
    let caller = tokio::spawn({
        let door = Arc::clone(&door);
        async move { door.send(post("k", "a")).await }
    });
    door.faults.reached(Call::Claim, 1).await;
    while door.runs() == 0 {
        tokio::task::yield_now().await;
    }
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    assert_eq!(door.send(post("k", "a")).await.code(), "conflict");
    assert_eq!(door.layer.live_runs(), 1, "a run without a caller is drained too");
    gate.add_permits(1);
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    assert!(door.send(post("k", "a")).await.is_replay());
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn a_caller_that_leaves_during_its_claim_leaves_a_run_that_ends() {
    let (door, gate) = gated(policy());
    gate.add_permits(1);
    door.faults.set(Call::Claim, Fault::Hangs);
    let caller = tokio::spawn({
        let door = Arc::clone(&door);
        async move { door.send(post("k", "a")).await }
    });
    door.faults.reached(Call::Claim, 1).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    door.faults.mend(Call::Claim);
    door.faults.reached(Call::Complete, 1).await;
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    assert!(door.send(post("k", "a")).await.is_replay());
    assert_eq!(door.runs(), 1);
}

/// Sends a request as `caller` would, who leaves while it runs, and says what `look` saw in the run after that.
async fn seen_once_alone<T: Send + 'static>(
    policy: PolicyBuilder,
    look: impl Fn() -> T + Clone + Send + Sync + 'static,
    caller: impl FnOnce(BoxFuture<'static, ()>) -> BoxFuture<'static, ()>,
) -> (Arc<Door>, T) {
    let gate = Arc::new(Semaphore::new(0));
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let handler = {
        let gate = Arc::clone(&gate);
        move |_: Incoming| {
            let (gate, look, tell) = (Arc::clone(&gate), look.clone(), tell.clone());
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                tell.send(look()).unwrap();
                Ok(Response::new(text("done")))
            }) as BoxFuture<'static, _>
        }
    };
    let door = Arc::new(Door::new(policy, handler));
    let sent = Arc::clone(&door);
    let caller = tokio::spawn(caller(Box::pin(async move { drop(sent.send(post("k", "a")).await) })));
    while door.runs() == 0 {
        tokio::task::yield_now().await;
    }
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    gate.add_permits(1);
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    let seen = told.try_recv().unwrap();
    assert!(told.try_recv().is_err(), "it ran once");
    (door, seen)
}

#[tokio::test]
async fn a_run_carries_its_task_locals_and_its_span_with_it() {
    tokio::task_local! { static TENANT: u32; }
    let carry = |run| match TENANT.try_with(|tenant| *tenant) {
        Ok(tenant) => Box::pin(TENANT.scope(tenant, run)) as idempotency_tower::RunFuture,
        Err(_) => run,
    };
    let look = || TENANT.try_with(|tenant| *tenant);
    let (door, seen) =
        seen_once_alone(policy().carry(carry), look, |send| Box::pin(TENANT.scope(7, send))).await;
    assert_eq!(seen, Ok(7));
    assert!(door.send(post("k", "a")).await.is_replay());
}

#[tokio::test]
async fn a_run_carries_its_subscriber_with_it() {
    let look = || tracing::dispatcher::get_default(tracing::Dispatch::is::<tracing_subscriber::Registry>);
    let listened_to =
        |send: BoxFuture<'static, ()>| Box::pin(send.with_subscriber(tracing_subscriber::registry())) as _;
    assert!(seen_once_alone(policy(), look, listened_to).await.1);
    assert!(!look());
}

#[tokio::test]
async fn headers_and_cookies_are_both_bound_in_whatever_order() {
    for bound in [
        policy().bind_cookies(["sid"]).credential_headers(["x-user"]),
        policy().credential_headers(["x-user"]).bind_cookies(["sid"]),
    ] {
        let door = door(bound);
        let as_both = |sid: &str, user: &str| {
            let mut request = as_caller("cookie", sid);
            request.headers_mut().insert("x-user", user.parse().unwrap());
            request
        };
        door.send(as_both("sid=1; seen=monday", "alice")).await;
        assert!(door.send(as_both("sid=1", "alice")).await.is_replay());
        assert_eq!(door.send(as_both("sid=2", "alice")).await.code(), "credentials-mismatch");
        assert_eq!(door.send(as_both("sid=1", "bob")).await.code(), "credentials-mismatch");
    }
}

#[tokio::test]
async fn cookies_are_the_same_in_one_line_or_in_many() {
    let door = door(policy());
    door.send(as_caller("cookie", "a=1; b=2")).await;
    let mut crumbs = as_caller("cookie", "a=1");
    crumbs.headers_mut().append("cookie", "b=2".parse().unwrap());
    assert!(door.send(crumbs).await.is_replay());
}

#[tokio::test]
async fn an_empty_principal_is_none() {
    let scope = |parts: &http::request::Parts| Some(Scope::from(parts.headers.get("x-user")?.to_str().ok()?));
    let door = door(policy().scope(scope));
    let refused = door.send(as_caller("x-user", "")).await;
    assert_eq!((refused.status, refused.code().as_str(), door.runs()), (403, "missing-principal", 0));
}

#[tokio::test]
async fn a_policy_that_panics_claims_nothing() {
    let unscoped = policy().scope(|_| panic!("no such header"));
    let unread = policy().fingerprint_body(|_, _| panic!("no such field"));
    for door in [door(unscoped), door(unread)] {
        let refused = door.send(post("k", "a")).await;
        assert_eq!((refused.status, refused.code().as_str(), door.runs()), (500, "internal", 0));
        assert!(!String::from_utf8_lossy(&refused.body).contains("no such"), "a panic's text stays inside");
        assert_eq!((door.faults.calls(Call::Claim), door.layer.live_runs()), (0, 0));
    }
}

#[tokio::test]
async fn a_wrapper_that_drops_the_run_is_answered_for() {
    let impatient = |run: idempotency_tower::RunFuture| -> idempotency_tower::RunFuture {
        Box::pin(async move { assert!(futures_util::poll!(run).is_pending()) })
    };
    let (door, _gate) = gated(policy().carry(impatient));
    let answer = door.send(post("k", "a")).await;
    assert_eq!((answer.status, answer.code().as_str()), (500, "internal"));
    assert_eq!(door.layer.live_runs(), 0);
}
