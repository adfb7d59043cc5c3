//! Who sees what workers do, and says when a guarantee is broken.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::AddAssign,
    sync::{Arc, Mutex, MutexGuard},
};

/// Sees everything that workers of one scope do.
#[derive(Clone)]
pub(crate) struct Witness(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    label: String,
    /// Attempts that run, by key.
    running: BTreeMap<String, u32>,
    /// How often each key's effect happened.
    happened: BTreeMap<String, u32>,
    /// Keys of which somebody was told that they are done.
    done: BTreeSet<String>,
    /// Keys in doubt: an attempt ended without anybody knowing how, and nobody has found out since.
    doubtful: BTreeSet<String>,
    /// The highest token handed out to each run.
    tokens: BTreeMap<String, u64>,
    /// What was committed, in order: by whom.
    commits: Vec<Option<(String, u64)>>,
    tally: Tally,
}

/// How often things happened.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) executed: u32,
    pub(crate) replayed: u32,
    pub(crate) lost: u32,
    pub(crate) refused: u32,
    pub(crate) crashed: u32,
    pub(crate) conversation_changed: u32,
    pub(crate) fenced: u32,
    pub(crate) reconciled: u32,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.executed += other.executed;
        self.replayed += other.replayed;
        self.lost += other.lost;
        self.refused += other.refused;
        self.crashed += other.crashed;
        self.conversation_changed += other.conversation_changed;
        self.fenced += other.fenced;
        self.reconciled += other.reconciled;
    }
}

impl Witness {
    pub(crate) fn new(label: String) -> Self {
        Self(Arc::new(Mutex::new(Seen { label, ..Seen::default() })))
    }

    fn see(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    pub(crate) fn tally(&self, count: impl FnOnce(&mut Tally)) {
        count(&mut self.see().tally);
    }

    pub(crate) fn told(&self) -> Tally {
        self.see().tally
    }

    /// An attempt begins.
    pub(crate) fn begins(&self, key: &str) {
        let mut seen = self.see();
        let label = seen.label.clone();
        let running = seen.running.entry(key.to_owned()).or_default();
        *running += 1;
        assert_eq!(*running, 1, "{label}: two attempts of {key} at once");
        assert!(!seen.done.contains(key), "{label}: {key} is attempted although it is done");
        assert!(
            !seen.doubtful.contains(key),
            "{label}: {key} is attempted although nobody knows whether it is done"
        );
    }

    /// The effect happens.
    pub(crate) fn happens(&self, key: &str) {
        let mut seen = self.see();
        let label = seen.label.clone();
        let times = seen.happened.entry(key.to_owned()).or_default();
        *times += 1;
        assert_eq!(*times, 1, "{label}: {key} happened twice");
    }

    /// An attempt is over, known or not.
    pub(crate) fn ends(&self, key: &str, known: Known) {
        let mut seen = self.see();
        *seen.running.get_mut(key).unwrap() -= 1;
        if known == Known::No {
            seen.doubtful.insert(key.to_owned());
        }
    }

    /// Somebody finds out whether the effect happened: what he finds is the truth.
    pub(crate) fn find_out(&self, key: &str) -> bool {
        let mut seen = self.see();
        seen.doubtful.remove(key);
        seen.tally.reconciled += 1;
        seen.happened.contains_key(key)
    }

    /// A worker is told that the effect is done.
    pub(crate) fn is_done(&self, key: &str) {
        let mut seen = self.see();
        assert_eq!(seen.happened.get(key), Some(&1), "{}: {key} is called done", seen.label);
        seen.done.insert(key.to_owned());
    }

    pub(crate) fn commits(&self, by: Option<(String, u64)>) {
        self.see().commits.push(by);
    }

    /// How many commits there are.
    pub(crate) fn length(&self) -> usize {
        self.see().commits.len()
    }

    /// A run is handed a token.
    pub(crate) fn token(&self, run: &str, token: u64) {
        let mut seen = self.see();
        let highest = seen.tokens.entry(run.to_owned()).or_default();
        *highest = (*highest).max(token);
    }

    /// Whether a later delivery of the run was handed a token.
    pub(crate) fn is_fenced(&self, run: &str, token: u64) -> bool {
        self.see().tokens.get(run).is_some_and(|highest| *highest > token)
    }

    /// A run wrote, having seen the first `from` commits, when it asked after `to` of them; and it was fenced or not.
    pub(crate) fn wrote(&self, run: &str, token: u64, from: usize, to: usize, was_fenced: bool) {
        let seen = self.see();
        assert!(
            !was_fenced,
            "{}: run {run} wrote with token {token} after a later delivery began",
            seen.label
        );
        let own = Some((run.to_owned(), token));
        let unseen = seen.commits[from.min(to)..to].iter().any(|by| *by != own);
        assert!(!unseen, "{}: run {run} wrote without having seen what others wrote", seen.label);
    }
}

/// Whether an attempt's end is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Yes,
    No,
}
