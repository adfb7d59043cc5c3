//! What callers see while the store does not answer, and when another run took over.

use std::{sync::Arc, time::Duration};

use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use idempotency_core::StoreErrorKind;
use idempotency_store_contract::faults::{Call, Fault};
use tokio::sync::Semaphore;

use crate::setup::{BodyError, Door, policy, post, text};

const UNAVAILABLE: Fault = Fault::Fails(StoreErrorKind::Unavailable);

fn done() -> Door {
    Door::answering(policy(), || Response::new(text("done")))
}

#[tokio::test]
async fn while_the_store_is_down_keyed_requests_are_refused_and_others_pass() {
    let door = done();
    door.faults.set(Call::Claim, UNAVAILABLE);
    let refused = door.send(post("k", "a")).await;
    assert_eq!((refused.status, refused.code().as_str(), door.runs()), (503, "store-unavailable", 0));
    assert_eq!(refused.header("retry-after"), Some("1"));
    let unkeyed = http::Request::post("/").body(http_body_util::Full::default()).unwrap();
    assert_eq!(door.send(unkeyed).await.status, 200);
    door.faults.mend(Call::Claim);
    assert!(!door.send(post("k", "a")).await.is_replay());
    assert_eq!(door.runs(), 2);
}

#[tokio::test]
async fn other_failures_of_a_claim_have_codes_of_their_own() {
    for (kind, status, code) in [
        (StoreErrorKind::Full, 503, "overloaded"),
        (StoreErrorKind::Corrupt, 500, "internal"),
        (StoreErrorKind::Schema, 503, "store-unavailable"),
    ] {
        let door = done();
        door.faults.set(Call::Claim, Fault::Fails(kind));
        let refused = door.send(post("k", "a")).await;
        assert_eq!((refused.status, refused.code().as_str(), door.runs()), (status, code, 0), "{kind:?}");
    }
}

#[tokio::test]
async fn a_store_that_fails_at_the_completion_costs_the_caller_nothing() {
    let door = done();
    door.faults.set(Call::Complete, UNAVAILABLE);
    let first = door.send(post("k", "a")).await;
    assert_eq!((first.status, &first.body[..]), (200, &b"done"[..]));
    assert_eq!(door.send(post("k", "a")).await.code(), "conflict");
    door.faults.reached(Call::Renew, 4).await; // past the first lease
    assert_eq!(door.send(post("k", "a")).await.code(), "conflict", "the lease is kept while completing");
    door.faults.mend(Call::Complete);
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    assert!(door.send(post("k", "a")).await.is_replay());
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn failing_open_runs_one_copy_at_a_time_and_says_so() {
    let gate = Arc::new(Semaphore::new(0));
    let door = Arc::new(Door::new(policy().fail_open(), {
        let gate = Arc::clone(&gate);
        move |request| {
            let guarded = request.extensions().get::<idempotency_tower::Attempt>().is_some();
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                Ok(Response::new(text(if guarded { "guarded" } else { "alone" })))
            })
        }
    }));
    door.faults.set(Call::Claim, UNAVAILABLE);
    let first = tokio::spawn(door.send(post("k", "a")));
    until_running(&door).await;
    assert_eq!(door.send(post("k", "a")).await.code(), "conflict");
    assert_eq!(door.send(post("k", "b")).await.code(), "fingerprint-mismatch");
    gate.add_permits(1);
    let first = first.await.unwrap();
    assert_eq!((&first.body[..], first.header("idempotency-degraded")), (&b"alone"[..], Some("true")));
    gate.add_permits(1);
    let again = door.send(post("k", "a")).await;
    assert_eq!((again.is_replay(), door.runs()), (false, 2), "nothing is remembered");
    door.faults.mend(Call::Claim);
    gate.add_permits(1);
    let guarded = door.send(post("k", "a")).await;
    assert_eq!((&guarded.body[..], guarded.header("idempotency-degraded")), (&b"guarded"[..], None));
    assert!(door.send(post("k", "a")).await.is_replay());
}

#[tokio::test]
async fn failing_open_is_for_a_store_that_does_not_answer_only() {
    let door = Door::answering(policy().fail_open(), || Response::new(text("done")));
    for kind in [StoreErrorKind::Corrupt, StoreErrorKind::Full, StoreErrorKind::Schema] {
        door.faults.set(Call::Claim, Fault::Fails(kind));
        assert!(door.send(post("k", "a")).await.status >= 500, "{kind:?}");
    }
    assert_eq!(door.runs(), 0);
}

#[tokio::test]
async fn an_unrecorded_run_that_panics_frees_its_turn() {
    let door = Door::new(policy().fail_open(), |_| Box::pin(async { panic!("out of paper") }));
    door.faults.set(Call::Claim, UNAVAILABLE);
    for _ in 0..2 {
        let answer = door.send(post("k", "a")).await;
        assert_eq!(
            (answer.code().as_str(), answer.header("idempotency-degraded")),
            ("internal", Some("true"))
        );
    }
    assert_eq!(door.runs(), 2);
}

/// A door whose runs answer with the number of the run; the first waits until the test lets it go on.
fn numbered(streamed: fn(usize) -> Response<crate::setup::OwnBody>) -> (Arc<Door>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let number = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let door = Door::new(policy(), {
        let gate = Arc::clone(&gate);
        move |_| {
            let gate = Arc::clone(&gate);
            let number = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            Box::pin(async move {
                if number == 1 {
                    gate.acquire().await.unwrap().forget();
                }
                Ok(streamed(number))
            })
        }
    });
    (Arc::new(door), gate)
}

async fn until_running(door: &Door) {
    while door.runs() == 0 {
        tokio::task::yield_now().await;
    }
}

/// Starts a first run and lets another one take its place.
async fn taken_over(
    door: &Arc<Door>,
) -> (tokio::task::JoinHandle<crate::setup::Answer>, crate::setup::Answer) {
    door.faults.set(Call::Renew, Fault::Hangs);
    let late = tokio::spawn({
        let door = Arc::clone(door);
        async move { door.send(post("k", "a")).await }
    });
    until_running(door).await;
    let second = loop {
        let answer = door.send(post("k", "a")).await;
        if answer.status == 200 {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    (late, second)
}

#[tokio::test]
async fn a_late_run_answers_with_the_outcome_of_the_one_that_took_over() {
    let (door, gate) = numbered(|number| Response::new(text(if number == 1 { "first" } else { "second" })));
    let (late, second) = taken_over(&door).await;
    gate.add_permits(1);
    let late = late.await.unwrap();
    let answers = [&late.body[..], &second.body[..]];
    assert_eq!(answers, [b"second", b"second"], "no key ever answers two bodies");
    assert!(late.is_replay());
}

#[tokio::test]
async fn a_late_stream_is_broken_off_never_ended() {
    let (door, gate) = numbered(|number| {
        if number > 1 {
            return Response::new(text("second"));
        }
        let frames = [Ok::<_, BodyError>(Frame::data(bytes::Bytes::from_static(b"first")))];
        Response::new(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync())
    });
    door.faults.set(Call::Renew, Fault::Hangs);
    let late = tokio::spawn({
        let door = Arc::clone(&door);
        async move { door.open(post("k", "a")).await.unwrap().into_body().collect().await.map(|_| ()) }
    });
    until_running(&door).await;
    while door.send(post("k", "a")).await.body != "second" {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    let broken = late.await.unwrap().unwrap_err();
    assert!(broken.to_string().contains("another run"), "{broken}");
    assert_eq!(door.send(post("k", "a")).await.body, "second");
}
