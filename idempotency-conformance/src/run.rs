//! Grading: every vector in turn, against one target.

mod judge;
mod render;
mod stage;
mod words;

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};

use crate::{
    report::{Graded, Outcome, Report},
    suite::Suite,
    vector::{Capability, Step, Tier, Vector},
    wire::Target,
};
use stage::{Stage, Verdict};

/// How many vectors run beside each other.
const BESIDE: usize = 8;

/// How a target is graded.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which tiers; none named means all.
    pub tiers: BTreeSet<Tier>,
    /// Which vectors, by id; none named means all.
    pub only: BTreeSet<String>,
    /// What the target was declared to have.
    pub capabilities: BTreeSet<Capability>,
    /// How long the target keeps a completed record. 2 s.
    pub ttl: Duration,
    /// How long its claims last without renewal. 1 s.
    pub lease: Duration,
    /// How long an answer is waited for. 10 s.
    pub timeout: Duration,
    /// The header that holds the key. `Idempotency-Key`.
    pub header: String,
    /// How keys are spelled.
    pub spelling: Spelling,
    /// The header that says who asks. `Authorization`, which is sent only where a vector is about callers; another one is
    /// sent with every request.
    pub caller_header: Option<String>,
    /// What makes keys differ from those of other gradings; a grading with the same suffix sends the same keys.
    pub suffix: String,
    /// The command that kills the target and starts it again.
    pub restart: Option<String>,
}

/// How a key is written into its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spelling {
    /// As a quoted string, which is what the draft says.
    #[default]
    Quoted,
    /// As it is, which is what many callers did before there was a draft.
    Bare,
}

/// How far a grading is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The vector that is graded next.
    pub id: &'a str,
    /// How many come before it.
    pub done: usize,
    /// How many there are.
    pub all: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tiers: BTreeSet::new(),
            only: BTreeSet::new(),
            capabilities: BTreeSet::new(),
            ttl: Duration::from_secs(2),
            lease: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            header: "Idempotency-Key".to_owned(),
            spelling: Spelling::default(),
            caller_header: None,
            suffix: uuid::Uuid::new_v4().simple().to_string(),
            restart: None,
        }
    }
}

impl Options {
    /// Whether a vector is among those to be graded.
    pub fn chooses(&self, vector: &Vector) -> bool {
        (self.tiers.is_empty() || self.tiers.contains(&vector.tier))
            && (self.only.is_empty() || self.only.contains(&vector.id))
    }

    /// Whether it neither disturbs others nor is disturbed by them, nor is counted with them.
    fn runs_beside_others(&self, vector: &Vector) -> bool {
        let is_loud = |step: &Step| matches!(step, Step::Race(_) | Step::Restart(_));
        // To tell of a panic can take a server a while, in which it does nothing else.
        let panics = vector.requires.contains(&Capability::Panic);
        // Bytes that are sent as they stand say nothing of how their run is counted.
        let is_raw = vector.all_requests().any(|request| request.raw.is_some());
        self.capabilities.contains(&Capability::Counters)
            && !vector.resets
            && !is_raw
            && !panics
            && !vector.steps.iter().any(is_loud)
    }

    /// Why the vector says nothing about a target with these capabilities.
    fn does_not_apply(&self, vector: &Vector) -> Option<String> {
        let names = |capabilities: Vec<&Capability>| {
            let names: Vec<_> = capabilities.into_iter().map(|capability| capability.as_str()).collect();
            names.join(", ")
        };
        let missing: Vec<_> =
            vector.requires.iter().filter(|needed| !self.capabilities.contains(needed)).collect();
        let other: Vec<_> = vector.unless.iter().filter(|other| self.capabilities.contains(other)).collect();
        match (missing.is_empty(), other.is_empty()) {
            (false, _) => Some(format!("it needs {}", names(missing))),
            (true, false) => Some(format!("it is about servers without {}", names(other))),
            (true, true) => None,
        }
    }
}

/// Grades the target with every vector of the suite that the options choose, one after the other.
///
/// A target that does not answer at all, before the first vector or any later one, is not asked again: what is left is
/// an error with that reason.
///
/// Vectors that do not load the server run beside each other where it counts their runs apart.
pub async fn grade(
    target: &Target,
    suite: &Suite,
    options: &Options,
    mut progress: impl FnMut(Progress<'_>),
) -> Report {
    let vectors: Vec<&Vector> = suite.vectors.iter().filter(|vector| options.chooses(vector)).collect();
    let (beside, alone): (Vec<_>, Vec<_>) =
        (0..vectors.len()).partition(|place| options.runs_beside_others(vectors[*place]));
    let grading = Grading { target, options, gone: Mutex::default() };
    grading.look_after_the_target().await;
    let mut results = Vec::with_capacity(vectors.len());
    for (places, at_once) in [(beside, BESIDE), (alone, 1)] {
        let mut done = results.len();
        let mut graded = stream::iter(places)
            .map(|place| {
                progress(Progress { id: &vectors[place].id, done, all: vectors.len() });
                done += 1;
                grading.grade(place, vectors[place])
            })
            .buffer_unordered(at_once);
        while let Some(one) = graded.next().await {
            results.push(one);
        }
    }
    results.sort_by_key(|(place, _)| *place);
    let results = results.into_iter().map(|(_, graded)| graded).collect();
    let gone = grading.gone().clone();
    Report::new(suite, target, options, gone, results)
}

/// A target that is being graded.
struct Grading<'a> {
    target: &'a Target,
    options: &'a Options,
    /// Why it is not asked any more.
    gone: Mutex<Option<String>>,
}

impl Grading<'_> {
    async fn grade(&self, place: usize, vector: &Vector) -> (usize, Graded) {
        let does_not_apply = self.options.does_not_apply(vector);
        let gone = self.gone().clone();
        let (outcome, reason) = if does_not_apply.is_some() {
            (Outcome::NotApplicable, does_not_apply)
        } else if gone.is_some() {
            (Outcome::Error, gone)
        } else {
            let verdict = run(self.target, vector, self.options).await;
            if verdict.lost_an_answer {
                self.look_after_the_target().await;
            }
            (verdict.outcome, verdict.reason)
        };
        (place, Graded::new(vector, outcome, reason))
    }

    fn gone(&self) -> MutexGuard<'_, Option<String>> {
        // Nobody panics with it in hand.
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_after_the_target(&self) {
        if let Err(lost) = stage::ask_for_life(self.target, self.options).await {
            *self.gone() = Some(format!("{}: {}", self.target, with_sources(&lost)));
        }
    }
}

/// All turns of a vector, up to the first that it does not pass.
async fn run(target: &Target, vector: &Vector, options: &Options) -> Verdict {
    for turn in 1..=vector.repeat.max(1) {
        let mut verdict = Stage::new(target, vector, options, turn).play().await;
        if verdict.outcome != Outcome::Pass {
            if vector.repeat > 1 {
                verdict.reason = verdict.reason.map(|reason| format!("turn {turn}: {reason}"));
            }
            return verdict;
        }
    }
    Verdict::pass()
}

/// An error and what it came from, in one line.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
