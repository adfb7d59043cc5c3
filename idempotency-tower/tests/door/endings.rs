//! How runs end: by status, by the handler's word, by panic and by error.

use http::Response;
use idempotency_tower::{Ending, OnServerError};

use crate::setup::{Door, OwnBody, policy, post, text};

fn status(status: u16) -> impl Fn() -> Response<OwnBody> + Clone + Send + Sync + 'static {
    move || Response::builder().status(status).body(text("answer")).unwrap()
}

fn said(status: u16, ending: Ending) -> impl Fn() -> Response<OwnBody> + Clone + Send + Sync + 'static {
    move || {
        Response::builder()
            .status(status)
            .header("location", "/o/1")
            .extension(ending)
            .body(text("answer"))
            .unwrap()
    }
}

#[tokio::test]
async fn statuses_below_500_are_kept_unless_no_handler_speaks_them() {
    for kept in [200, 400, 404, 409, 410, 422] {
        let door = Door::answering(policy(), status(kept));
        door.send(post("k", "a")).await;
        let second = door.send(post("k", "a")).await;
        assert!(second.is_replay() && second.status == kept && second.body == "answer", "{kept}");
    }
    for freed in [401, 403, 405, 408, 413, 415, 429, 431, 500, 503] {
        let door = Door::answering(policy(), status(freed));
        door.send(post("k", "a")).await;
        let second = door.send(post("k", "b")).await;
        assert!(!second.is_replay() && second.status == freed, "{freed} frees the key for any payload");
        assert_eq!(door.runs(), 2);
    }
}

#[tokio::test]
async fn a_server_error_follows_the_policy() {
    let door = Door::answering(policy().on_server_error(OnServerError::Keep), status(500));
    door.send(post("k", "a")).await;
    assert!(door.send(post("k", "a")).await.is_replay());
    let door = Door::answering(policy().on_server_error(OnServerError::Hold), status(500));
    assert_eq!(door.send(post("k", "a")).await.status, 500);
    let held = door.send(post("k", "a")).await;
    assert_eq!((held.status, held.code().as_str(), door.runs()), (409, "outcome-unknown", 1));
}

#[tokio::test]
async fn the_handlers_word_beats_its_status() {
    let door = Door::answering(policy(), said(503, Ending::Keep));
    door.send(post("k", "a")).await;
    assert_eq!(door.send(post("k", "a")).await.status, 503);
    assert_eq!(door.runs(), 1);

    let door = Door::answering(policy(), said(200, Ending::NotExecuted));
    door.send(post("k", "a")).await;
    assert!(!door.send(post("k", "other")).await.is_replay());
    assert_eq!(door.runs(), 2);

    let door = Door::answering(policy(), said(200, Ending::Unknown));
    assert_eq!(door.send(post("k", "a")).await.body, "answer");
    assert_eq!(door.send(post("k", "a")).await.code(), "outcome-unknown");

    let door = Door::answering(policy(), said(201, Ending::KeepHead));
    assert_eq!(door.send(post("k", "a")).await.body, "answer");
    let done = door.send(post("k", "a")).await;
    assert_eq!((done.status, done.code().as_str()), (409, "result-not-replayable"));
    assert_eq!(done.problem()["original_status"], 201);
    assert_eq!(done.header("location"), Some("/o/1"));
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn a_panic_is_answered_and_ends_as_a_server_error() {
    let panics = |builder| Door::new(builder, |_| Box::pin(async { panic!("out of paper") }));
    let door = panics(policy());
    for _ in 0..2 {
        let answer = door.send(post("k", "a")).await;
        assert_eq!((answer.status, answer.code().as_str()), (500, "internal"));
        assert!(!String::from_utf8_lossy(&answer.body).contains("paper"), "a panic's text stays inside");
    }
    assert_eq!(door.runs(), 2);
    let door = panics(policy().on_server_error(OnServerError::Hold));
    door.send(post("k", "a")).await;
    assert_eq!(door.send(post("k", "a")).await.code(), "outcome-unknown");
    let door = panics(policy().on_server_error(OnServerError::Keep));
    door.send(post("k", "a")).await;
    assert_eq!(door.send(post("k", "a")).await.code(), "result-not-replayable");
}

#[tokio::test]
async fn an_inner_error_passes_and_ends_as_a_server_error() {
    let fails = |builder| Door::new(builder, |_| Box::pin(async { Err("no route to host".into()) }));
    let door = fails(policy());
    for _ in 0..2 {
        assert_eq!(door.open(post("k", "a")).await.unwrap_err().to_string(), "no route to host");
    }
    assert_eq!(door.runs(), 2);
    let door = fails(policy().on_server_error(OnServerError::Hold));
    door.open(post("k", "a")).await.unwrap_err();
    assert_eq!(door.send(post("k", "a")).await.code(), "outcome-unknown");
}

#[tokio::test]
async fn an_upgrade_frees_the_key() {
    let door = Door::answering(policy(), status(101));
    assert_eq!(door.send(post("k", "a")).await.status, 101);
    assert_eq!(door.send(post("k", "b")).await.status, 101);
    assert_eq!(door.runs(), 2);
}

#[tokio::test]
async fn a_handler_that_a_timeout_cut_off_is_in_doubt_where_server_errors_are() {
    let door = Door::answering(policy().on_server_error(OnServerError::Hold), status(408));
    assert_eq!(door.send(post("k", "a")).await.status, 408);
    assert_eq!(door.send(post("k", "a")).await.code(), "outcome-unknown");
    assert_eq!(door.runs(), 1);
}
