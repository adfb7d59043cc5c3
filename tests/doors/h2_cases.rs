//! The HTTP cases over HTTP/2 without TLS.
//!
//! A case is written for HTTP/1.1; over HTTP/2 its words mean:
//!
//! | word | over HTTP/2 |
//! |---|---|
//! | a connection of its own | a stream of its own, on the one connection a case has with a server |
//! | `conn` | a second connection, by its name |
//! | `framing` length, none | `content-length` and DATA; no DATA at all |
//! | `framing` chunked | DATA without `content-length` |
//! | `declared_length` beyond the body | the stream stays open, waiting for the rest |
//! | `no_terminator` | `RST_STREAM(CANCEL)` in place of `END_STREAM` |
//! | `close_after_ms`, `close_after_bytes`, `rst` | `RST_STREAM(CANCEL)`, the connection stays |
//! | `expect_continue` | the field is sent, nothing is waited for |
//! | `framing_headers`, `connection` | no field of the connection, one `content-length` at most; held against every answer |
//! | `content-length` absent | absent, or 0 |
//!
//! Each case has servers of its own, so that several can be played side by side and none disturbs another. After a
//! case every connection must still answer a ping: one stream's trouble is no other's.

mod call;
mod case;
mod connection;
mod expect;
mod play;
mod stage;
mod words;

use futures_util::{StreamExt, stream};
use http::StatusCode;
use serde_json::json;

pub(crate) use call::{Call, End, Leave};
use case::Case;
pub(crate) use connection::{Broken, Connection};

use crate::server::Setting;

/// How many cases are played side by side: most of them wait.
const LANES: usize = 4;

/// The cases that are not played, and why. None of them is about HTTP/2: all that an HTTP/1.1 case asks for can be asked
/// for over HTTP/2 too.
const NOT_PLAYED: [(&str, Reason); 7] = [
    ("two-processes-one-store", Reason::StoreEndsWithItsProcess),
    ("crash-then-lease", Reason::StoreEndsWithItsProcess),
    ("hook-retry-after-failure", Reason::NoWebhookDoor),
    ("hook-raw-bytes", Reason::NoWebhookDoor),
    ("hook-many-signatures", Reason::NoWebhookDoor),
    ("hook-timestamp-window", Reason::NoWebhookDoor),
    ("hook-forged-id", Reason::NoWebhookDoor),
];

/// Why a case is not played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    StoreEndsWithItsProcess,
    NoWebhookDoor,
}

impl Reason {
    fn holds(self, setting: &Setting) -> bool {
        match self {
            Self::StoreEndsWithItsProcess => !setting.outlives_a_process(),
            Self::NoWebhookDoor => true,
        }
    }
}

/// How many cases were played, and how many were not.
#[derive(Debug, PartialEq, Eq)]
struct Tally {
    passed: usize,
    not_played: usize,
}

pub(crate) async fn cases_of_the_default_door(setting: Setting) {
    let cases = http_cases().filter(|case| case.config.is_empty());
    let not_played = if setting.outlives_a_process() { 0 } else { 1 };
    let expected = Tally { passed: 35 - not_played, not_played };
    assert_eq!(play_all(&setting, cases).await, expected);
}

pub(crate) async fn cases_of_configured_doors(setting: Setting) {
    let cases = http_cases().filter(|case| !case.config.is_empty());
    let not_played = if setting.outlives_a_process() { 5 } else { 6 };
    let expected = Tally { passed: 25 - not_played, not_played };
    assert_eq!(play_all(&setting, cases).await, expected);
}

pub(crate) async fn cases_of_streams(setting: Setting) {
    let cases = Case::all_in(include_str!("h2_cases/streams.json")).into_iter();
    assert_eq!(play_all(&setting, cases).await, Tally { passed: 5, not_played: 0 });
}

/// axum gives every answer a length, a 204 too; its HTTP/1.1 server takes it away again, its HTTP/2 server does not. The
/// door neither adds to what the framework says nor takes from it.
pub(crate) async fn an_empty_answer_says_of_its_length_what_the_framework_says(setting: Setting) {
    let bare = setting.afresh().with_config(json!({ "bare": true })).start().await;
    let guarded = setting.start().await;
    let expected = if setting.framework() == "axum" { vec!["0"] } else { vec![] };
    for (server, replays) in [(&bare, [false, false]), (&guarded, [false, true])] {
        let authority = server.client.address().to_string();
        let connection = Connection::open(&authority).await;
        for is_replay in replays {
            let seen = connection.send(Call::post(&authority, "/status/204", "empty")).await;
            assert_eq!((seen.status(), seen.is_replay()), (Some(StatusCode::NO_CONTENT), is_replay));
            assert_eq!(seen.values("content-length"), expected);
            assert!(seen.broken.is_none() && seen.body.is_empty(), "{}", seen.short());
        }
    }
}

fn http_cases() -> impl Iterator<Item = Case> {
    Case::all_in(include_str!("../cases/http-cases.json")).into_iter()
}

/// Plays what can be played, says how each case ended, and fails if one did not pass.
async fn play_all(setting: &Setting, cases: impl Iterator<Item = Case>) -> Tally {
    let (playable, rest): (Vec<_>, Vec<_>) = cases.partition(|case| case.can_be_played(setting));
    for case in &rest {
        let known = NOT_PLAYED.into_iter().find(|(id, reason)| *id == case.id && reason.holds(setting));
        let (_, reason) = known.unwrap_or_else(|| panic!("{}: nobody said why it is not played", case.id));
        println!("not played  {case}: {reason:?}");
    }
    for case in &playable {
        let known = NOT_PLAYED.into_iter().any(|(id, reason)| id == case.id && reason.holds(setting));
        assert!(!known, "{}: it can be played, so its reason not to be is gone", case.id);
    }
    let played = stream::iter(&playable).map(|case| play::complaints_about(setting, case));
    let complaints: Vec<_> = played.buffered(LANES).collect().await;
    let mut passed = 0;
    for (case, complaints) in playable.iter().zip(&complaints) {
        println!("{}  {case}", if complaints.is_empty() { "passed    " } else { "FAILED    " });
        for complaint in complaints {
            println!("            {complaint}");
        }
        passed += usize::from(complaints.is_empty());
    }
    let tally = Tally { passed, not_played: rest.len() };
    println!("{} passed, {} failed, {} not played", passed, playable.len() - passed, rest.len());
    assert_eq!(passed, playable.len(), "{:#?}", complaints.concat());
    tally
}
