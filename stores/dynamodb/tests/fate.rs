//! What a failure says it left behind, before a service that says what the test wants.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::{
    Client, Config,
    config::{BehaviorVersion, Region, retry::RetryConfig},
    primitives::{DateTime, DateTimeFormat},
};
use idempotency_core::{
    Fate, Fence, Inspect, Keep, Resolution, Store, StoreError, StoreErrorKind,
    clock::{Clock, SystemClock},
};
use idempotency_store_dynamodb::{DynamoDbStore, DynamoDbStoreBuilder};
use scene::{DAY, bid, config, operation, outcome};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// Long enough for a busy machine to answer in half of it.
const PATIENCE: Duration = Duration::from_secs(4);

/// What every answer of the service bears.
const REQUEST_ID: &str = "x-amzn-RequestId";

/// How the service answers one request.
#[derive(Debug, Clone)]
enum Answer {
    /// With this status and body.
    Says(u16, String),
    /// That nothing is there, without the header of this name.
    OmitsHeader(&'static str),
    /// Somebody in between answers with this status.
    IsIntercepted(u16),
    /// With a part of a body.
    Breaks,
    /// It ends the connection.
    Hangs,
    /// It keeps the connection.
    Sleeps,
    /// It ends the connection, and takes no other.
    Leaves,
}

use Answer::{Breaks, Hangs, IsIntercepted, Leaves, OmitsHeader, Says, Sleeps};

fn told(status: u16, code: &str) -> Answer {
    Says(status, format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"no"}}"#))
}

fn refuses(code: &str) -> Answer {
    told(400, code)
}

/// What the service says of a table that fits.
fn fits() -> Answer {
    let table = r#"{"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"address","KeyType":"HASH"}],
        "AttributeDefinitions":[{"AttributeName":"address","AttributeType":"B"}]}}"#;
    Says(200, table.to_owned())
}

/// A service that gives these answers, one to each request, and the last of them for ever.
async fn service(answers: Vec<Answer>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut asleep = Vec::new();
        for nth in 0.. {
            let mut stream = BufReader::new(listener.accept().await.unwrap().0);
            read_request(&mut stream).await;
            match answers.get(nth).or(answers.last()).unwrap() {
                Says(status, body) => reply(&mut stream, *status, body, "", body.len()).await,
                OmitsHeader(name) => reply(&mut stream, 200, "{}", name, 2).await,
                IsIntercepted(status) => reply(&mut stream, *status, "", REQUEST_ID, 0).await,
                Breaks => reply(&mut stream, 200, &"{}".repeat(100), "", 7).await,
                Hangs => {}
                Sleeps => asleep.push(stream),
                Leaves => return,
            }
        }
    });
    url
}

async fn read_request(stream: &mut BufReader<TcpStream>) {
    let mut length = 0;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    stream.read_exact(&mut vec![0; length]).await.unwrap();
}

async fn reply(stream: &mut BufReader<TcpStream>, status: u16, body: &str, omitted: &str, sent: usize) {
    let now = DateTime::from_secs((SystemClock.now().as_micros() / 1_000_000) as i64);
    let mut head = format!("HTTP/1.1 {status} So\r\n");
    for (name, value) in [
        ("Connection", "close".to_owned()),
        ("Content-Length", body.len().to_string()),
        ("Date", now.fmt(DateTimeFormat::HttpDate).unwrap()),
        (REQUEST_ID, "of-this-service".to_owned()),
    ] {
        if name != omitted {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    stream.write_all(&[head.as_bytes(), b"\r\n", &body.as_bytes()[..sent]].concat()).await.unwrap();
}

fn builder(url: &str) -> DynamoDbStoreBuilder {
    DynamoDbStore::builder(Client::from_conf(config(url).build())).patience(PATIENCE)
}

/// A store before a service that finds the table fit, and then gives these answers.
async fn store(answers: impl IntoIterator<Item = Answer>) -> DynamoDbStore {
    let url = service([fits()].into_iter().chain(answers).collect()).await;
    builder(&url).open().await.unwrap()
}

async fn failure(answers: impl IntoIterator<Item = Answer>) -> StoreError {
    let store = store(answers).await;
    store.claim(&operation("k", b"body"), &bid()).await.unwrap_err()
}

#[tokio::test]
async fn what_the_service_refused_did_not_happen() {
    for (code, kind) in [
        ("ThrottlingException", StoreErrorKind::Unavailable),
        ("ProvisionedThroughputExceededException", StoreErrorKind::Unavailable),
        ("RequestLimitExceeded", StoreErrorKind::Unavailable),
        ("TransactionConflictException", StoreErrorKind::Unavailable),
        ("ReplicatedWriteConflictException", StoreErrorKind::Unavailable),
        ("ResourceNotFoundException", StoreErrorKind::Schema),
        ("ValidationException", StoreErrorKind::Schema),
        ("AccessDeniedException", StoreErrorKind::Refused),
        ("ExpiredTokenException", StoreErrorKind::Refused),
    ] {
        let error = failure([refuses(code)]).await;
        assert_eq!((error.kind, error.fate), (kind, Fate::NotApplied), "{code}: {error:?}");
    }
}

#[tokio::test]
async fn what_was_sent_and_not_answered_may_have_happened() {
    for answer in [
        told(500, "InternalServerError"),
        Says(503, String::new()),
        Says(200, "a page of somebody else's".to_owned()),
        IsIntercepted(408),
        IsIntercepted(403),
        Breaks,
        Hangs,
        Sleeps,
    ] {
        let error = failure([answer.clone()]).await;
        let wanted = (StoreErrorKind::Unavailable, Fate::Unknown);
        assert_eq!((error.kind, error.fate), wanted, "{answer:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_refusal_of_the_second_copy_says_nothing_of_the_first() {
    for answer in [told(500, "InternalServerError"), Hangs, Breaks] {
        let throttled = failure([answer.clone(), refuses("ThrottlingException")]).await;
        let wanted = (StoreErrorKind::Unavailable, Fate::Unknown);
        assert_eq!((throttled.kind, throttled.fate), wanted, "{answer:?}: {throttled:?}");
        let denied = failure([answer, refuses("AccessDeniedException")]).await;
        assert_eq!((denied.kind, denied.fate), (StoreErrorKind::Refused, Fate::Unknown));
    }
    let unreachable = failure([Leaves]).await;
    assert_eq!((unreachable.kind, unreachable.fate), (StoreErrorKind::Unavailable, Fate::Unknown));
}

#[tokio::test]
async fn what_found_no_connection_did_not_happen() {
    let url = service(vec![fits(), Says(200, "{}".to_owned()), Leaves]).await;
    let store = builder(&url).open().await.unwrap();
    let op = operation("k", b"body");
    assert_eq!(store.look(&op).await.unwrap().name(), "granted");
    assert!(store.look(&op).await.is_err(), "it left");
    let error = store.claim(&op, &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");
}

#[tokio::test]
async fn what_could_not_be_signed_did_not_happen() {
    let http = aws_smithy_http_client::Builder::new().build_http();
    let nameless = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url("http://127.0.0.1:9")
        .region(Region::new("us-east-1"))
        .http_client(http)
        .build();
    let store = DynamoDbStore::new(Client::from_conf(nameless));
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!(error.fate, Fate::NotApplied, "{error:?}");
}

#[tokio::test]
async fn a_call_ends_within_the_store_s_patience() {
    let url = service(vec![fits(), Sleeps]).await;
    let often = RetryConfig::standard().with_max_attempts(20).with_initial_backoff(Duration::from_millis(1));
    let client = Client::from_conf(config(&url).retry_config(often).build());
    let store = DynamoDbStore::builder(client).patience(PATIENCE).open().await.unwrap();
    let begun = Instant::now();
    let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::Unknown));
    assert!(begun.elapsed() < PATIENCE * 2, "it took {:?}", begun.elapsed());
}

#[tokio::test]
async fn an_attempt_that_hangs_leaves_time_for_another() {
    let granted = Says(200, r#"{"Attributes":{"attempt":{"N":"1"}}}"#.to_owned());
    let store = store([Sleeps, granted]).await;
    let claim = store.claim(&operation("k", b"body"), &bid()).await.unwrap();
    assert_eq!(claim.name(), "granted");
}

#[tokio::test]
async fn a_service_that_does_not_tell_the_time_is_asked_to_write_nothing() {
    // Without the service's mark, it is somebody in between who tells it.
    for header in ["Date", "x-amzn-RequestId"] {
        let url = service(vec![OmitsHeader(header)]).await;
        let store = DynamoDbStore::new(Client::from_conf(config(&url).build()));
        let error = store.claim(&operation("k", b"body"), &bid()).await.unwrap_err();
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{header}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("Date header"), "{cause}");
    }
}

#[tokio::test]
async fn a_resolution_fenced_by_what_may_be_its_own_copy_is_not_called_fenced() {
    let fenced = refuses("ConditionalCheckFailedException");
    let applied = Resolution::Applied(outcome(), Keep { replay: DAY, then_reject: DAY });
    let address = *operation("k", b"body").address();

    let store = store([Hangs, fenced.clone()]).await;
    let error = store.resolve(&address, Fence::from_u64(1), &applied).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::Unknown));
    let settled = store.resolve(&address, Fence::from_u64(1), &applied).await.unwrap();
    assert_eq!(settled, idempotency_core::Settled::Fenced(None));
}
