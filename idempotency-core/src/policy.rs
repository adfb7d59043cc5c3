//! How long things last and how much of them there may be.

use std::time::Duration;

use crate::{Bid, Holder, Keep, OnLapse};

/// The terms of one run: they may differ from route to route.
///
/// Lease and retention are independent: the lease counts from the claim and is renewed while the run lives, the
/// retention counts from the completion. A live or in-doubt claim never expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long a claim is exclusive without a renewal. 30 s: long enough to survive a pause, short enough that a
    /// crashed process frees its keys soon.
    pub lease: Duration,
    /// How long a run's lease is renewed. 10 min: a hung handler must not hold a key for ever.
    pub max_run: Duration,
    /// How long an outcome answers replays. 24 h, what most providers promise.
    pub retention: Duration,
    /// How long after that its key is refused as expired before it is new again. Zero.
    pub then_reject: Duration,
    /// What becomes of a record whose lease lapses. [`OnLapse::TakeOver`].
    pub on_lapse: OnLapse,
    /// How long an ending is tried again when the store does not answer. 10 min.
    pub completion_retry: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            max_run: Duration::from_secs(10 * 60),
            retention: Duration::from_secs(24 * 60 * 60),
            then_reject: Duration::ZERO,
            on_lapse: OnLapse::TakeOver,
            completion_retry: Duration::from_secs(10 * 60),
        }
    }
}

impl Terms {
    /// The shortest lease: below it, a busy machine would lose leases it is using.
    pub const MIN_LEASE: Duration = Duration::from_millis(100);
    /// The longest duration of any kind: 100 years, so that no store's clock overflows.
    pub const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

    /// Checks that the terms make sense together.
    ///
    /// # Errors
    /// [`PolicyError`] names the rule they break.
    pub fn check(&self) -> Result<(), PolicyError> {
        if self.lease < Self::MIN_LEASE {
            return Err(PolicyError::LeaseTooShort);
        }
        if self.max_run < self.lease {
            return Err(PolicyError::MaxRunBelowLease);
        }
        if self.retention.is_zero() {
            return Err(PolicyError::NoRetention);
        }
        let all = [self.lease, self.max_run, self.retention, self.then_reject, self.completion_retry];
        if all.into_iter().any(|duration| duration > Self::MAX_DURATION) {
            return Err(PolicyError::TooLong);
        }
        Ok(())
    }

    pub(crate) const fn bid(&self, holder: Holder) -> Bid {
        Bid { holder, lease: self.lease, retention: self.retention, on_lapse: self.on_lapse }
    }

    pub(crate) const fn keep(&self) -> Keep {
        Keep { replay: self.retention, then_reject: self.then_reject }
    }
}

/// The bounds of one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// How long one store call may take. 2 s.
    pub store_timeout: Duration,
    /// How many runs may be live at once, detached ones and pending endings included. 10,000.
    pub max_live_runs: usize,
    /// How many copies may wait at once, all keys together. 1,024.
    pub max_waiters: usize,
    /// How many copies may wait for one key. 64.
    pub max_waiters_per_key: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            store_timeout: Duration::from_secs(2),
            max_live_runs: 10_000,
            max_waiters: 1_024,
            max_waiters_per_key: 64,
        }
    }
}

impl Bounds {
    /// Checks that the bounds let anything through.
    ///
    /// # Errors
    /// [`PolicyError`] names the rule they break.
    pub fn check(&self) -> Result<(), PolicyError> {
        if self.store_timeout.is_zero() || self.store_timeout > Terms::MAX_DURATION {
            return Err(PolicyError::StoreTimeout);
        }
        if self.max_live_runs == 0 {
            return Err(PolicyError::NoLiveRuns);
        }
        Ok(())
    }
}

/// The rule a policy breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// See [`Terms::MIN_LEASE`].
    #[error("the lease is shorter than 100 ms")]
    LeaseTooShort,
    /// A run must be allowed to last as long as its first lease.
    #[error("max_run is shorter than the lease")]
    MaxRunBelowLease,
    /// An outcome that answers nothing protects nothing.
    #[error("the retention is zero")]
    NoRetention,
    /// See [`Terms::MAX_DURATION`].
    #[error("a duration is longer than 100 years")]
    TooLong,
    /// A store call needs some time, and not for ever.
    #[error("the store timeout is zero or longer than 100 years")]
    StoreTimeout,
    /// With no live run allowed, every request is refused.
    #[error("max_live_runs is zero")]
    NoLiveRuns,
    /// A door's own rule.
    #[error("{0}")]
    Door(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_documented_ones() {
        let terms = Terms::default();
        assert_eq!(terms.check(), Ok(()));
        assert_eq!(terms.lease, Duration::from_secs(30));
        assert_eq!(terms.retention, Duration::from_secs(86_400));
        assert_eq!(terms.max_run, Duration::from_secs(600));
        assert_eq!(terms.on_lapse, OnLapse::TakeOver);
        assert_eq!(Bounds::default().check(), Ok(()));
    }

    #[test]
    fn senseless_terms_are_refused_by_rule() {
        let with = |change: fn(&mut Terms)| {
            let mut terms = Terms::default();
            change(&mut terms);
            terms.check()
        };
        assert_eq!(with(|terms| terms.lease = Duration::ZERO), Err(PolicyError::LeaseTooShort));
        assert_eq!(with(|terms| terms.max_run = Duration::from_secs(1)), Err(PolicyError::MaxRunBelowLease));
        assert_eq!(with(|terms| terms.retention = Duration::ZERO), Err(PolicyError::NoRetention));
        assert_eq!(with(|terms| terms.retention = Duration::MAX), Err(PolicyError::TooLong));
        assert_eq!(
            Bounds { store_timeout: Duration::ZERO, ..Bounds::default() }.check(),
            Err(PolicyError::StoreTimeout)
        );
        assert_eq!(Bounds { max_live_runs: 0, ..Bounds::default() }.check(), Err(PolicyError::NoLiveRuns));
    }
}
