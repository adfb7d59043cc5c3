//! A process that is told to end while it runs something.

use futures_util::FutureExt;
use http::StatusCode;

use crate::{
    client::post,
    crash::outcomes,
    server::{Server, Setting, until},
};

/// Longer than it takes to notice the order and to send a signal.
const ORDER: &str = "/orders?ms=1500";

pub(crate) async fn a_run_ends_before_the_process_does(setting: Setting) {
    let server = setting.start().await;
    let client = server.client;
    let call = tokio::spawn(async move { client.send(post(ORDER, "order")).await });
    order_is_placed(&server).await;
    server.terminate().await;
    assert_eq!(call.await.unwrap().unwrap().status, StatusCode::CREATED);
    assert_eq!(server.ended().await.code(), Some(0));
    assert_eq!(outcomes(&setting).await, 1);
    assert_eq!(setting.stderr(), "");
}

pub(crate) async fn a_run_whose_client_left_ends_before_the_process_does(setting: Setting) {
    let server = setting.start().await;
    let mut call = Box::pin(server.client.send(post(ORDER, "order")));
    tokio::select! {
        answer = &mut call => panic!("the order is still being placed: {answer:?}"),
        () = order_is_placed(&server) => {}
    }
    assert!((&mut call).now_or_never().is_none());
    drop(call);
    server.terminate().await;
    assert_eq!(server.ended().await.code(), Some(0));
    assert_eq!(setting.stderr(), "");
    let server = setting.start().await;
    let retry = server.client.send(post(ORDER, "order")).await.unwrap();
    assert_eq!((retry.status, retry.is_replay()), (StatusCode::CREATED, true));
    assert_eq!(server.orders().await, 1);
}

async fn order_is_placed(server: &Server) {
    until("the order is placed", async || (server.orders().await == 1).then_some(())).await;
}
