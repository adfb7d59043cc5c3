//! By which bounds a ledger works.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    Compat,
    ledger::{Number, Terms},
};

/// The bounds of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub(crate) pending: Duration,
    pub(crate) max_attempts: u32,
    pub(crate) retention: Duration,
    pub(crate) lease: Duration,
    pub(crate) max_result_bytes: usize,
    pub(crate) compat: Compat,
    pub(crate) portable: bool,
    pub(crate) provider_keys: ProviderKeys,
}

/// Which idempotency key a provider is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProviderKeys {
    /// The same for all attempts: a provider that knows it does nothing twice. The default.
    #[default]
    PerEffect,
    /// Another for each attempt: for a provider that remembers a failure under its key and would repeat it for ever. It
    /// recognises no copy of an earlier attempt.
    PerAttempt,
}

/// The longest time that is counted: 100 years.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// A bound that bounds nothing, or a time of more than 100 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an attempt's time, the number of attempts, and the retention are more than nothing, and an attempt's time and a lease at most 100 years"
)]
pub struct PolicyError;

impl Policy {
    /// An attempt has 15 minutes, a key 3 attempts; what is settled is remembered for 7 days; a run lives 60 s unless it is
    /// renewed. Those are the defaults of workers in other languages, with whom a scope may be shared.
    pub const fn new() -> Self {
        Self {
            pending: Duration::from_secs(900),
            max_attempts: 3,
            retention: Duration::from_secs(604_800),
            lease: Duration::from_secs(60),
            max_result_bytes: 256 * 1024,
            compat: Compat::Mended,
            portable: false,
            provider_keys: ProviderKeys::PerEffect,
        }
    }

    /// How long an attempt has before it is given up, at most 100 years: 15 minutes unless set.
    #[must_use]
    pub const fn pending(self, pending: Duration) -> Self {
        Self { pending, ..self }
    }

    /// How often a key may be attempted: 3 times unless set.
    #[must_use]
    pub const fn max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }

    /// How long what is settled is remembered: 7 days unless set. What is pending or in doubt is never forgotten.
    #[must_use]
    pub const fn retention(self, retention: Duration) -> Self {
        Self { retention, ..self }
    }

    /// How long a run lives unless it is renewed, at most 100 years: 60 s unless set.
    #[must_use]
    pub const fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// The longest result that is kept, in bytes of its JSON text without white space: 256 KiB unless set. An effect that
    /// came to more is done all the same and never done again; its result is answered to who did it, and to whoever asks
    /// later that it was not kept. Of a scope's last results a document holds several, so a store's own bound on a text is
    /// to be far above this one.
    #[must_use]
    pub const fn max_result_bytes(self, max_result_bytes: usize) -> Self {
        Self { max_result_bytes, ..self }
    }

    /// Whose law: the mended one unless set.
    #[must_use]
    pub const fn compat(self, compat: Compat) -> Self {
        Self { compat, ..self }
    }

    /// Refuses identities with numbers that other languages write in another way.
    #[must_use]
    pub const fn portable_identities_only(self) -> Self {
        Self { portable: true, ..self }
    }

    /// Which key a provider is given: the effect's unless set.
    #[must_use]
    pub const fn provider_keys(self, provider_keys: ProviderKeys) -> Self {
        Self { provider_keys, ..self }
    }

    /// The policy, if its bounds bound something.
    pub(crate) fn checked(self) -> Result<Self, PolicyError> {
        let nothing = |bound: Duration| bound.as_millis() == 0;
        let is_endless = self.pending > LONGEST || self.lease > LONGEST;
        if nothing(self.pending) || nothing(self.retention) || self.max_attempts == 0 || is_endless {
            return Err(PolicyError);
        }
        Ok(self)
    }

    pub(crate) fn terms(&self) -> Terms {
        Terms {
            pending_ttl: millis(self.pending),
            max_attempts: Number::from(u64::from(self.max_attempts)),
            retention: millis(self.retention),
            max_result: self.max_result_bytes,
            compat: self.compat,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

/// `length` after `since`, or 100 years where that is longer.
pub(crate) fn after(since: Instant, length: Duration) -> Instant {
    since + length.min(LONGEST)
}

pub(crate) fn millis(length: Duration) -> Number {
    Number::from(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}
