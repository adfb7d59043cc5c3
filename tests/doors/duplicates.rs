//! Copies of a call that meet its first run, or come after it.

use std::time::Duration;

use futures_util::future::join_all;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tokio::{task::JoinHandle, time::sleep};

use crate::{
    caller::{Call, End, Page, Told},
    client::post,
    server::{Server, Setting, until},
};

/// Every first answer has a name of its run in it, so that one that is repeated is no other's.
pub(crate) async fn a_copy_gets_the_first_answer(setting: Setting) {
    let server = setting.start().await;
    for page in [Page::Count { ms: 0 }, Page::Order { ms: 0 }, Page::Echo, Page::Fields] {
        let call = Call::to(page, &format!("{page:?}").replace(' ', ""));
        let first = server.told(call.clone()).await.ran();
        assert_eq!(first.end, End::Well);
        for _ in 0..2 {
            let replay = server.told(call.clone()).await.replayed();
            assert_eq!((replay.end, &replay.body), (first.end, &first.body), "{page:?}");
        }
    }
    assert_eq!((server.runs().await, server.orders().await), (4, 1));
}

pub(crate) async fn parallel_copies_run_once(setting: Setting) {
    let setting = setting.with_config(json!({ "mode": "wait", "wait_ms": 20_000, "lease_ms": 10_000 }));
    let server = setting.start().await;
    setting.hold();
    let copies = (0..50).map(|_| {
        let caller = server.caller.clone();
        tokio::spawn(async move { caller.send(Call::to(Page::Held, "k")).await })
    });
    let copies: Vec<_> = copies.collect();
    server.placed(1).await;
    setting.let_go();
    let mut answers: Vec<_> = join_all(copies).await.into_iter().map(Result::unwrap).collect();
    answers.sort_by_key(|told| !matches!(told, Told::Ran(_)));
    let first = answers.remove(0).ran();
    assert_eq!(first.end, End::Well);
    for copy in answers {
        assert_eq!(copy.replayed().body, first.body, "byte for byte");
    }
    assert_eq!((server.runs().await, server.orders().await), (1, 1));
}

/// A call that runs and is held.
async fn begun(server: &Server, call: Call) -> JoinHandle<Told> {
    let caller = server.caller.clone();
    let first = tokio::spawn(async move { caller.send(call).await });
    server.placed(1).await;
    first
}

pub(crate) async fn copies_that_do_not_wait_run_once(setting: Setting) {
    let server = setting.start().await;
    setting.hold();
    let call = Call::to(Page::Held, "k");
    let first = begun(&server, call.clone()).await;
    for copy in join_all((0..20).map(|_| server.told(call.clone()))).await {
        let Told::InFlight { retry_after } = copy else { panic!("the first run is held: {copy:?}") };
        assert!((1..=30).contains(&retry_after.as_secs()), "{retry_after:?}");
    }
    setting.let_go();
    let first = first.await.unwrap().ran();
    assert_eq!(server.told_at_last(call).await.replayed().body, first.body);
    assert_eq!((server.runs().await, server.orders().await), (1, 1));
}

pub(crate) async fn another_payload_is_a_mismatch_even_in_flight(setting: Setting) {
    let server = setting.start().await;
    setting.hold();
    let call = Call::to(Page::Held, "k");
    let first = begun(&server, call.clone()).await;
    let coffee = call.clone().saying("coffee");
    let of_body = Told::Mismatch(vec!["body".to_owned()]);
    assert_eq!(server.told(coffee.clone()).await, of_body);
    setting.let_go();
    let first = first.await.unwrap().ran();
    assert_eq!(server.told(coffee).await, of_body);
    let replay = server.told_at_last(call).await.replayed();
    assert_eq!(replay.body, first.body, "the record is as it was");
    assert_eq!(server.runs().await, 1);
}

pub(crate) async fn another_page_is_a_mismatch(setting: Setting) {
    let server = setting.start().await;
    server.told(Call::to(Page::Echo, "k")).await.ran();
    for page in [Page::Fields, Page::Decline, Page::Panic] {
        let told = server.told(Call::to(page, "k")).await;
        // By HTTP, the path; by gRPC, the method, which is its path.
        let Told::Mismatch(parts) = told else { panic!("another page's answer: {told:?}") };
        assert!(parts.contains(&"path".to_owned()), "{parts:?}");
    }
    assert_eq!(server.runs().await, 1);
}

pub(crate) async fn an_expired_key_is_new(setting: Setting) {
    let setting = setting.with_config(json!({ "ttl_ms": 2_000 }));
    let server = setting.start().await;
    let call = Call::to(Page::Order { ms: 0 }, "k");
    let first = server.told(call.clone()).await.ran();
    let mut replays = 0;
    let again = until("the key expires", async || match server.told(call.clone()).await {
        Told::Replayed(answer) => {
            assert_eq!(answer.body, first.body);
            replays += 1;
            None
        }
        other => Some(other.ran()),
    })
    .await;
    assert!(replays > 0, "it is remembered at first");
    assert_ne!(again.body, first.body);
    assert_eq!(server.orders().await, 2);
}

pub(crate) async fn copies_of_a_run_longer_than_its_lease_run_once(setting: Setting) {
    let setting = setting.with_config(json!({ "lease_ms": 600 }));
    let server = setting.start().await;
    let call = Call::to(Page::Count { ms: 2_000 }, "long");
    // Spread over the run, so that some come after each lease it needs.
    let copies = (0..50).map(|number| {
        let call = call.clone();
        let server = &server;
        async move {
            sleep(Duration::from_millis(number * 38)).await;
            server.told(call).await
        }
    });
    let answers = join_all(copies).await;
    assert_eq!(server.runs().await, 1);
    assert_eq!(answers.iter().filter(|told| matches!(told, Told::Ran(_))).count(), 1);
    let expected = |told: &Told| matches!(told, Told::Ran(_) | Told::Replayed(_) | Told::InFlight { .. });
    assert!(answers.iter().all(expected));
    server.told(call).await.replayed();
}

/// Two servers are two processes with nothing between them but their store.
pub(crate) async fn two_servers_on_one_store_run_once(setting: Setting) {
    let servers = [setting.start().await, setting.start().await];
    setting.hold();
    let call = Call::to(Page::Held, "k");
    let caller = servers[0].caller.clone();
    let first = tokio::spawn({
        let call = call.clone();
        async move { caller.send(call).await }
    });
    servers[0].placed(1).await;
    for server in &servers {
        assert!(server.told(call.clone()).await.is_in_flight());
        let coffee = call.clone().saying("coffee");
        assert_eq!(server.told(coffee).await, Told::Mismatch(vec!["body".to_owned()]));
    }
    setting.let_go();
    let first = first.await.unwrap().ran();
    for server in &servers {
        assert_eq!(server.told_at_last(call.clone()).await.replayed().body, first.body);
    }
    assert_eq!([servers[0].runs().await, servers[1].runs().await], [1, 0]);
    assert_eq!(servers[1].orders().await, 1);
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
