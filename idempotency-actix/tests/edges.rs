//! Where a handler's thread and the exchange could lose each other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    cell::Cell,
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use actix_web::{
    App, Error, HttpResponse, ResponseError,
    body::{BodySize, MessageBody, to_bytes},
    dev::{Service, ServiceRequest, ServiceResponse},
    middleware::{Next, from_fn},
    rt::time::timeout,
    test::{TestRequest, init_service},
    web,
};
use bytes::Bytes;
use futures_util::StreamExt;
use idempotency_actix::{Drained, Idempotency};
use idempotency_store_memory::MemoryStore;
use tokio::task::coop::consume_budget;

/// Longer than a busy machine takes for anything here.
const LONG: Duration = Duration::from_secs(30);

fn keyed(body: impl Into<Bytes>) -> TestRequest {
    TestRequest::post().uri("/orders").insert_header(("idempotency-key", "k")).set_payload(body)
}

#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unspeakable")
    }
}

impl ResponseError for Unspeakable {
    fn error_response(&self) -> HttpResponse {
        panic!("an error has no answer");
    }
}

/// A body that cannot say how long it is.
struct Unmeasured;

impl MessageBody for Unmeasured {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        panic!("a body has no size");
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(None)
    }
}

#[actix_web::test]
async fn a_panic_after_the_handler_is_answered_too_and_leaves_no_run() {
    let idempotency = Idempotency::new(MemoryStore::new());
    let runs = Rc::new(Cell::new(0));
    let counted = Rc::clone(&runs);
    let handler = move || {
        counted.set(counted.get() + 1);
        let run = counted.get();
        async move {
            match run {
                1 => Err(Unspeakable),
                2 => Ok(HttpResponse::Ok().message_body(Unmeasured).unwrap().map_into_boxed_body()),
                _ => Ok(HttpResponse::Ok().body("tea")),
            }
        }
    };
    let app = App::new().wrap(idempotency.clone()).route("/orders", web::post().to(handler));
    let app = init_service(app).await;
    for status in [500, 500, 200] {
        // An error that is left over is what actix's server answers with.
        let answered = match timeout(LONG, app.call(keyed("tea").to_request())).await.unwrap() {
            Ok(response) => response.status(),
            Err(error) => error.error_response().status(),
        };
        assert_eq!(answered, status);
    }
    assert_eq!(runs.get(), 3);
    assert_eq!(idempotency.drain(LONG).await, Drained { left: 0 });
}

#[actix_web::test]
async fn a_handler_may_read_its_request_while_it_answers_behind_two_guards() {
    let idempotency = Idempotency::new(MemoryStore::new());
    let echo = async |payload: web::Payload| HttpResponse::Ok().streaming(payload.map(|chunk| chunk));
    let app = App::new()
        .wrap(idempotency.clone())
        .service(web::resource("/orders").wrap(idempotency).route(web::post().to(echo)));
    let app = init_service(app).await;
    let body = vec![b'a'; 100_000];
    for is_replay in [false, true] {
        let answer = app.call(keyed(body.clone()).to_request()).await.unwrap();
        assert_eq!(answer.headers().contains_key("idempotency-replayed"), is_replay);
        let read = timeout(LONG, to_bytes(answer.into_body())).await.unwrap();
        assert!(read.is_ok_and(|read| read == body));
    }
}

/// What tokio lets a task do before it has to let others run.
const BUDGET: u32 = 128;

/// Leaves what is inside as much of its first polls' budget as the request says.
async fn spent<B: MessageBody>(request: ServiceRequest, next: Next<B>) -> Result<ServiceResponse<B>, Error> {
    let left = request.headers().get("x-left").and_then(|left| left.to_str().ok()?.parse::<u32>().ok());
    let mut inside = pin!(next.call(request));
    let mut polls = 0;
    poll_fn(|cx| {
        polls += 1;
        if let Some(left) = left
            && polls <= 3
        {
            for _ in left..BUDGET {
                let _ = pin!(consume_budget()).poll(cx);
            }
        }
        inside.as_mut().poll(cx)
    })
    .await
}

/// Once of these times the exchange spends the last of the budget, and must see all the same that it orders no run.
#[actix_web::test]
async fn a_replay_is_an_answer_to_what_stands_outside_however_much_its_task_has_done() {
    let order = async || HttpResponse::Created().body("done");
    let app = App::new()
        .route("/orders", web::post().to(order))
        .wrap(Idempotency::new(MemoryStore::new()))
        .wrap(from_fn(spent));
    let app = init_service(app).await;
    assert_eq!(app.call(keyed("tea").to_request()).await.unwrap().status(), 201);
    for left in 0..=20 {
        let copy = keyed("tea").insert_header(("x-left", left.to_string())).to_request();
        let replay = timeout(LONG, app.call(copy)).await.unwrap();
        let replay = replay.unwrap_or_else(|error| panic!("an error with {left} left, no answer: {error}"));
        assert!(replay.headers().contains_key("idempotency-replayed"));
    }
}
