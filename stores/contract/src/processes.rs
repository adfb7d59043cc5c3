//! Several processes on the same records.
//!
//! A test starts copies of its own executable, each to run the same test; an environment variable tells a copy that it is
//! the other process, and where the records are:
//!
//! ```no_run
//! use idempotency_store_contract::processes::{as_other, block_on, race, race_on};
//! # async fn open(place: &str) -> idempotency_store_memory::MemoryStore { Default::default() }
//!
//! // #[test]
//! fn one_claimer_of_fifty_is_granted_each_key() {
//!     if let Some(place) = as_other() {
//!         return block_on(async { race_on(open(&place).await, 20).await });
//!     }
//!     race("one_claimer_of_fifty_is_granted_each_key", "where my records are", 20);
//! }
//! # fn main() {}
//! ```

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use idempotency_core::{Address, Bid, Claim, Holder, Keep, OnLapse, Settled, Store};

use crate::scene::{LONG, asking, outcome};
pub use crate::suite::block_on;

const PLACE: &str = "IDEMPOTENCY_STORE_CONTRACT_PLACE";
const PROCESSES: usize = 4;
const CLAIMERS: usize = 50_usize.next_multiple_of(PROCESSES);

/// Where the records are that this process was started for, when it is the other process of a test.
pub fn as_other() -> Option<String> {
    env::var(PLACE).ok()
}

/// Tells the test that this process is ready, and waits until the test lets it go on.
pub fn meet_the_others() {
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).expect("the test holds the other end");
}

/// Another process, which runs the same test.
#[derive(Debug)]
pub struct Other {
    child: Child,
    said: BufReader<ChildStdout>,
    tell: ChildStdin,
}

impl Other {
    /// Starts a copy of this executable that runs `test` alone, about the records at `place`; returns when it
    /// [meets the others](meet_the_others).
    pub fn start(test: &str, place: &str) -> Self {
        let executable = env::current_exe().expect("a process knows its executable");
        let mut child = Command::new(executable)
            .args(["--exact", test, "--nocapture"])
            .env(PLACE, place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the executable can be started again");
        let (said, tell) = (child.stdout.take(), child.stdin.take());
        let (said, tell) = said.zip(tell).expect("both are piped");
        let mut other = Self { child, said: BufReader::new(said), tell };
        other.wait_for("ready");
        other
    }

    /// Waits until it says a line of this word.
    pub fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while line.trim() != word {
            line.clear();
            let read = self.said.read_line(&mut line).expect("what a test says is text");
            assert_ne!(read, 0, "the other process ended before {word:?}");
        }
    }

    /// Lets it go on.
    pub fn go(&mut self) {
        self.tell.write_all(b"go\n").expect("the other process waits");
    }

    /// What it said until it ended well.
    pub fn finish(mut self) -> String {
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("what a test says is text");
        assert!(self.child.wait().expect("it is a child of this process").success(), "{said}");
        said
    }

    /// Ends it as a power cut would, and returns when it is gone.
    pub fn kill(mut self) {
        self.child.kill().expect("it is a child of this process");
        self.child.wait().expect("it is a child of this process");
    }
}

/// Starts `count` processes of `test`, lets them go at once, and says what they said.
pub fn all_at_once(count: usize, test: &str, place: &str) -> String {
    let mut others: Vec<_> = (0..count).map(|_| Other::start(test, place)).collect();
    others.iter_mut().for_each(Other::go);
    others.into_iter().map(Other::finish).collect()
}

/// Races fifty claimers in four processes of `test` for each of `keys` new keys: one is granted, the others are refused, and
/// nobody hears an error. Each process calls [`race_on`].
///
/// # Panics
/// When the store granted a key twice or never, or failed.
pub fn race(test: &str, place: &str, keys: u8) {
    let said = all_at_once(PROCESSES, test, place);
    for key in 0..keys {
        let times = |word: &str| said.lines().filter(|line| *line == format!("{word} {key}")).count();
        assert_eq!(times("granted"), 1, "key {key}:\n{said}");
        assert_eq!(times("refused"), CLAIMERS - 1, "key {key}:\n{said}");
    }
}

/// One process's part in a [`race`]: its claimers try each key at once, and complete what they are granted.
///
/// # Panics
/// When the store fails, or refuses for another reason than that somebody runs or ran.
pub async fn race_on<S: Store + Clone>(store: S, keys: u8) {
    meet_the_others();
    for key in 0..keys {
        let claims: Vec<_> = (0..CLAIMERS / PROCESSES)
            .map(|_| {
                let (store, op) = (store.clone(), asking(Address::from_bytes([key; 32]), b"100 EUR to Bob"));
                let holder = Holder::draw();
                let bid = Bid { holder, lease: LONG, retention: LONG, on_lapse: OnLapse::TakeOver };
                tokio::spawn(async move { store.claim(&op, &bid).await })
            })
            .collect();
        for claim in claims {
            match claim.await.expect("a claimer does not panic").expect("no claimer hears an error") {
                Claim::Granted(lease) => {
                    println!("\ngranted {key}");
                    let keep = Keep { replay: LONG, then_reject: LONG };
                    let settled = store.complete(&lease, &outcome("paid"), keep).await;
                    assert_eq!(settled.expect("no completion hears an error"), Settled::Applied);
                }
                Claim::InFlight { .. } | Claim::Completed(_) => println!("\nrefused {key}"),
                other => panic!("key {key}: {other:?}"),
            }
        }
    }
}
