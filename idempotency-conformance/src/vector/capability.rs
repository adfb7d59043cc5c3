//! What a server can be declared to have beyond the plain fixture contract.

use std::{fmt, str::FromStr};

use serde::Deserialize;

/// Something a vector needs that not every server has. A vector whose needs are not declared is not applicable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum Capability {
    /// A completed record is forgotten after the retention that was told, 2 s at most.
    ShortTtl,
    /// A claim that nobody renews lapses after the lease that was told.
    ShortLease,
    /// Request bodies beyond 1 MiB are refused.
    RequestLimit,
    /// A request that is refused for its head alone is not told `100 (Continue)` first.
    EarlyRefusal,
    /// A response body beyond 1 MiB is replayed as empty, and marked so.
    OmitBody,
    /// Callers are told apart by the header that `--caller-header` names.
    Principal,
    /// `POST /panic` is there: its handler panics, or throws what nobody catches.
    Panic,
    /// `POST /gzip` is there: its handler answers with a compressed body.
    Gzip,
    /// Runs are counted apart for each value of the field `X-Count-As`, so that vectors may run beside each other.
    Counters,
    /// A run that failed with a 5xx, panicked or was killed leaves its operation in doubt, and the key is not free.
    Hold,
    /// `--restart` names a command that kills the server and starts it again on the same store.
    Restart,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::ShortTtl,
        Self::ShortLease,
        Self::RequestLimit,
        Self::EarlyRefusal,
        Self::OmitBody,
        Self::Principal,
        Self::Panic,
        Self::Gzip,
        Self::Counters,
        Self::Hold,
        Self::Restart,
    ];

    /// Its name in vectors and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ShortTtl => "short-ttl",
            Self::ShortLease => "short-lease",
            Self::RequestLimit => "request-limit",
            Self::EarlyRefusal => "early-refusal",
            Self::OmitBody => "omit-body",
            Self::Principal => "principal",
            Self::Panic => "panic",
            Self::Gzip => "gzip",
            Self::Counters => "counters",
            Self::Hold => "hold",
            Self::Restart => "restart",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Capability {
    type Err = UnknownCapability;

    fn from_str(text: &str) -> Result<Self, UnknownCapability> {
        let known = Self::ALL.into_iter().find(|capability| capability.as_str() == text);
        known.ok_or_else(|| UnknownCapability(text.to_owned()))
    }
}

impl TryFrom<String> for Capability {
    type Error = UnknownCapability;

    fn try_from(text: String) -> Result<Self, UnknownCapability> {
        text.parse()
    }
}

/// No capability has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no capability {0:?}")]
pub struct UnknownCapability(String);
