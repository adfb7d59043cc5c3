//! Several processes on one file. Each test starts copies of its own executable, which know by an environment variable
//! that they are the other process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use idempotency_core::{Claim, Store};
use idempotency_store_sqlite::SqliteStore;
use scene::{beside, bid, claim, operation};

const FILE: &str = "IDEMPOTENCY_SQLITE_TEST_FILE";
const KEYS: usize = 20;
const CLAIMS: usize = 50;

/// The file this process was started for, when it is the other process of a test.
fn as_other_process() -> Option<PathBuf> {
    env::var_os(FILE).map(PathBuf::from)
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
    fn start(test: &str, path: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(FILE, path)
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

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn one_of_two_processes_is_granted_each_key_and_the_other_hears_no_error() {
    if let Some(path) = as_other_process() {
        return block_on(race(&path));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let mut others = [(); 2].map(|()| {
        Other::start("one_of_two_processes_is_granted_each_key_and_the_other_hears_no_error", &path)
    });
    others.iter_mut().for_each(Other::go);
    let said: String = others.map(Other::finish).concat();
    for key in 0..KEYS {
        let word = format!("granted k{key}");
        assert_eq!(said.lines().filter(|line| *line == word).count(), 1, "{word}:\n{said}");
    }
}

async fn race(path: &Path) {
    let store = SqliteStore::open(path).await.unwrap();
    meet_the_others();
    for key in 0..KEYS {
        let claims: Vec<_> = (0..CLAIMS)
            .map(|_| {
                let store = store.clone();
                let op = operation(&format!("k{key}"), b"body");
                tokio::spawn(async move { store.claim(&op, &bid()).await })
            })
            .collect();
        for claim in claims {
            match claim.await.unwrap().unwrap() {
                Claim::Granted(_) => println!("\ngranted k{key}"),
                Claim::InFlight { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_writer_is_not_starved_by_a_busy_neighbour() {
    if let Some(path) = as_other_process() {
        return block_on(hog(&path));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let mut neighbour = Other::start("a_writer_is_not_starved_by_a_busy_neighbour", &path);
    neighbour.go();
    neighbour.wait_for("hogging");
    block_on(async {
        let store = SqliteStore::open(&path).await.unwrap();
        for key in 0..20 {
            claim(&store, &format!("mine{key}")).await;
        }
    });
    neighbour.child.kill().unwrap();
    neighbour.child.wait().unwrap();
}

/// Writes without a pause until it is killed.
async fn hog(path: &Path) {
    let store = SqliteStore::open(path).await.unwrap();
    meet_the_others();
    for key in 0_u64.. {
        let claims = [(); 4].map(|()| {
            let (store, op) = (store.clone(), operation(&format!("hog{key}"), b"body"));
            tokio::spawn(async move { store.claim(&op, &bid()).await })
        });
        for claim in claims {
            claim.await.unwrap().ok();
        }
        if key == 10 {
            println!("\nhogging");
        }
    }
}

#[test]
fn many_processes_may_open_a_new_file_at_once() {
    if let Some(path) = as_other_process() {
        meet_the_others();
        block_on(async { SqliteStore::open(&path).await.unwrap() });
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let path = directory.path().join(format!("{round}.db"));
        let mut others = [(); 6].map(|()| Other::start("many_processes_may_open_a_new_file_at_once", &path));
        others.iter_mut().for_each(Other::go);
        others.into_iter().for_each(|other| drop(other.finish()));
        let versions: Vec<i64> = block_on(async {
            let mut file = beside(&path).await;
            sqlx::query_scalar("SELECT version FROM idempotency_schema").fetch_all(&mut file).await.unwrap()
        });
        assert_eq!(versions, [1]);
    }
}

#[test]
fn a_killed_process_keeps_what_it_was_granted_and_no_lock() {
    if let Some(path) = as_other_process() {
        return block_on(async {
            let store = SqliteStore::open(&path).await.unwrap();
            claim(&store, "theirs").await;
            let mut unfinished = beside(&path).await;
            scene::run(&mut unfinished, "BEGIN IMMEDIATE; DELETE FROM idempotency_records").await;
            meet_the_others();
        });
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let mut other = Other::start("a_killed_process_keeps_what_it_was_granted_and_no_lock", &path);
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    block_on(async {
        let store = SqliteStore::open(&path).await.unwrap();
        let verdict = store.claim(&operation("theirs", b"body"), &bid()).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        claim(&store, "mine").await;
    });
}
