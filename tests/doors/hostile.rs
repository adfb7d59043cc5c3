//! Requests no good client sends, and a record somebody overwrote.

use http::StatusCode;
use sqlx::{Connection, SqliteConnection};

use crate::{
    caller::{Call, Page, Told},
    client::post,
    server::Setting,
};

pub(crate) async fn malformed_requests_claim_nothing(setting: Setting) {
    let mut server = setting.start().await;
    let long = "a".repeat(256);
    let key = "Idempotency-Key: k\r\n";
    let cut = [
        ("a chunk cut short", format!("{key}Transfer-Encoding: chunked\r\n\r\n5\r\nab")),
        ("no last chunk", format!("{key}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")),
        ("a body cut short", format!("{key}Content-Length: 10\r\n\r\nab")),
    ];
    for (what, rest) in cut {
        let answer = server.client.send_last_bytes(to_counter(&rest).as_bytes()).await;
        assert_eq!(status(&answer), Some(400), "{what}: {answer:?}");
    }
    let wrong = [
        ("a chunk of no size", format!("{key}Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n"), 400),
        ("a length beyond any number", format!("{key}Content-Length: 99999999999999999999\r\n\r\nab"), 400),
        ("a length beyond any body", format!("{key}Content-Length: 1000000000000\r\n\r\nab"), 413),
        ("two keys", format!("{key}{key}Content-Length: 0\r\n\r\n"), 400),
        ("a long key", format!("Idempotency-Key: {long}\r\nContent-Length: 0\r\n\r\n"), 400),
        ("no ASCII", "Idempotency-Key: schl\u{fc}ssel\r\nContent-Length: 0\r\n\r\n".to_owned(), 400),
    ];
    for (what, rest, expected) in wrong {
        let answer = server.client.send_bytes(to_counter(&rest).as_bytes()).await;
        assert_eq!(status(&answer), Some(expected), "{what}: {answer:?}");
    }
    assert_eq!(server.runs().await, 0);
    let good = server.client.send(post("/counter", "k")).await.unwrap();
    assert_eq!((good.status, good.is_replay()), (StatusCode::OK, false));
    assert_eq!(server.runs().await, 1);
    assert!(server.is_alive());
    assert_eq!(setting.stderr(), "");
}

fn to_counter(rest: &str) -> String {
    format!("POST /counter HTTP/1.1\r\nHost: fixture\r\nConnection: close\r\n{rest}")
}

fn status(answer: &str) -> Option<u16> {
    answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}

pub(crate) async fn a_corrupt_record_is_neither_run_nor_replayed(setting: Setting) {
    let mut server = setting.start().await;
    let corruptions =
        ["outcome = x''", "outcome = x'ffffffff'", "outcome = substr(outcome, 1, 3)", "media = 999"];
    for (number, corruption) in (1..).zip(corruptions) {
        let key = format!("key-{number}");
        let call = Call::to(Page::Count { ms: 0 }, &key);
        server.told(call.clone()).await.ran();
        server.told(call.clone()).await.replayed();
        overwrite(&setting, corruption).await;
        assert_eq!(server.told(call).await, Told::Broken, "{corruption}");
        assert_eq!(server.runs().await, number, "{corruption}");
    }
    assert!(server.is_alive());
    assert_eq!(setting.stderr(), "");
}

/// Overwrites the records behind the store's back.
async fn overwrite(setting: &Setting, corruption: &str) {
    let url = format!("sqlite:{}", setting.database().display());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    let statement = format!("UPDATE idempotency_records SET {corruption}");
    let done = sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
    assert!(done.rows_affected() > 0);
}
