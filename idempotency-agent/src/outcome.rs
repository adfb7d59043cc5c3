//! What asking for an effect comes to.

use crate::{
    EffectError,
    ledger::{Busy, Conflicts, Effect},
};

/// What became of an effect that was asked for.
#[derive(Debug)]
#[must_use]
pub enum Outcome<T> {
    /// It happened now.
    Executed {
        /// What it came to.
        value: T,
        /// Whether its attempt had been given up meanwhile, or its ending could not be recorded: somebody may have been told
        /// something else.
        late: bool,
    },
    /// It had happened before, and was not done again.
    Replayed(T),
    /// Another attempt runs, or this one failed and that could not be recorded. Ask again later.
    InFlight(Effect),
    /// Nobody knows whether it happened. It is not done again until somebody finds out.
    Ambiguous {
        /// What stands in the ledger.
        entry: Effect,
        /// What the attempt said, where it was one of this call.
        error: Option<EffectError>,
    },
    /// It did not happen.
    Failed {
        /// What the attempt said.
        error: EffectError,
        /// Whether asking again attempts it again.
        retryable: bool,
    },
    /// It may not be attempted.
    Refused(Refusal),
}

/// Why an effect may not be attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A newer run or a later delivery has taken the run's place.
    Superseded,
    /// The run was withdrawn.
    RunCancelled,
    /// The run ended.
    RunEnded,
    /// There is no such run any more.
    UnknownRun,
    /// Another run lives in the scope.
    Busy(Busy),
    /// Others wrote since the run looked: read the conversation again, decide again, and ask again if it is still needed.
    ConversationChanged(Conflicts),
    /// It failed as often as it may.
    Exhausted(Effect),
    /// Its key is taken by an effect of another intent.
    KeyTaken(Effect),
    /// It was asked for with another payload, and happened, or may have.
    PayloadChanged(Effect),
}

impl Refusal {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::RunCancelled => "run_cancelled",
            Self::RunEnded => "run_ended",
            Self::UnknownRun => "unknown_run",
            Self::Busy(_) => "busy",
            Self::ConversationChanged(_) => "conversation_changed",
            Self::Exhausted(_) => "exhausted",
            Self::KeyTaken(_) => "key_taken",
            Self::PayloadChanged(_) => "payload_changed",
        }
    }
}

impl<T> Outcome<T> {
    /// Whether it happened, now or before.
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Executed { .. } | Self::Replayed(_))
    }

    /// What it came to, now or before.
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Executed { value, .. } | Self::Replayed(value) => Some(value),
            Self::InFlight(_) | Self::Ambiguous { .. } | Self::Failed { .. } | Self::Refused(_) => None,
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Executed { .. } => "executed",
            Self::Replayed(_) => "replayed",
            Self::InFlight(_) => "in_flight",
            Self::Ambiguous { .. } => "ambiguous",
            Self::Failed { .. } => "failed",
            Self::Refused(_) => "refused",
        }
    }
}
