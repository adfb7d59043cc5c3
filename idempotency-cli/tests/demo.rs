//! `idempotency demo` on every store there is: no message answered twice, none left without an answer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use idempotency_services::Server;
use serde_json::Value;

/// How many stories are told on a store, where each takes its real time.
const SEEDS: u64 = 3;
const CONVERSATIONS: u64 = 20;

/// Tells some stories, and checks each.
fn tell(store: Option<&str>) {
    let mut duplicates_without = 0;
    for seed in 1..=SEEDS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_idempotency"));
        command.args([
            "demo",
            "--json",
            "--seed",
            &seed.to_string(),
            "--conversations",
            &CONVERSATIONS.to_string(),
        ]);
        if let Some(store) = store {
            command.args(["--store", store]);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        let report: Value =
            serde_json::from_str(&said).unwrap_or_else(|_| panic!("{store:?}: {said}{error}"));
        let side = |side: &str, what: &str| report[side][what].as_u64().unwrap();
        assert!(output.status.success(), "{store:?}, seed {seed}: {said}");
        assert_eq!(
            (side("with", "duplicates"), side("with", "unanswered")),
            (0, 0),
            "{store:?}, seed {seed}: {said}"
        );
        assert!(side("with", "messages") >= CONVERSATIONS, "{store:?}, seed {seed}: {said}");
        duplicates_without += side("without", "duplicates");
    }
    assert!(duplicates_without > SEEDS, "{store:?}: the faults do nothing");
}

#[test]
fn in_memory() {
    tell(None);
}

#[test]
fn in_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    tell(Some(directory.path().join("demo.db").to_str().unwrap()));
}

#[test]
fn in_postgres() {
    let Some(url) = Server::Postgres.url() else { return };
    tell(Some(&url));
}

#[test]
fn in_redis() {
    let Some(url) = Server::Redis.url() else { return };
    tell(Some(&url));
}
