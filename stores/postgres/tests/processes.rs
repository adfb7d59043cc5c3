//! Several processes on one table. Each test starts copies of its own executable, which know by environment variables
//! that they are the other process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use idempotency_core::{Claim, Store};
use idempotency_store_postgres::PostgresStore;
use scene::{Database, bid, block_on, claim, operation};

const URL: &str = "IDEMPOTENCY_POSTGRES_TEST_URL";
const SCHEMA: &str = "IDEMPOTENCY_POSTGRES_TEST_SCHEMA";
const PROCESSES: usize = 4;
const CLAIMERS: usize = 50;
const KEYS: usize = 20;

/// The URL and the schema this process was started for, when it is the other process of a test.
fn as_other_process() -> Option<(String, String)> {
    Some((env::var(URL).ok()?, env::var(SCHEMA).ok()?))
}

async fn store((url, schema): &(String, String)) -> PostgresStore {
    let builder = PostgresStore::builder().schema(schema).table("t").patience(Duration::from_secs(20));
    builder.connections(5).connect(url).await.unwrap()
}

/// Tells the test that this process is ready, and waits until the others are too.
fn meet_the_others() {
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

struct Other {
    child: Child,
    said: BufReader<ChildStdout>,
    tell: ChildStdin,
}

impl Other {
    fn start(test: &str, database: &Database) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(URL, database.url())
            .env(SCHEMA, database.schema())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, tell) = (BufReader::new(child.stdout.take().unwrap()), child.stdin.take().unwrap());
        let mut other = Self { child, said, tell };
        other.wait_for("ready");
        other
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while line.trim() != word {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "the other process ended before {word:?}");
        }
    }

    fn go(&mut self) {
        self.tell.write_all(b"go\n").unwrap();
    }

    /// What it said until it ended well.
    fn finish(mut self) -> String {
        let mut said = String::new();
        self.said.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        said
    }
}

#[test]
fn one_of_fifty_claimers_in_four_processes_is_granted_each_key_and_nobody_hears_an_error() {
    if let Some(other) = as_other_process() {
        return block_on(race(&other));
    }
    let Some(database) = Database::reach() else { return };
    let test = "one_of_fifty_claimers_in_four_processes_is_granted_each_key_and_nobody_hears_an_error";
    let mut others = [(); PROCESSES].map(|()| Other::start(test, &database));
    others.iter_mut().for_each(Other::go);
    let said: String = others.map(Other::finish).concat();
    let claims = said.lines().filter(|line| line.starts_with("claimed")).count();
    assert_eq!(claims, PROCESSES * CLAIMERS.div_ceil(PROCESSES) * KEYS);
    for key in 0..KEYS {
        let word = format!("claimed k{key} granted");
        assert_eq!(said.lines().filter(|line| *line == word).count(), 1, "{word}:\n{said}");
    }
}

async fn race(other: &(String, String)) {
    let store = store(other).await;
    meet_the_others();
    for key in 0..KEYS {
        let claims: Vec<_> = (0..CLAIMERS.div_ceil(PROCESSES))
            .map(|_| {
                let (store, op) = (store.clone(), operation(&format!("k{key}"), b"body"));
                tokio::spawn(async move { store.claim(&op, &bid()).await })
            })
            .collect();
        for claim in claims {
            let verdict = claim.await.unwrap().unwrap();
            assert!(matches!(verdict, Claim::Granted(_) | Claim::InFlight { .. }), "{verdict:?}");
            println!("\nclaimed k{key} {}", verdict.name());
        }
    }
}

#[test]
fn many_processes_may_make_the_tables_at_once() {
    if let Some(other) = as_other_process() {
        meet_the_others();
        return block_on(async {
            let key = format!("of {}", std::process::id());
            claim(&store(&other).await, &key).await;
        });
    }
    for _ in 0..3 {
        let Some(database) = Database::reach() else { return };
        let test = "many_processes_may_make_the_tables_at_once";
        let mut others = [(); 6].map(|()| Other::start(test, &database));
        others.iter_mut().for_each(Other::go);
        others.into_iter().for_each(|other| drop(other.finish()));
        block_on(async {
            let mut beside = database.beside().await;
            let versions = "SELECT count(*) FROM {s}.idempotency_schema WHERE version = 1";
            assert_eq!(database.number(&mut beside, "t", versions).await, 1);
            assert_eq!(database.number(&mut beside, "t", "SELECT count(*) FROM {t}").await, 6);
        });
    }
}

#[test]
fn a_killed_process_keeps_what_it_was_granted_and_no_lock() {
    if let Some(other) = as_other_process() {
        return block_on(async {
            claim(&store(&other).await, "theirs").await;
            let database = Database::at(other.0.clone());
            let mut unfinished = database.beside().await;
            let delete = format!("BEGIN; DELETE FROM {}.t", other.1);
            database.run(&mut unfinished, "t", &delete).await;
            meet_the_others();
        });
    }
    let Some(database) = Database::reach() else { return };
    let mut other = Other::start("a_killed_process_keeps_what_it_was_granted_and_no_lock", &database);
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    block_on(async {
        let store = store(&(database.url().to_owned(), database.schema().to_owned())).await;
        let verdict = store.claim(&operation("theirs", b"body"), &bid()).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        claim(&store, "mine").await;
    });
}
