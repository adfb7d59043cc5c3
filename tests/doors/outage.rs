//! A store that goes away and comes back.

use std::fs;

use http::{Request, StatusCode, header};
use http_body_util::Full;

use crate::{
    client::post,
    server::{Setting, until},
};

pub(crate) async fn a_store_that_is_gone_lets_nothing_keyed_run(setting: Setting) {
    let server = setting.start().await;
    fs::write(setting.outage(), "").unwrap();
    let refused = server.client.send(post("/counter", "key")).await.unwrap();
    assert_eq!((refused.status, &*refused.code()), (StatusCode::SERVICE_UNAVAILABLE, "store-unavailable"));
    assert_eq!(refused.headers[header::RETRY_AFTER], "1");
    assert_eq!(server.runs().await, 0);
    let unkeyed = Request::post("/counter").body(Full::default()).unwrap();
    assert_eq!(server.client.send(unkeyed).await.unwrap().status, StatusCode::OK);
    assert_eq!(server.runs().await, 1);
    fs::remove_file(setting.outage()).unwrap();
    let ran = server.client.send(post("/counter", "key")).await.unwrap();
    assert_eq!((ran.status, ran.is_replay()), (StatusCode::OK, false));
    assert_eq!(server.runs().await, 2);
}

pub(crate) async fn a_completion_lands_once_the_store_is_back(setting: Setting) {
    let server = setting.start().await;
    let order = || post("/orders?ms=1000", "order");
    let client = server.client;
    let call = tokio::spawn(async move { client.send(order()).await });
    until("the order is placed", async || (server.orders().await == 1).then_some(())).await;
    fs::write(setting.outage(), "").unwrap();
    let first = call.await.unwrap().unwrap();
    assert_eq!((first.status, first.is_replay()), (StatusCode::CREATED, false));
    let meanwhile = client.send(order()).await.unwrap();
    assert_eq!(meanwhile.code(), "store-unavailable");
    fs::remove_file(setting.outage()).unwrap();
    let replay = until("the completion has landed", async || {
        let retry = client.send(order()).await.unwrap();
        (retry.code() != "conflict").then_some(retry)
    })
    .await;
    assert_eq!((replay.status, replay.is_replay()), (StatusCode::CREATED, true));
    assert_eq!(replay.body, first.body);
    assert_eq!(server.orders().await, 1);
}
