//! The service's time, as its answers tell it.
//!
//! DynamoDB has no clock that an expression could read, but each of its answers bears a `Date` in whole seconds. An
//! answer dated `d` that was asked for at `sent` and had arrived at `received`, both on the host's clock, was written
//! somewhere in between: the service's clock is ahead of the host's by `d - received` at least and by `d + 1 s - sent`
//! at most. Each answer narrows what the ones before it left open, and the middle of that is the reading.
//!
//! **No reading is more than a second off.** The first answer leaves a second open, what its way took, and
//! [`APART`] on either side; one whose way took longer than [`SLOWEST`] teaches nothing. An answer that cannot be
//! true together with the earlier ones shows that the host's clock stood still, as a suspended machine's does: it counts
//! alone, and what was written by an earlier reading has to be written again ([`ServiceClock::has_kept`]).

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use idempotency_core::{
    clock::{Clock, Timestamp},
    columns::integer,
};

/// How far the clocks of the service's own hosts may be apart.
const APART: Duration = Duration::from_millis(100);

/// The slowest answer whose date is of use: (1 s + 2 * 100 ms + 800 ms) / 2 is the second that a reading may be off.
const SLOWEST: Duration = Duration::from_millis(800);

/// How long a reading can be made from an old answer. By then a clock may have drifted off by 60 ms.
const LASTING: Duration = Duration::from_secs(300);

/// How much faster or slower than another a clock may run: one part in this many.
const DRIFT: i64 = 5_000;

const SECOND: i64 = 1_000_000;

/// The service's clock, seen from this host.
pub(crate) struct ServiceClock {
    host: Arc<dyn Clock>,
    seen: Mutex<Option<Seen>>,
}

/// What the answers so far have shown.
#[derive(Debug, Clone, Copy)]
struct Seen {
    ahead: Ahead,
    /// When the last of them arrived, on the host's clock.
    at: Timestamp,
    jumps: u64,
}

/// By how many microseconds the service's clock is ahead of the host's.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    least: i64,
    most: i64,
}

/// A time read from a [`ServiceClock`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// The time.
    pub(crate) now: Timestamp,
    jumps: u64,
}

impl Reading {
    /// A time that no answer corrects.
    pub(crate) const fn exact(now: Timestamp) -> Self {
        Self { now, jumps: 0 }
    }
}

impl ServiceClock {
    /// A clock that counts on with `host` from what the answers show.
    pub(crate) fn new(host: Arc<dyn Clock>) -> Self {
        Self { host, seen: Mutex::new(None) }
    }

    /// The host's own time, for [`saw`](Self::saw).
    pub(crate) fn host_now(&self) -> Timestamp {
        self.host.now()
    }

    /// The time now; `None` before the first answer, and when the last one is too long ago.
    pub(crate) fn read(&self) -> Option<Reading> {
        let host = self.host.now();
        let seen = (*self.seen())?;
        (host.since(seen.at) <= LASTING).then(|| {
            let ahead = seen.ahead.least.midpoint(seen.ahead.most);
            let now = integer(host.as_micros()).saturating_add(ahead).max(0);
            Reading { now: Timestamp::from_micros(now.unsigned_abs()), jumps: seen.jumps }
        })
    }

    /// Whether no answer since `reading` has shown that it was wrong.
    pub(crate) fn has_kept(&self, reading: &Reading) -> bool {
        self.seen().is_none_or(|seen| seen.jumps == reading.jumps)
    }

    /// Learns from an answer dated `date`, in seconds since the Unix epoch, that was asked for at `sent` and has arrived
    /// at `received`.
    pub(crate) fn saw(&self, date: i64, sent: Timestamp, received: Timestamp) {
        if received.since(sent) > SLOWEST {
            return;
        }
        let shown = Ahead::shown(date, sent, received);
        let mut seen = self.seen();
        *seen = Some(match *seen {
            None => Seen { ahead: shown, at: received, jumps: 0 },
            Some(known) => match known.ahead.drifted(received.since(known.at)).and(shown) {
                Some(ahead) => Seen { ahead, at: known.at.max(received), jumps: known.jumps },
                None => Seen { ahead: shown, at: received, jumps: known.jumps + 1 },
            },
        });
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ServiceClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceClock").field("seen", &*self.seen()).finish_non_exhaustive()
    }
}

impl Ahead {
    fn shown(date: i64, sent: Timestamp, received: Timestamp) -> Self {
        let (date, apart) = (date.saturating_mul(SECOND), integer(APART.as_micros() as u64));
        Self {
            least: date.saturating_sub(integer(received.as_micros())).saturating_sub(apart),
            most: date.saturating_sub(integer(sent.as_micros())).saturating_add(SECOND + apart),
        }
    }

    fn drifted(self, since: Duration) -> Self {
        let drift = i64::try_from(since.as_micros()).unwrap_or(i64::MAX) / DRIFT;
        Self { least: self.least.saturating_sub(drift), most: self.most.saturating_add(drift) }
    }

    fn and(self, other: Self) -> Option<Self> {
        let both = Self { least: self.least.max(other.least), most: self.most.min(other.most) };
        (both.least <= both.most).then_some(both)
    }
}

#[cfg(test)]
mod tests;
