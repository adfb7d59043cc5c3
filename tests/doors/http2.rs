//! HTTP/2 without TLS: a stream is a request, and a reset stream a caller that left.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::Full;

use crate::{
    client::post,
    server::{Setting, until},
};

pub(crate) async fn streams_are_guarded_like_requests(setting: Setting) {
    let server = setting.start().await;
    let connection = server.client.http2().await;
    let first = connection.send(post("/counter", "one")).await.unwrap();
    let replay = connection.send(post("/counter", "one")).await.unwrap();
    assert_eq!((first.status, first.is_replay()), (StatusCode::OK, false));
    assert_eq!((replay.status, replay.is_replay()), (StatusCode::OK, true));
    assert_eq!(replay.body, first.body);
    let other = post("/counter", "one").map(|_| Full::new(Bytes::from_static(b"other")));
    let mismatch = connection.send(other).await.unwrap();
    assert_eq!(
        (mismatch.status, &*mismatch.code()),
        (StatusCode::UNPROCESSABLE_ENTITY, "fingerprint-mismatch")
    );

    let slow = || post("/counter?ms=700", "two");
    tokio::select! {
        answer = connection.send(slow()) => panic!("the run is not over: {answer:?}"),
        () = until("the run began", async || (server.runs().await == 2).then_some(())) => {}
    }
    let retry = until("the run is over", async || {
        let retry = connection.send(slow()).await.unwrap();
        (retry.code() != "conflict").then_some(retry)
    })
    .await;
    assert_eq!((retry.status, retry.is_replay()), (StatusCode::OK, true));
    assert_eq!(server.runs().await, 2);
}
