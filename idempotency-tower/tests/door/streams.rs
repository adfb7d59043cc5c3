//! Response bodies that never end, and clients that never read.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::poll;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use crate::setup::{BodyError, Door, OwnBody, policy, post};

/// A body that always has another frame, and tells when it is let go.
struct Endless {
    frame: &'static [u8],
    declared: Option<u64>,
    dropped: Arc<AtomicBool>,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(self.frame)))))
    }

    fn size_hint(&self) -> SizeHint {
        self.declared.map(SizeHint::with_exact).unwrap_or_default()
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::SeqCst);
    }
}

fn endless(frame: &'static [u8], declared: Option<u64>) -> (Door, Arc<AtomicBool>) {
    endless_with(200, frame, declared)
}

fn endless_with(status: u16, frame: &'static [u8], declared: Option<u64>) -> (Door, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&dropped);
    let door = Door::answering(policy().max_response_bytes(4096), move || {
        let body: OwnBody = Endless { frame, declared, dropped: Arc::clone(&told) }.boxed_unsync();
        Response::builder().status(status).body(body).unwrap()
    });
    (door, dropped)
}

/// Runs `test` on a thread and a clock of its own: what never yields fails it instead of hanging the suite.
fn on_one_thread(test: impl Future<Output = ()> + Send + 'static) {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(test);
        done.send(()).unwrap();
    });
    finished.recv_timeout(Duration::from_secs(20)).expect("the only thread of the runtime is not taken");
}

#[test]
fn an_endless_body_is_let_go_once_its_run_is_settled_and_its_client_is_gone() {
    on_one_thread(async {
        let (door, dropped) = endless(&[0; 1024], None);
        drop(door.open(post("k", "a")).await.unwrap());
        while !dropped.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        assert_eq!(door.send(post("k", "a")).await.code(), "result-not-replayable");
    });
}

#[test]
fn an_endless_body_without_a_byte_lets_others_run_and_is_given_up() {
    on_one_thread(async {
        let (door, dropped) = endless(b"", None);
        drop(door.open(post("k", "a")).await.unwrap());
        assert_is_given_up(&door, &dropped).await;
    });
}

/// It is read into memory before anything is answered.
#[test]
fn an_endless_body_of_a_declared_length_lets_others_run_and_is_given_up() {
    on_one_thread(async {
        let (door, dropped) = endless(b"", Some(10));
        let mut caller = Box::pin(door.open(post("k", "a")));
        assert!(poll!(&mut caller).is_pending());
        drop(caller);
        assert_is_given_up(&door, &dropped).await;
    });
}

/// Half a minute after its client has left.
async fn assert_is_given_up(door: &Door, dropped: &AtomicBool) {
    tokio::time::advance(Duration::from_secs(29)).await;
    assert!(!dropped.load(Ordering::SeqCst) && door.layer.live_runs() == 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    while door.layer.live_runs() == 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(door.send(post("k", "a")).await.code(), "result-not-replayable");
}

#[test]
fn a_body_that_outgrows_its_declared_length_breaks_off() {
    on_one_thread(async {
        let (door, _) = endless(b"12345", Some(9));
        assert_eq!(door.send(post("k", "a")).await.code(), "internal");
        assert_eq!(door.send(post("k", "a")).await.code(), "internal");
        assert_eq!(door.runs(), 2, "by default it frees the key, as a 5xx does");
    });
}

#[tokio::test]
async fn a_client_that_does_not_read_an_error_holds_its_key_no_longer_than_the_cap() {
    let (door, _) = endless_with(503, &[0; 1024], None);
    let unread = door.open(post("k", "a")).await.unwrap();
    door.faults.reached(idempotency_store_contract::faults::Call::Release, 1).await;
    let again = door.open(post("k", "other")).await.unwrap();
    assert_eq!((again.status().as_u16(), door.runs()), (503, 2), "the key is free");
    drop((unread, again));
}

/// A body that fails where nobody polls it.
struct NoLength;

impl Body for NoLength {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        panic!("nobody knows")
    }
}

impl Drop for NoLength {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "and it does not go quietly");
    }
}

#[tokio::test]
async fn a_body_that_panics_at_its_length_ends_as_a_server_error() {
    let door = Door::answering(policy(), || Response::new(NoLength.boxed_unsync()));
    for _ in 0..2 {
        let answer = door.send(post("k", "a")).await;
        assert_eq!((answer.status, answer.code().as_str()), (500, "internal"));
    }
    assert_eq!(door.runs(), 2, "by default it frees the key at once");
}
