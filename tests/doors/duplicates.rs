//! Copies of a request that meet its first run, or come after it.

use std::time::Duration;

use futures_util::future::join_all;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tokio::time::sleep;

use crate::{
    client::{Answer, post},
    server::Setting,
};

pub(crate) async fn copies_of_a_run_longer_than_its_lease_run_once(setting: Setting) {
    let setting = setting.with_config(json!({ "lease_ms": 600 }));
    let server = setting.start().await;
    let client = server.client;
    // Spread over the run, so that some come after each lease it needs.
    let copies = (0..50).map(|number| async move {
        sleep(Duration::from_millis(number * 38)).await;
        client.send(post("/counter?ms=2000", "long")).await.unwrap()
    });
    let answers = join_all(copies).await;
    let ran = |answer: &Answer| answer.status == StatusCode::OK && !answer.is_replay();
    let refused = |answer: &Answer| answer.code() == "conflict";
    assert_eq!(server.runs().await, 1);
    assert_eq!(answers.iter().filter(|answer| ran(answer)).count(), 1);
    assert!(answers.iter().all(|answer| ran(answer) || refused(answer) || answer.is_replay()));
    assert!(server.client.send(post("/counter?ms=2000", "long")).await.unwrap().is_replay());
}

pub(crate) async fn an_upgrade_header_changes_nothing(setting: Setting) {
    let server = setting.start().await;
    let mut request = post("/counter", "upgrade");
    let headers = request.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("h2c"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade, HTTP2-Settings"));
    headers.insert("http2-settings", HeaderValue::from_static("AAMAAABkAAQCAAAAAAIAAAAA"));
    let first = server.client.send(request.clone()).await.unwrap();
    let second = server.client.send(request).await.unwrap();
    assert_eq!((first.status, first.is_replay()), (StatusCode::OK, false));
    assert_eq!((second.status, second.is_replay()), (StatusCode::OK, true));
    assert_eq!(first.body, second.body);
    assert_eq!(server.runs().await, 1);
}
