//! Time as stores read it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// A point in a store's time: microseconds since the Unix epoch. Arithmetic saturates at [`NEVER`](Self::NEVER).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Later than any clock will say. Fits a signed 64-bit column.
    pub const NEVER: Self = Self(i64::MAX as u64);

    /// The time `micros` microseconds after the Unix epoch, at most [`NEVER`](Self::NEVER).
    pub const fn from_micros(micros: u64) -> Self {
        if micros < Self::NEVER.0 { Self(micros) } else { Self::NEVER }
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This time and `duration` more.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self::from_micros(self.0.saturating_add(as_micros(duration)))
    }

    /// How long after `earlier` this is; zero when it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// Whether this time has come when the clock says `now`.
    pub fn is_past(self, now: Self) -> bool {
        self <= now
    }
}

/// `duration` in whole microseconds, rounded up, so that a lease is never shorter than asked and never zero for a
/// positive duration; at most what a signed 64-bit column holds.
pub fn as_micros(duration: Duration) -> u64 {
    let whole = duration.as_secs().saturating_mul(1_000_000);
    whole.saturating_add(u64::from(duration.subsec_nanos().div_ceil(1_000))).min(Timestamp::NEVER.0)
}

/// Where a store without a clock of its own reads the time.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The host's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(as_micros(since_epoch))
    }
}

/// The host's clock when it was made, counted on by a clock that is never set: for a store that lives no longer than
/// its process. A host clock that is set forward would let leases lapse that are being used.
#[derive(Debug, Clone, Copy)]
pub struct SteadyClock {
    begun: Timestamp,
    since: Instant,
}

impl SteadyClock {
    /// A clock that begins with the host's time now.
    pub fn new() -> Self {
        Self { begun: SystemClock.now(), since: Instant::now() }
    }
}

impl Default for SteadyClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.begun.plus(self.since.elapsed())
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that says `start`.
    pub const fn at(start: Timestamp) -> Self {
        Self(AtomicU64::new(start.as_micros()))
    }

    /// Moves the clock forward by `step`.
    pub fn advance(&self, step: Duration) {
        self.0.fetch_add(as_micros(step), Ordering::SeqCst);
    }

    /// Sets the clock, back or forth.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_micros(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_durations_saturate_and_tiny_ones_do_not_vanish() {
        let now = SystemClock.now();
        assert_eq!(now.plus(Duration::MAX), Timestamp::NEVER);
        assert_eq!(Timestamp::NEVER.plus(Duration::from_secs(1)), Timestamp::NEVER);
        assert_eq!(as_micros(Duration::from_nanos(1)), 1);
        assert_eq!(as_micros(Duration::new(2, 999_999_001)), 3_000_000);
        assert_eq!(as_micros(Duration::ZERO), 0);
    }

    #[test]
    fn a_steady_clock_starts_with_the_hosts_and_never_goes_back() {
        let before = SystemClock.now();
        let clock = SteadyClock::new();
        let (first, second) = (clock.now(), clock.now());
        assert!(before <= first && first <= second);
    }

    #[test]
    fn a_time_is_past_when_the_clock_says_it() {
        let at = Timestamp::from_micros(10);
        assert!(!at.is_past(Timestamp::from_micros(9)));
        assert!(at.is_past(at));
        assert_eq!(at.since(Timestamp::from_micros(4)), Duration::from_micros(6));
        assert_eq!(Timestamp::from_micros(4).since(at), Duration::ZERO);
    }
}
