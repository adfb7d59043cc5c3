//! What the command line asks for.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum, builder::PossibleValuesParser};
use idempotency_conformance::{Capability, Options, Spelling, Suite, SuiteError, Target, TargetError, Tier};

/// The longest retention for which vectors that wait for its end are worth waiting for.
const LONGEST_SHORT_TTL_MS: u64 = 2_000;

/// Grades a server with the conformance suite of the Idempotency-Key draft.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where the server is: `http://HOST:PORT`, with the path its pages begin with if they do.
    #[arg(long, required_unless_present = "list")]
    url: Option<String>,
    /// Grade this tier only; may be repeated.
    #[arg(long, value_enum)]
    tier: Vec<TierName>,
    /// Grade the vector with this id only; may be repeated.
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// What the server has beyond the plain fixture contract; may be repeated.
    #[arg(long, value_parser = capabilities())]
    capability: Vec<String>,
    /// How long the server keeps a completed record, in milliseconds.
    #[arg(long, default_value_t = LONGEST_SHORT_TTL_MS, value_parser = clap::value_parser!(u64).range(1..))]
    ttl_ms: u64,
    /// How long a claim of the server's lasts without renewal, in milliseconds.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    lease_ms: u64,
    /// How long an answer is waited for, in milliseconds.
    #[arg(long = "timeout", value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: u64,
    /// The header that holds the key.
    #[arg(long, value_name = "NAME", default_value = "Idempotency-Key")]
    header: String,
    /// How keys are spelled: as the draft says, in quotes, or bare as many callers did before it.
    #[arg(long, value_enum, default_value_t)]
    keys: Keys,
    /// The header that tells the server who asks. Without it `Authorization`, where a vector is about callers.
    #[arg(long, value_name = "NAME")]
    caller_header: Option<String>,
    /// What makes the keys of this run its own; random unless it is given.
    #[arg(long, value_name = "TEXT")]
    key_suffix: Option<String>,
    /// The command that kills the server and starts it again on the same store and port.
    #[arg(long, value_name = "COMMAND")]
    restart: Option<String>,
    /// A folder of other vectors, in this suite's schema or in anyonce's.
    #[arg(long, value_name = "DIR")]
    vectors: Option<PathBuf>,
    /// The form of the report.
    #[arg(long, value_enum, default_value_t)]
    report: Form,
    /// The file the report is written to, instead of the standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Say which vectors there are, and grade nothing.
    #[arg(long)]
    list: bool,
}

/// The forms of a report.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Form {
    /// For programs.
    Json,
    /// For people.
    #[default]
    Markdown,
    /// For CI.
    Junit,
}

/// How keys are spelled.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Keys {
    #[default]
    Quoted,
    Bare,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TierName {
    Core,
    Profile,
    Attack,
}

/// A grading that can begin.
#[derive(Debug)]
pub(crate) struct Grading {
    pub(crate) target: Target,
    pub(crate) suite: Suite,
    pub(crate) options: Options,
    pub(crate) form: Form,
    pub(crate) out: Option<PathBuf>,
}

/// Why a command line makes no sense.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Usage {
    #[error("--url {text}")]
    Url { text: String, source: TargetError },
    #[error("--vectors")]
    Vectors(#[from] SuiteError),
    #[error("--only {0}: there is no such vector; --list names them")]
    NoVector(String),
    #[error("no vector is of these tiers and ids")]
    Nothing,
    #[error("--ttl-ms: the capability short-ttl means {LONGEST_SHORT_TTL_MS} ms at most")]
    LongTtl,
    #[error("--capability principal needs --caller-header")]
    NoCallerHeader,
    #[error("--capability restart needs --restart")]
    NoRestart,
    #[error("{0:?} is not the name of a header")]
    NoHeader(String),
    #[error("--key-suffix: only letters, digits and hyphens, at most 40")]
    Suffix,
    #[error("--out {}", path.display())]
    Out { path: PathBuf, source: io::Error },
    #[error("nothing can be run here")]
    Runtime(#[source] io::Error),
}

fn capabilities() -> PossibleValuesParser {
    PossibleValuesParser::new(Capability::ALL.map(Capability::as_str))
}

impl Arguments {
    pub(crate) fn is_list(&self) -> bool {
        self.list
    }

    pub(crate) fn vectors(&self) -> Option<&Path> {
        self.vectors.as_deref()
    }

    pub(crate) fn grading(self) -> Result<Grading, Usage> {
        let suite = self.suite()?;
        let text = self.url.unwrap_or_default();
        let target = text.parse().map_err(|source| Usage::Url { text, source })?;
        let mut capabilities: BTreeSet<Capability> =
            self.capability.iter().filter_map(|name| name.parse().ok()).collect();
        if self.restart.is_some() {
            capabilities.insert(Capability::Restart);
        }
        if capabilities.contains(&Capability::Restart) && self.restart.is_none() {
            return Err(Usage::NoRestart);
        }
        if capabilities.contains(&Capability::Principal) && self.caller_header.is_none() {
            return Err(Usage::NoCallerHeader);
        }
        if capabilities.contains(&Capability::ShortTtl) && self.ttl_ms > LONGEST_SHORT_TTL_MS {
            return Err(Usage::LongTtl);
        }
        for name in std::iter::once(&self.header).chain(&self.caller_header) {
            if !is_header_name(name) {
                return Err(Usage::NoHeader(name.clone()));
            }
        }
        if let Some(unknown) =
            self.only.iter().find(|id| suite.vectors.iter().all(|vector| vector.id != **id))
        {
            return Err(Usage::NoVector(unknown.clone()));
        }
        let mut options = Options {
            tiers: self.tier.into_iter().map(Tier::from).collect(),
            only: self.only.into_iter().collect(),
            capabilities,
            ttl: Duration::from_millis(self.ttl_ms),
            lease: Duration::from_millis(self.lease_ms),
            timeout: Duration::from_millis(self.timeout_ms),
            header: self.header,
            spelling: self.keys.into(),
            caller_header: self.caller_header,
            restart: self.restart,
            ..Options::default()
        };
        if let Some(suffix) = self.key_suffix {
            let is_plain = suffix.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if !is_plain || suffix.len() > 40 {
                return Err(Usage::Suffix);
            }
            options.suffix = suffix;
        }
        if !suite.vectors.iter().any(|vector| options.chooses(vector)) {
            return Err(Usage::Nothing);
        }
        Ok(Grading { target, suite, options, form: self.report, out: self.out })
    }
}

/// A token of RFC 9110.
fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

impl From<TierName> for Tier {
    fn from(name: TierName) -> Self {
        match name {
            TierName::Core => Self::Core,
            TierName::Profile => Self::Profile,
            TierName::Attack => Self::Attack,
        }
    }
}

impl From<Keys> for Spelling {
    fn from(keys: Keys) -> Self {
        match keys {
            Keys::Quoted => Self::Quoted,
            Keys::Bare => Self::Bare,
        }
    }
}
