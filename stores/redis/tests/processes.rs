//! Several processes on one server. Each test starts copies of its own executable, which know by an environment variable
//! that they are another process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use idempotency_core::{Claim, Settled, Store};
use scene::{DAY, Records, bid, builder, keep, operation, outcome};

/// Which records another process is about: `URL PREFIX`.
const RECORDS: &str = "IDEMPOTENCY_REDIS_TEST_RECORDS";
const PROCESSES: usize = 4;
const CLAIMERS: usize = 50;
const KEYS: usize = 20;

struct Other {
    child: Child,
    said: BufReader<ChildStdout>,
    tell: ChildStdin,
}

impl Other {
    fn start(test: &str, records: &Records) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(RECORDS, format!("{} {}", records.url(), records.prefix()))
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

/// Tells the test that this process is ready, and waits until the others are too.
fn meet_the_others() {
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn one_of_fifty_claimers_in_four_processes_is_granted_each_key() {
    if let Ok(records) = env::var(RECORDS) {
        return block_on(race(&records));
    }
    let Some(records) = Records::on_the_server() else { return };
    let mut others = [(); PROCESSES]
        .map(|()| Other::start("one_of_fifty_claimers_in_four_processes_is_granted_each_key", &records));
    others.iter_mut().for_each(Other::go);
    let said: String = others.map(Other::finish).concat();
    for key in 0..KEYS {
        let times = |word: &str| said.lines().filter(|line| *line == format!("{word} k{key}")).count();
        assert_eq!(times("granted"), 1, "k{key}:\n{said}");
        assert_eq!(times("granted") + times("refused"), CLAIMERS.div_ceil(PROCESSES) * PROCESSES, "k{key}");
    }
}

/// Claims each key from many tasks at once, and completes what it is granted.
async fn race(records: &str) {
    let (url, prefix) = records.split_once(' ').unwrap();
    let store = builder().prefix(prefix).connect(url).await.unwrap();
    meet_the_others();
    for key in 0..KEYS {
        let claims: Vec<_> = (0..CLAIMERS.div_ceil(PROCESSES))
            .map(|_| {
                let (store, op) = (store.clone(), operation(&format!("k{key}"), b"body"));
                tokio::spawn(async move { store.claim(&op, &bid()).await })
            })
            .collect();
        for claim in claims {
            match claim.await.unwrap().unwrap() {
                Claim::Granted(lease) => {
                    println!("\ngranted k{key}");
                    let settled = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
                    assert_eq!(settled, Settled::Applied);
                }
                Claim::InFlight { .. } | Claim::Completed(_) => println!("\nrefused k{key}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_killed_process_keeps_what_it_was_granted() {
    if let Ok(records) = env::var(RECORDS) {
        return block_on(async {
            let (url, prefix) = records.split_once(' ').unwrap();
            let store = builder().prefix(prefix).connect(url).await.unwrap();
            scene::claim(&store, "theirs").await;
            meet_the_others();
        });
    }
    let Some(records) = Records::on_the_server() else { return };
    let mut other = Other::start("a_killed_process_keeps_what_it_was_granted", &records);
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    block_on(async {
        let store = records.store().await;
        let verdict = store.claim(&operation("theirs", b"body"), &bid()).await.unwrap();
        assert!(matches!(verdict, Claim::InFlight { .. }), "{verdict:?}");
        scene::claim(&store, "mine").await;
    });
}
