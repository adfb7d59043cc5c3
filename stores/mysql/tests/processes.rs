//! Several processes on one table. Each test starts copies of its own executable, which know by an environment variable
//! that they are the other process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use idempotency_core::{Claim, Store};
use scene::{Database, bid, block_on, claim, operation, run};
use sqlx::AssertSqlSafe;

const TABLE: &str = "IDEMPOTENCY_MYSQL_TEST_TABLE";
const PROCESSES: usize = 4;
const CLAIMERS: usize = 50;
const KEYS: usize = 20;

/// The table this process was started for, when it is the other process of a test.
fn as_other_process() -> Option<String> {
    env::var(TABLE).ok()
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
    fn start(test: &str, table: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(TABLE, table)
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
    if let Some(table) = as_other_process() {
        return block_on(race(&table));
    }
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let test = "one_of_fifty_claimers_in_four_processes_is_granted_each_key_and_nobody_hears_an_error";
    let mut others = [(); PROCESSES].map(|()| Other::start(test, &table));
    others.iter_mut().for_each(Other::go);
    let said: String = others.map(Other::finish).concat();
    let claims = said.lines().filter(|line| line.starts_with("claimed")).count();
    assert_eq!(claims, PROCESSES * CLAIMERS.div_ceil(PROCESSES) * KEYS);
    for key in 0..KEYS {
        let word = format!("claimed k{key} granted");
        assert_eq!(said.lines().filter(|line| *line == word).count(), 1, "{word}:\n{said}");
    }
}

async fn race(table: &str) {
    let database = Database::reach().unwrap();
    let store = database.store_on(table).await;
    meet_the_others();
    for key in 0..KEYS {
        let claims: Vec<_> = (0..CLAIMERS.div_ceil(PROCESSES))
            .map(|_| {
                let store = store.clone();
                tokio::spawn(
                    async move { store.claim(&operation(&format!("k{key}"), b"body"), &bid()).await },
                )
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
fn many_processes_may_make_the_table_at_once() {
    if let Some(tables) = as_other_process() {
        meet_the_others();
        return block_on(async {
            let database = Database::reach().unwrap();
            for table in tables.split(' ') {
                claim(&database.store_on(table).await, &format!("k{}", std::process::id())).await;
            }
        });
    }
    let Some(database) = Database::reach() else { return };
    let tables = [(); 4].map(|()| database.table());
    let mut others =
        [(); 6].map(|()| Other::start("many_processes_may_make_the_table_at_once", &tables.join(" ")));
    others.iter_mut().for_each(Other::go);
    others.into_iter().for_each(|other| drop(other.finish()));
    block_on(async {
        let mut beside = database.beside().await;
        for table in &tables {
            let version = format!("SELECT version FROM idempotency_schema WHERE records = '{table}'");
            let versions: Vec<i64> =
                sqlx::query_scalar(AssertSqlSafe(version)).fetch_all(&mut beside).await.unwrap();
            assert_eq!(versions, [1]);
            let records = format!("SELECT COUNT(*) FROM `{table}`");
            let records: i64 =
                sqlx::query_scalar(AssertSqlSafe(records)).fetch_one(&mut beside).await.unwrap();
            assert_eq!(records, 6);
        }
    });
}

#[test]
fn a_killed_process_keeps_what_it_was_granted_and_no_lock() {
    if let Some(table) = as_other_process() {
        return block_on(async {
            let database = Database::reach().unwrap();
            let store = database.store_on(&table).await;
            claim(&store, "theirs").await;
            let mut unfinished = database.beside().await;
            run(&mut unfinished, &table, "BEGIN; DELETE FROM {t}").await;
            meet_the_others();
        });
    }
    let Some(database) = Database::reach() else { return };
    let table = database.table();
    let mut other = Other::start("a_killed_process_keeps_what_it_was_granted_and_no_lock", &table);
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    block_on(async {
        let store = database.store_on(&table).await;
        let verdict = store.claim(&operation("theirs", b"body"), &bid()).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        claim(&store, "mine").await;
    });
}
