//! One of the two leaves: the caller in the middle of an answer, the server in the middle of a run.

use std::time::Duration;

use http::StatusCode;

use crate::{
    caller::{Call as Copy, Page, Told},
    crash::outcomes,
    h2_cases::{Broken, Call, Connection, Leave},
    server::{Setting, until},
};

pub(crate) async fn a_run_whose_caller_left_goes_on_and_replays(setting: Setting) {
    let server = setting.start().await;
    setting.hold();
    let order = Copy::to(Page::Held, "order");
    tokio::select! {
        told = server.told(order.clone()) => panic!("the order is held: {told:?}"),
        () = server.placed(1) => {}
    }
    assert!(server.told(order.clone()).await.is_in_flight());
    setting.let_go();
    server.told_at_last(order).await.replayed();
    assert_eq!((server.runs().await, server.orders().await), (1, 1));
}

pub(crate) async fn a_deadline_frees_no_key(setting: Setting) {
    let server = setting.start().await;
    setting.hold();
    let order = Copy::to(Page::Held, "order");
    // Long enough that the call arrives even where everything else is slow.
    assert_eq!(server.told(order.clone().within(Duration::from_secs(2))).await, Told::Nothing);
    assert_eq!(server.orders().await, 1);
    assert!(server.told(order.clone()).await.is_in_flight());
    setting.let_go();
    server.told_at_last(order).await.replayed();
    assert_eq!((server.runs().await, server.orders().await), (1, 1));
}

pub(crate) async fn a_streamed_answer_left_half_way_replays_whole(setting: Setting) {
    let server = setting.start().await;
    let authority = server.client.address().to_string();
    let connection = Connection::open(&authority).await;
    let call = || Call::post(&authority, "/stream?chunks=5&interval_ms=150", "stream");
    let left = connection.send(Call { leave: Leave::AfterBytes(1), ..call() }).await;
    assert!(matches!(left.broken.as_deref(), Some(Broken::Left)), "{}", left.short());
    let replay = until("the stream is over", async || {
        let retry = connection.send(call()).await;
        (retry.status() != Some(StatusCode::CONFLICT)).then_some(retry)
    })
    .await;
    assert_eq!((replay.status(), replay.is_replay()), (Some(StatusCode::OK), true));
    assert!(replay.broken.is_none() && replay.body.starts_with(&left.body), "{}", replay.short());
    assert!(left.body.len() < replay.body.len());
    assert_eq!(replay.body.iter().filter(|byte| **byte == b'\n').count(), 10);
    assert_eq!(server.runs().await, 1);
    connection.ping().await.unwrap();
}

pub(crate) async fn a_run_is_answered_after_goaway(setting: Setting) {
    let server = setting.start().await;
    let authority = server.client.address().to_string();
    let connection = Connection::open(&authority).await;
    let call = || Call::post(&authority, "/orders?ms=1500", "order");
    let running = tokio::spawn({
        let (connection, call) = (connection.clone(), call());
        async move { connection.send(call).await }
    });
    until("the order is placed", async || (server.orders().await == 1).then_some(())).await;
    server.terminate().await;
    let refused = until("the server says goodbye", async || connection.sender().await.err()).await;
    assert!(refused.is_go_away() && refused.is_remote(), "{refused}");
    assert!(!running.is_finished(), "the order is placed while the server leaves");
    let first = running.await.unwrap();
    assert_eq!((first.status(), first.is_replay()), (Some(StatusCode::CREATED), false), "{}", first.short());
    assert!(first.broken.is_none(), "{}", first.short());
    assert_eq!(server.ended().await.code(), Some(0));
    assert_eq!(outcomes(&setting).await, 1);
    assert_eq!(setting.stderr(), "");

    let server = setting.start().await;
    let authority = server.client.address().to_string();
    let connection = Connection::open(&authority).await;
    let replay = connection.send(Call::post(&authority, "/orders?ms=1500", "order")).await;
    assert_eq!((replay.status(), replay.is_replay()), (Some(StatusCode::CREATED), true));
    assert_eq!((replay.body, server.orders().await), (first.body, 1));
}
