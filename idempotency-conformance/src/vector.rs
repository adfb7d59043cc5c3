//! What a vector says, as data: which requests are sent, in which order, and what has to be true of the answers.
//!
//! The files are in `vectors/`, their schema in `schema/vector-v2.json`. Nothing here knows how a request reaches a
//! server.

mod bytes;
mod capability;
mod expect;
mod number;
mod request;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use bytes::Bytes;
pub use capability::{Capability, UnknownCapability};
pub use expect::{BodyRule, BodyShape, Expect, FieldRule, FieldShape, StatusRule};
pub use number::Number;
pub use request::{Abort, Framing, Request};

/// One vector: a short story with a claim that a server keeps or breaks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// `tier/words-with-hyphens`, which is also the path of its file.
    pub id: String,
    /// How much of the world stands behind it.
    pub tier: Tier,
    /// Where its demand comes from.
    pub kind: Kind,
    /// The section of the draft it reads, `2.6`; every vector of the core has one.
    #[serde(default)]
    pub section: Option<String>,
    /// The claim, in one sentence.
    pub title: String,
    /// What goes wrong for somebody where the claim is broken.
    pub description: String,
    /// What a server must have declared for it to be run.
    #[serde(default)]
    pub requires: Vec<Capability>,
    /// What a server must not have declared: with it, another choice was made than the one this is about.
    #[serde(default)]
    pub unless: Vec<Capability>,
    /// The faults of the suite's own faulty server that it must find.
    #[serde(default)]
    pub catches: Vec<String>,
    /// How often the steps are run, each time with fresh keys. Once.
    #[serde(default = "once")]
    pub repeat: u32,
    /// Whether the count of runs is set to zero first, as foreign sets want it.
    #[serde(skip)]
    pub resets: bool,
    /// Requests that steps name.
    #[serde(default)]
    pub requests: BTreeMap<String, Request>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// How much of the world stands behind a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// The draft, its SHOULDs read as if they were MUSTs.
    Core,
    /// Choices the draft leaves open, as this suite recommends them.
    Profile,
    /// Races, broken uploads, clients that leave, servers that die: what the rest is worth when things go wrong.
    Attack,
}

/// Where the demand of a vector comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A sentence of the draft says so.
    Normative,
    /// It follows from a sentence of the draft, or from a standard it builds on.
    Implied,
    /// The draft leaves it open; this suite chooses.
    Profile,
}

/// One thing that happens, or one thing that has to be true by then.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A request, its answer, and what must be true of it.
    Send(Send),
    /// A request whose answer is awaited later.
    Start(Start),
    /// The answer of a request that was started.
    Await(Await),
    /// Requests that are released at one moment.
    Race(Race),
    /// How often a handler ran since the steps began.
    Runs(Runs),
    /// That answers have one and the same body.
    Agree(Agree),
    /// A pause, in milliseconds.
    WaitMs(Number),
    /// The target is killed and started again on the same store.
    Restart(Restart),
}

/// A request and what must be true of its answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// The name of the answer.
    #[serde(rename = "as")]
    pub name: String,
    /// The request.
    pub request: Asked,
    /// What must be true of the answer.
    #[serde(default)]
    pub expect: Expect,
}

/// A request in the background.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The name of the answer.
    #[serde(rename = "as")]
    pub name: String,
    /// The request.
    pub request: Asked,
    /// How many copies of it are sent, one right after the other. One.
    #[serde(default = "once")]
    pub parallel: u32,
}

/// An answer that was to come.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Await {
    /// The name that [`Start`] gave it. Of several copies all answers are judged, and later steps see the last that came.
    pub answer: String,
    /// What must be true of it.
    #[serde(default)]
    pub expect: Expect,
}

/// Many requests at one moment.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Race {
    /// The name of the answer that won, for later steps.
    #[serde(default, rename = "as")]
    pub name: Option<String>,
    /// Who races.
    pub entrants: Vec<Entrant>,
    /// What must be true of every answer.
    #[serde(default)]
    pub each: Expect,
    /// How many answers are 2xx at least.
    #[serde(default)]
    pub successes_at_least: u32,
    /// Whether all 2xx answers have one and the same body.
    #[serde(default)]
    pub successes_agree: bool,
}

/// Copies of one request in a race.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entrant {
    /// What each of them sends.
    pub request: Asked,
    /// How many there are.
    pub parallel: u32,
}

/// How often a handler ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runs {
    /// That often.
    Exactly(u64),
    /// No more often.
    AtMost(u64),
}

/// Answers that must not contradict each other.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agree {
    /// Their names. Those that are not 2xx say nothing.
    pub answers: Vec<String>,
}

/// An end and a beginning of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// It is killed at once, without any warning.
    Kill,
}

/// A request by its name, or as it stands.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Asked {
    /// One of [`Vector::requests`].
    Named(String),
    /// Written out.
    Written(Box<Request>),
}

impl Vector {
    /// What its steps ask for.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &Asked> {
        self.steps.iter().flat_map(|step| match step {
            Step::Send(send) => vec![&send.request],
            Step::Start(start) => vec![&start.request],
            Step::Race(race) => race.entrants.iter().map(|entrant| &entrant.request).collect(),
            Step::Await(_) | Step::Runs(_) | Step::Agree(_) | Step::WaitMs(_) | Step::Restart(_) => {
                Vec::new()
            }
        })
    }

    /// All of its requests, those that steps write out included.
    pub(crate) fn all_requests(&self) -> impl Iterator<Item = &Request> {
        let written = self.asked().filter_map(|asked| match asked {
            Asked::Named(_) => None,
            Asked::Written(request) => Some(&**request),
        });
        self.requests.values().chain(written)
    }
}

impl Tier {
    /// All tiers, from the draft outwards.
    pub const ALL: [Self; 3] = [Self::Core, Self::Profile, Self::Attack];

    /// Its name in files, on the command line and in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Profile => "profile",
            Self::Attack => "attack",
        }
    }
}

impl Kind {
    /// Its name in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normative => "normative",
            Self::Implied => "implied",
            Self::Profile => "profile",
        }
    }
}

fn once() -> u32 {
    1
}
