//! How often, and how long.

use std::{borrow::Cow, time::Duration};

use http::response::Parts;
use idempotency_core::profile::http::{RETRY_AFTER_CAP, problems};

use super::Decision;

/// The wait before a first retry that nobody asked to delay; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// What jitter adds to a wait at most, as a part of it.
const JITTER: f64 = 0.25;

/// How often a keyed request is tried again, and how long between.
///
/// A wait is what `Retry-After` asks for, or a back-off that starts at 100 ms and doubles, whichever is longer, plus up
/// to a quarter of it drawn at random.
#[derive(Debug, Clone)]
pub struct RetryTerms {
    max_retries: u32,
    max_wait: Duration,
    give_up_after: Duration,
    problem_base: Cow<'static, str>,
}

impl RetryTerms {
    /// How many tries follow the first one at most. 4; with 0 nothing is tried again.
    #[must_use]
    pub const fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = retries;
        self
    }

    /// The longest wait, jitter included. 30 s, which is as long as a guard asks for unless its policy says otherwise.
    /// Where `Retry-After` asks for more, the try comes early.
    #[must_use]
    pub const fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// How long after a request's start its last try may begin. 2 min. A wait that would end later is not begun: its
    /// answer, or its error, goes to the caller at once. A try that runs is not cut off; a timeout layer inside bounds
    /// each try, one outside bounds them all.
    #[must_use]
    pub const fn give_up_after(mut self, limit: Duration) -> Self {
        self.give_up_after = limit;
        self
    }

    /// What the `type` of the service's refusals starts with; their code follows. The page that services name by
    /// default.
    #[must_use]
    pub fn problem_base(mut self, base: impl Into<Cow<'static, str>>) -> Self {
        self.problem_base = base.into();
        self
    }

    /// What to do with an answer, for callers that retry on their own. `body` is the whole body; of an answer that is
    /// no problem document it is not looked at.
    pub fn decide(&self, head: &Parts, body: &[u8]) -> Decision {
        Decision::of(head, body, &self.problem_base)
    }

    /// The wait before the next try, if there is to be one: `retries` were made in the `elapsed` time since the
    /// request's start.
    pub(super) fn wait(&self, retries: u32, elapsed: Duration, asked: Option<Duration>) -> Option<Duration> {
        if retries >= self.max_retries {
            return None;
        }
        let back_off = FIRST_WAIT.saturating_mul(2u32.saturating_pow(retries));
        let wait = asked.unwrap_or_default().max(back_off).min(self.max_wait);
        let jitter = wait.mul_f64(JITTER * fastrand::f64());
        let wait = wait.saturating_add(jitter).min(self.max_wait);
        (elapsed.saturating_add(wait) <= self.give_up_after).then_some(wait)
    }
}

impl Default for RetryTerms {
    fn default() -> Self {
        Self {
            max_retries: 4,
            max_wait: RETRY_AFTER_CAP,
            give_up_after: Duration::from_secs(120),
            problem_base: Cow::Borrowed(problems::TYPE_BASE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_wait_is_never_shorter_than_asked_nor_than_the_back_off() {
        let terms = RetryTerms::default();
        for _ in 0..1000 {
            let asked = terms.wait(0, Duration::ZERO, Some(SECOND)).unwrap();
            assert!((SECOND..=SECOND * 5 / 4).contains(&asked), "{asked:?}");
            let backed_off = terms.wait(3, Duration::ZERO, Some(Duration::ZERO)).unwrap();
            assert!((FIRST_WAIT * 8..=FIRST_WAIT * 10).contains(&backed_off), "{backed_off:?}");
        }
    }

    #[test]
    fn waits_differ() {
        let terms = RetryTerms::default();
        let waits = (0..10).map(|_| terms.wait(0, Duration::ZERO, Some(SECOND)));
        assert!(waits.collect::<std::collections::HashSet<_>>().len() > 1);
    }

    #[test]
    fn every_bound_holds() {
        let terms = RetryTerms::default().max_retries(2).max_wait(SECOND * 5).give_up_after(SECOND * 8);
        let forever = Some(Duration::MAX);
        assert_eq!(terms.wait(1, Duration::ZERO, forever), Some(SECOND * 5));
        assert_eq!(terms.wait(2, Duration::ZERO, None), None);
        assert_eq!(terms.wait(1, SECOND * 3, forever), Some(SECOND * 5));
        assert_eq!(terms.wait(1, SECOND * 4, forever), None);
        let unbounded = RetryTerms::default().max_retries(u32::MAX).max_wait(Duration::MAX);
        let unbounded = unbounded.give_up_after(Duration::MAX);
        assert_eq!(unbounded.wait(1000, Duration::MAX, forever), Some(Duration::MAX));
    }
}
