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
use scene::{Place, bid, claim, operation};

const TABLE: &str = "IDEMPOTENCY_DYNAMODB_TEST_TABLE";
const PROCESSES: usize = 4;
const KEYS: usize = 3;
const CLAIMS: usize = 50;

/// The table this process was started for, when it is the other process of a test.
fn as_other_process() -> Option<Place> {
    let table = env::var(TABLE).ok()?;
    Place::find().map(|place| Place::at(&place.url, &table))
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
    fn start(test: &str, place: &Place) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(TABLE, &place.table)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, tell) = (BufReader::new(child.stdout.take().unwrap()), child.stdin.take().unwrap());
        let mut other = Self { child, said, tell };
        let mut line = String::new();
        while line.trim() != "ready" {
            line.clear();
            assert_ne!(
                other.said.read_line(&mut line).unwrap(),
                0,
                "the other process ended before it began"
            );
        }
        other
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
fn one_of_fifty_claims_in_each_of_four_processes_is_granted() {
    if let Some(place) = as_other_process() {
        return block_on(race(&place));
    }
    let Some(place) = Place::find() else { return };
    block_on(place.open());
    let mut others = [(); PROCESSES]
        .map(|()| Other::start("one_of_fifty_claims_in_each_of_four_processes_is_granted", &place));
    others.iter_mut().for_each(Other::go);
    let said: String = others.map(Other::finish).concat();
    let count = |word: &str| said.lines().filter(|line| *line == word).count();
    for key in 0..KEYS {
        assert_eq!(count(&format!("granted k{key}")), 1, "{said}");
        assert_eq!(count(&format!("refused k{key}")), PROCESSES * CLAIMS - 1, "{said}");
    }
}

async fn race(place: &Place) {
    let store = place.builder().open().await.unwrap();
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
                Claim::InFlight { .. } => println!("\nrefused k{key}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn many_processes_may_ensure_a_table_at_once() {
    if let Some(place) = as_other_process() {
        meet_the_others();
        block_on(place.open());
        return;
    }
    let Some(place) = Place::find() else { return };
    let mut others =
        [(); PROCESSES].map(|()| Other::start("many_processes_may_ensure_a_table_at_once", &place));
    others.iter_mut().for_each(Other::go);
    others.into_iter().for_each(|other| drop(other.finish()));
    block_on(async { claim(&place.open().await, "k").await });
}

#[test]
fn a_killed_process_keeps_what_it_was_granted() {
    if let Some(place) = as_other_process() {
        block_on(async { claim(&place.open().await, "theirs").await });
        return meet_the_others();
    }
    let Some(place) = Place::find() else { return };
    let mut other = Other::start("a_killed_process_keeps_what_it_was_granted", &place);
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    block_on(async {
        let store = place.open().await;
        let verdict = store.claim(&operation("theirs", b"body"), &bid()).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        claim(&store, "mine").await;
    });
}
