//! Copies that wait for the first one's answer.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use idempotency_store_memory::MemoryStore;
use idempotency_tower::IdempotencyLayer;
use tokio::{sync::Semaphore, task::JoinSet};
use tower::{Layer, Service, ServiceExt, limit::ConcurrencyLimit};

use crate::setup::{Answer, Door, OwnBody, policy, post, text};

const LONG: Duration = Duration::from_secs(60);

fn gated(policy: idempotency_tower::PolicyBuilder) -> (Arc<Door>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let door = Door::new(policy, {
        let gate = Arc::clone(&gate);
        move |_| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                Ok(Response::new(text("done")))
            })
        }
    });
    (Arc::new(door), gate)
}

fn preferring(wait: &str) -> Request<Full<Bytes>> {
    let mut request = post("k", "a");
    request.headers_mut().insert("prefer", wait.parse().unwrap());
    request
}

fn spawn(door: &Arc<Door>, request: Request<Full<Bytes>>) -> tokio::task::JoinHandle<Answer> {
    tokio::spawn(door.send(request))
}

async fn until_running(door: &Door) {
    while door.runs() == 0 {
        tokio::task::yield_now().await;
    }
}

async fn until_waiting(door: &Door, waiters: usize) {
    while door.layer.waiters() < waiters {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_copy_waits_for_the_first_ones_answer() {
    let (door, gate) = gated(policy().wait(LONG));
    let first = spawn(&door, post("k", "a"));
    until_running(&door).await;
    let copies: Vec<_> = (0..10).map(|_| spawn(&door, post("k", "a"))).collect();
    until_waiting(&door, 10).await;
    gate.add_permits(1);
    assert!(!first.await.unwrap().is_replay());
    for copy in copies {
        let replay = copy.await.unwrap();
        assert!(replay.is_replay() && replay.body == "done", "{replay:?}");
        assert_eq!(replay.header("preference-applied"), None, "nobody preferred anything");
    }
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn a_caller_chooses_its_wait_within_the_cap() {
    let (door, gate) = gated(policy().wait(Duration::from_secs(1)));
    let _first = spawn(&door, post("k", "a"));
    until_running(&door).await;
    let impatient = door.send(preferring("wait=0")).await;
    assert_eq!(impatient.code(), "conflict");
    assert_eq!(impatient.header("preference-applied"), Some("wait=0"));
    let greedy = door.send(preferring("wait=3600")).await;
    assert_eq!((greedy.status, greedy.header("preference-applied")), (409, Some("wait=1")));
    let patient = spawn(&door, preferring("wait=1"));
    until_waiting(&door, 1).await;
    gate.add_permits(1);
    let patient = patient.await.unwrap();
    assert!(patient.is_replay());
    assert_eq!(patient.header("preference-applied"), Some("wait=1"));
}

#[tokio::test]
async fn without_the_option_a_preference_means_nothing() {
    let (door, _gate) = gated(policy());
    let _first = spawn(&door, post("k", "a"));
    until_running(&door).await;
    let answer = door.send(preferring("wait=60")).await;
    assert_eq!((answer.code().as_str(), answer.header("preference-applied")), ("conflict", None));
}

#[tokio::test]
async fn the_65th_waiter_is_refused_at_once() {
    let (door, gate) = gated(policy().wait(LONG));
    let _first = spawn(&door, post("k", "a"));
    until_running(&door).await;
    let mut waiters = JoinSet::new();
    for _ in 0..64 {
        waiters.spawn(door.send(post("k", "a")));
    }
    until_waiting(&door, 64).await;
    assert_eq!(door.send(post("k", "a")).await.code(), "conflict");
    gate.add_permits(1);
    while let Some(waited) = waiters.join_next().await {
        assert!(waited.unwrap().is_replay());
    }
}

#[tokio::test]
async fn a_waiter_whose_caller_leaves_never_runs() {
    let (door, gate) = gated(policy().wait(LONG));
    let first = spawn(&door, post("k", "a"));
    until_running(&door).await;
    let copy = spawn(&door, post("k", "a"));
    until_waiting(&door, 1).await;
    copy.abort();
    assert!(copy.await.unwrap_err().is_cancelled());
    assert_eq!(door.layer.waiters(), 0);
    gate.add_permits(1);
    assert_eq!(first.await.unwrap().status, 200);
    assert_eq!((door.layer.drain(LONG).await.left, door.runs()), (0, 1));
}

/// Answers `/slow` when the gate opens and all else at once.
#[derive(Clone)]
struct Site(Arc<Semaphore>);

impl<B> Service<Request<B>> for Site {
    type Response = Response<OwnBody>;
    type Error = std::convert::Infallible;
    type Future = futures_util::future::BoxFuture<'static, Result<Response<OwnBody>, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let gate = Arc::clone(&self.0);
        let slow = request.uri().path() == "/slow";
        Box::pin(async move {
            if slow {
                gate.acquire().await.unwrap().forget();
            }
            Ok(Response::new(text("done")))
        })
    }
}

#[tokio::test]
async fn waiters_hold_nothing_of_the_service_they_wait_for() {
    let gate = Arc::new(Semaphore::new(0));
    let layer = IdempotencyLayer::with_policy(MemoryStore::new(), policy().wait(LONG).build().unwrap());
    let service = layer.layer(ConcurrencyLimit::new(Site(Arc::clone(&gate)), 2));
    let send = |path: &str, key: &str| {
        let request =
            Request::post(path).header("idempotency-key", key).body(Full::<Bytes>::default()).unwrap();
        let response = service.clone().oneshot(request);
        async { Answer::read(response.await.unwrap()).await }
    };
    let mut slow = JoinSet::new();
    for _ in 0..6 {
        slow.spawn(send("/slow", "k"));
    }
    while layer.waiters() < 5 {
        tokio::task::yield_now().await;
    }
    assert_eq!(send("/fast", "other").await.status, 200, "five waiters leave a place free");
    gate.add_permits(1);
    while let Some(answer) = slow.join_next().await {
        assert_eq!(answer.unwrap().status, 200);
    }
}
