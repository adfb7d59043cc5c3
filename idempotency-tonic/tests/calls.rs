//! Calls to a guarded tonic server, by tonic's own client and byte by byte.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use futures_util::{StreamExt, future::join_all, stream};
use idempotency_store_memory::MemoryStore;
use idempotency_tonic::{
    ClientStreams, GrpcIdempotencyLayer, KeySender, OnServerError, OperationKey, Policy, Scope,
};
use tokio::time::timeout;
use tonic::{Code, Request, Status, service::interceptor::InterceptedService, transport::Server};
use tonic_types::StatusExt;

use crate::{
    raw::{Raw, framed},
    shop::{Client, Order, PATIENCE, Shop, channel, is_replay, keyed, listen, order, orders},
};

#[allow(dead_code, reason = "shared by several tests")]
mod raw;
#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    reason = "shared by several tests"
)]
mod shop;

#[tokio::test]
async fn fifty_parallel_copies_run_once_and_answer_byte_for_byte() {
    let shop = Shop::under(Policy::builder().wait(PATIENCE).build().unwrap()).await;
    let raw = Raw::to(shop.address);
    let body = framed(&order("slow"));
    let copies = (0..50).map(|_| tokio::spawn(raw.clone().send("/shop.Orders/Create", "k", body.clone())));
    let copies: Vec<_> = copies.collect();
    shop.run_began().await;
    let all_wait = async {
        while shop.layer.waiters() < 49 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, all_wait).await.expect("49 copies wait");
    shop.site.may_go_on.add_permits(1);
    let answers: Vec<_> = join_all(copies).await.into_iter().map(Result::unwrap).collect();
    let first = answers.iter().find(|answer| !answer.is_replay()).expect("one ran");
    assert_eq!(first.trailers["grpc-status"], "0");
    for answer in &answers {
        assert_eq!((&answer.body, &answer.trailers), (&first.body, &first.trailers));
        let bin =
            |answer: &raw::Answer| answer.headers.get_all("x-run-bin").iter().cloned().collect::<Vec<_>>();
        assert_eq!(bin(answer), bin(first));
    }
    assert_eq!(answers.iter().filter(|answer| answer.is_replay()).count(), 49);
    assert_eq!(shop.site.runs(), 1);
}

#[tokio::test]
async fn a_completed_call_replays_with_its_binary_metadata() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    let first = client.create(keyed(order("tea"))).await.unwrap();
    let replay = client.create(keyed(order("tea"))).await.unwrap();
    assert!(!is_replay(first.metadata()) && is_replay(replay.metadata()));
    for response in [&first, &replay] {
        let bin: Vec<_> =
            response.metadata().get_all_bin("x-run-bin").iter().map(|bin| bin.to_bytes().unwrap()).collect();
        assert_eq!(bin, [&b"\x00\xff\x01"[..], b"again"]);
        assert_eq!(response.metadata().get("x-attempt").unwrap(), "1");
    }
    assert_eq!(first.into_inner(), replay.into_inner());
    let unkeyed = client.create(Request::new(order("tea"))).await.unwrap().into_inner();
    assert_eq!((unkeyed.run, shop.site.runs()), (2, 2));
}

#[tokio::test]
async fn an_error_that_is_kept_replays_with_its_details() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    let first = client.create(keyed(order("nothing"))).await.unwrap_err();
    let replay = client.create(keyed(order("nothing"))).await.unwrap_err();
    assert!(!is_replay(first.metadata()) && is_replay(replay.metadata()));
    for status in [&first, &replay] {
        assert_eq!((status.code(), status.message()), (Code::NotFound, "no such item"));
        assert_eq!(status.details(), b"\x08\x05");
        assert_eq!(status.metadata().get("x-shelf").unwrap(), "7");
        assert_eq!(status.metadata().get_bin("x-run-bin").unwrap().to_bytes().unwrap(), &b"\x00\xff\x01"[..]);
    }
    assert_eq!(shop.site.runs(), 1);
}

#[tokio::test]
async fn unavailable_frees_the_key_and_the_retry_runs() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    let call = || client.create(keyed(order("unavailable once")));
    assert_eq!(call().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(call().await.unwrap().into_inner().run, 2);
    assert!(is_replay(call().await.unwrap().metadata()));
    assert_eq!(shop.site.runs(), 2);
}

#[tokio::test]
async fn a_policy_or_a_handler_puts_a_call_in_doubt() {
    let held = Policy::builder().on_server_error(OnServerError::Hold).build().unwrap();
    let shop = Shop::under(held).await;
    let client = shop.client().await;
    assert_eq!(client.create(keyed(order("unavailable once"))).await.unwrap_err().code(), Code::Unavailable);
    assert_refused(
        &client.create(keyed(order("unavailable once"))).await.unwrap_err(),
        Code::FailedPrecondition,
        "OUTCOME_UNKNOWN",
    );

    let shop = Shop::open().await;
    let client = shop.client().await;
    let said = client.create(keyed(order("in doubt"))).await.unwrap_err();
    assert_eq!(said.code(), Code::Aborted);
    assert!(said.metadata().get("idempotency-ending").is_none(), "the word is the layer's alone");
    assert_refused(
        &client.create(keyed(order("in doubt"))).await.unwrap_err(),
        Code::FailedPrecondition,
        "OUTCOME_UNKNOWN",
    );
    assert_eq!(shop.site.runs(), 1);
}

#[tokio::test]
async fn an_answer_that_is_not_to_be_stored_is_done_and_not_repeated() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    assert_eq!(client.create(keyed(order("secret"))).await.unwrap().into_inner().run, 1);
    let done = client.create(keyed(order("secret"))).await.unwrap_err();
    assert_refused(&done, Code::AlreadyExists, "RESULT_NOT_REPLAYABLE");
    assert_eq!(shop.site.runs(), 1);
}

#[tokio::test]
async fn a_panic_is_internal_and_frees_the_key() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    assert_refused(&client.create(keyed(order("panic"))).await.unwrap_err(), Code::Internal, "INTERNAL");
    assert_eq!(client.create(keyed(order("panic"))).await.unwrap().into_inner().run, 2);
}

#[tokio::test]
async fn a_call_whose_client_left_goes_on_and_replays() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    tokio::select! {
        answer = client.create(keyed(order("slow"))) => panic!("it may not go on yet: {answer:?}"),
        () = shop.run_began() => {}
    }
    assert_refused(&client.create(keyed(order("slow"))).await.unwrap_err(), Code::Aborted, "CONFLICT");
    shop.site.may_go_on.add_permits(1);
    assert!(is_replay(replay_of(&client, "slow").await.metadata()));
    assert_eq!(shop.site.runs(), 1);
}

#[tokio::test]
async fn a_deadline_does_not_free_the_key() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    let mut call = keyed(order("slow"));
    call.set_timeout(Duration::from_millis(300));
    let late = client.create(call).await.unwrap_err();
    assert!(matches!(late.code(), Code::DeadlineExceeded | Code::Cancelled), "{late:?}");
    shop.run_began().await;
    let refused = client.create(keyed(order("slow"))).await.unwrap_err();
    assert_refused(&refused, Code::Aborted, "CONFLICT");
    assert!(refused.get_details_retry_info().unwrap().retry_delay.unwrap() >= Duration::from_secs(1));
    shop.site.may_go_on.add_permits(1);
    assert!(is_replay(replay_of(&client, "slow").await.metadata()));
    assert_eq!(shop.site.runs(), 1);
}

/// Calls again until the first run's answer is there.
async fn replay_of(client: &Client<tonic::transport::Channel>, item: &str) -> tonic::Response<shop::Receipt> {
    let again = async {
        loop {
            match client.create(keyed(order(item))).await {
                Ok(answer) => return answer,
                Err(status) => assert_eq!(status.code(), Code::Aborted, "{status:?}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, again).await.expect("the run ends")
}

#[tokio::test]
async fn refusals_say_why_in_words_for_programs() {
    let shop = Shop::under(Policy::builder().required().max_request_bytes(100).build().unwrap()).await;
    let client = shop.client().await;
    assert_refused(
        &client.create(Request::new(order("tea"))).await.unwrap_err(),
        Code::InvalidArgument,
        "MISSING_KEY",
    );
    let mut open = Request::new(order("tea"));
    open.metadata_mut().insert("idempotency-key", "\"open".parse().unwrap());
    assert_refused(&client.create(open).await.unwrap_err(), Code::InvalidArgument, "INVALID_KEY");
    let long = "tea ".repeat(100);
    assert_refused(
        &client.create(keyed(order(&long))).await.unwrap_err(),
        Code::ResourceExhausted,
        "PAYLOAD_TOO_LARGE",
    );
    assert_eq!(shop.site.runs(), 0);

    client.create(keyed(order("tea"))).await.unwrap();
    let other = client.create(keyed(order("coffee"))).await.unwrap_err();
    assert_refused(&other, Code::FailedPrecondition, "FINGERPRINT_MISMATCH");
    assert_eq!(other.get_details_error_info().unwrap().metadata["mismatch"], "body");
    assert!(other.get_details_retry_info().is_none());
    let mut token = keyed(order("tea"));
    token.metadata_mut().insert("authorization", "Bearer other".parse().unwrap());
    assert_refused(
        &client.create(token).await.unwrap_err(),
        Code::FailedPrecondition,
        "CREDENTIALS_MISMATCH",
    );
    let method = client.watch(keyed(order("tea"))).await.unwrap_err();
    assert_eq!(method.get_details_error_info().unwrap().metadata["mismatch"], "path");
    assert_eq!(shop.site.runs(), 1);
}

fn assert_refused(status: &Status, code: Code, reason: &str) {
    let info = status.get_details_error_info().unwrap_or_else(|| panic!("no details: {status:?}"));
    assert_eq!((status.code(), &*info.reason, &*info.domain), (code, reason, idempotency_tonic::DOMAIN));
}

#[tokio::test]
async fn a_copy_may_be_compressed_in_another_way() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    client.create(keyed(order("tea"))).await.unwrap();
    let compressed = client.clone().compressing().create(keyed(order("tea"))).await.unwrap();
    assert!(is_replay(compressed.metadata()));
    let other = client.compressing().create(keyed(order("coffee"))).await.unwrap_err();
    assert_refused(&other, Code::FailedPrecondition, "FINGERPRINT_MISMATCH");
    assert_eq!(shop.site.runs(), 1);
}

#[tokio::test]
async fn a_stream_of_answers_comes_as_it_is_made_and_replays_whole() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    let mut first = client.watch(keyed(order("tea"))).await.unwrap().into_inner();
    shop.site.may_go_on.add_permits(1);
    assert_eq!(first.message().await.unwrap().unwrap().item, "tea 0");
    shop.site.may_go_on.add_permits(2);
    let mut whole = vec![1];
    while let Some(receipt) = first.message().await.unwrap() {
        whole.push(receipt.run);
    }
    assert_eq!(whole, [1, 1, 1]);
    let replay = client.watch(keyed(order("tea"))).await.unwrap();
    assert!(is_replay(replay.metadata()));
    let items: Vec<_> = replay.into_inner().map(|receipt| receipt.unwrap().item).collect().await;
    assert_eq!(items, ["tea 0", "tea 1", "tea 2"]);
    assert_eq!(shop.site.runs(), 1);
}

#[tokio::test]
async fn the_status_in_the_trailers_decides_about_a_stream() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    shop.site.may_go_on.add_permits(10);
    let mut first = client.watch(keyed(order("unavailable once"))).await.unwrap().into_inner();
    assert_eq!(first.message().await.unwrap().unwrap().run, 1);
    assert_eq!(first.message().await.unwrap_err().code(), Code::Unavailable);
    let second = client.watch(keyed(order("unavailable once"))).await.unwrap();
    assert!(!is_replay(second.metadata()));
    let runs: Vec<_> = second.into_inner().map(|receipt| receipt.unwrap().run).collect().await;
    assert_eq!((runs, shop.site.runs()), (vec![2, 2, 2], 2));
}

#[tokio::test]
async fn a_handlers_word_counts_behind_messages_too() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    shop.site.may_go_on.add_permits(1);
    let mut first = client.watch(keyed(order("in doubt"))).await.unwrap().into_inner();
    assert_eq!(first.message().await.unwrap().unwrap().run, 1);
    let said = first.message().await.unwrap_err();
    assert_eq!(said.code(), Code::Internal);
    assert!(said.metadata().get("idempotency-ending").is_none(), "the word is the layer's alone");
    let retry = client.watch(keyed(order("in doubt"))).await.unwrap_err();
    assert_refused(&retry, Code::FailedPrecondition, "OUTCOME_UNKNOWN");
    assert_eq!(shop.site.runs(), 1);
}

#[tokio::test]
async fn calls_that_stream_their_requests_pass_or_are_refused() {
    let layer = GrpcIdempotencyLayer::new(MemoryStore::new());
    let known = layer.clone().streaming("/shop.Orders/Upload").streaming("/shop.Orders/Chat");
    let shop = Shop::behind(known.clone()).await;
    let client = shop.client().await;
    let items = || stream::iter([order("tea"), order("cake")]);
    for run in 1..=2 {
        let receipt = client.upload(keyed(items())).await.unwrap().into_inner();
        assert_eq!((receipt.run, &*receipt.item), (run, "tea,cake"));
    }
    // Each order waits for the receipt of the one before.
    let (give, take) = tokio::sync::mpsc::channel(1);
    let asked =
        keyed(stream::unfold(take, async |mut take| take.recv().await.map(|order: Order| (order, take))));
    give.send(order("tea")).await.unwrap();
    let mut receipts = client.chat(asked).await.unwrap().into_inner();
    assert_eq!(receipts.message().await.unwrap().unwrap().item, "tea");
    give.send(order("cake")).await.unwrap();
    assert_eq!(receipts.message().await.unwrap().unwrap().item, "cake");

    let strict = Shop::behind(known.client_streams(ClientStreams::Refuse)).await;
    let client = strict.client().await;
    assert_refused(
        &client.upload(keyed(items())).await.unwrap_err(),
        Code::InvalidArgument,
        "UNREADABLE_BODY",
    );
    assert_eq!(client.upload(Request::new(items())).await.unwrap().into_inner().item, "tea,cake");
    assert_eq!(strict.site.runs(), 1);

    let unknown = Shop::behind(layer).await;
    let client = unknown.client().await;
    assert_refused(
        &client.upload(keyed(items())).await.unwrap_err(),
        Code::InvalidArgument,
        "UNREADABLE_BODY",
    );
    assert_eq!(unknown.site.runs(), 0);
    let one = client.upload(keyed(stream::iter([order("tea")]))).await.unwrap().into_inner();
    assert_eq!((&*one.item, unknown.site.runs()), ("tea", 1), "one message is a call like any other");
}

#[tokio::test]
async fn health_and_reflection_pass_where_a_key_is_required() {
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest,
    };

    let required = Policy::builder().required().build().unwrap();
    let layer = GrpcIdempotencyLayer::with_policy(MemoryStore::new(), required);
    let (incoming, address) = listen().await;
    let (reporter, health) = tonic_health::server::health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .unwrap();
    let routes =
        Server::builder().layer(layer).add_service(health).add_service(reflection).add_service(orders().0);
    tokio::spawn(routes.serve_with_incoming(incoming));

    let mut health = HealthClient::new(channel(address).await);
    let mut status = async |request| health.check(request).await.unwrap().into_inner().status;
    assert_eq!(status(Request::new(HealthCheckRequest::default())).await, 1);
    assert_eq!(status(keyed(HealthCheckRequest::default())).await, 1);
    reporter.set_service_status("", tonic_health::ServingStatus::NotServing).await;
    assert_eq!(status(keyed(HealthCheckRequest::default())).await, 2, "health is never a replay");

    let mut reflection = ServerReflectionClient::new(channel(address).await);
    let question = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..ServerReflectionRequest::default()
    };
    let mut answers = reflection.server_reflection_info(stream::iter([question])).await.unwrap().into_inner();
    assert!(answers.message().await.unwrap().is_some());
    let create = Client::new(channel(address).await);
    assert_eq!(create.create(Request::new(order("tea"))).await.unwrap_err().code(), Code::InvalidArgument);
}

#[derive(Clone)]
struct User(&'static str);

/// Stands for whatever verifies a caller.
#[allow(clippy::result_large_err, reason = "an interceptor's error is tonic's")]
fn verified(mut request: Request<()>) -> Result<Request<()>, Status> {
    let user = match request.metadata().get("x-token").map(|token| token.as_bytes().to_owned()).as_deref() {
        Some(b"a") => User("ann"),
        Some(b"b") => User("bob"),
        _ => return Ok(request),
    };
    request.extensions_mut().insert(user);
    Ok(request)
}

#[tokio::test]
async fn a_scope_reads_what_an_interceptor_outside_verified() {
    let per_user = Policy::builder()
        .scope(|parts| parts.extensions.get::<User>().map(|user| Scope::principal(user.0)))
        .build()
        .unwrap();
    let (incoming, address) = listen().await;
    let (orders, site) = orders();
    let server = Server::builder()
        .layer(tonic::service::InterceptorLayer::new(verified))
        .layer(GrpcIdempotencyLayer::with_policy(MemoryStore::new(), per_user))
        .add_service(orders);
    tokio::spawn(server.serve_with_incoming(incoming));
    let client = Client::new(channel(address).await);
    let call = async |token: &'static str| {
        let mut call = keyed(order("tea"));
        call.metadata_mut().insert("x-token", token.parse().unwrap());
        client.create(call).await
    };
    assert_eq!(call("a").await.unwrap().into_inner().run, 1);
    assert_eq!(call("b").await.unwrap().into_inner().run, 2);
    let replay = call("a").await.unwrap();
    assert!(is_replay(replay.metadata()));
    assert_refused(&call("nobody").await.unwrap_err(), Code::Unauthenticated, "MISSING_PRINCIPAL");
    assert_eq!(site.runs(), 2);
}

#[tokio::test]
async fn a_client_sends_one_key_for_one_operation() {
    let shop = Shop::open().await;
    let client = Client::new(InterceptedService::new(channel(shop.address).await, KeySender));
    let fresh = async || client.create(Request::new(order("tea"))).await.unwrap().into_inner().run;
    assert_eq!((fresh().await, fresh().await), (1, 2));
    let key = OperationKey::random();
    let call = async || {
        let mut call = Request::new(order("unavailable once"));
        call.extensions_mut().insert(key.clone());
        client.create(call).await.unwrap()
    };
    assert_eq!(call().await.into_inner().run, 3);
    let replay = call().await;
    assert!(is_replay(replay.metadata()));
    assert_eq!((replay.into_inner().run, shop.site.runs()), (3, 3));
}
