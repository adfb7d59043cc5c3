//! Small numbers for big words: a world writes a record in a few bytes, and the law reads it as it is.

use std::{sync::LazyLock, time::Duration};

use idempotency_core::{
    Address, Bid, Claim, Fence, Fingerprint, Holder, Keep, Media, OnLapse, Operation, Outcome, Part, Phase,
    Record, Settled, clock::Timestamp,
};

/// A point of time, or a span of it.
pub(crate) type Tick = u8;

pub(crate) const LEASE: Tick = 2;
pub(crate) const RETENTION: Tick = 1;
pub(crate) const KEEP: Keep = Keep { replay: ticks(1), then_reject: ticks(1) };
pub(crate) const HOLDERS: usize = 3;
/// The outcome a resolution brings; a holder's is its own number.
pub(crate) const RESOLVED: u8 = HOLDERS as u8;

/// How long a tick is, and so how many grants it has time for: no store makes more than one in a microsecond.
pub(crate) const TICK_MICROS: u8 = 2;

static OPERATIONS: LazyLock<[Operation; 2]> = LazyLock::new(|| {
    let asked = |payload: &[u8]| Fingerprint::builder().part(Part::Body, payload).build();
    [asked(b"a"), asked(b"b")].map(|asked| Operation::new(Address::from_bytes([7; 32]), asked))
});

pub(crate) fn operation(payload: u8) -> &'static Operation {
    &OPERATIONS[usize::from(payload)]
}

/// What a holder asks: the last of them something else than the others.
pub(crate) const fn payload(holder: u8) -> u8 {
    (holder as usize == HOLDERS - 1) as u8
}

pub(crate) const fn holder(number: u8) -> Holder {
    Holder::from_bytes([number; 16])
}

pub(crate) fn bid(number: u8, on_lapse: OnLapse) -> Bid {
    Bid { holder: holder(number), lease: ticks(LEASE), retention: ticks(RETENTION), on_lapse }
}

pub(crate) fn outcome(number: u8) -> Outcome {
    const TEXTS: [&str; HOLDERS + 1] = ["0", "1", "2", "3"];
    Outcome::whole(Media(number.into()), TEXTS[usize::from(number)])
}

pub(crate) const fn ticks(number: Tick) -> Duration {
    Duration::from_micros(number as u64 * TICK_MICROS as u64)
}

pub(crate) fn at(tick: Tick) -> Timestamp {
    Timestamp::from_micros(u64::from(tick) * u64::from(TICK_MICROS))
}

/// A [`Phase`] in small numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    InFlight { payload: u8, until: Tick },
    Completed { payload: u8, outcome: u8, until: Tick, gone: Tick },
    Released { until: Tick },
    InDoubt { payload: u8 },
}

/// A [`Record`] in small numbers. Attempts are left out: no verdict depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) standing: Standing,
    pub(crate) holder: u8,
    pub(crate) fence: u8,
    pub(crate) on_lapse: OnLapse,
}

impl Row {
    /// Whether nobody knows how the last run ended. Said once more here, so that the law is not its own judge.
    pub(crate) fn is_in_doubt(&self, now: Tick) -> bool {
        match self.standing {
            Standing::InDoubt { .. } => true,
            Standing::InFlight { until, .. } => self.on_lapse == OnLapse::Hold && until <= now,
            Standing::Completed { .. } | Standing::Released { .. } => false,
        }
    }
}

impl From<&Row> for Record {
    fn from(row: &Row) -> Self {
        let asked = |payload| *operation(payload).fingerprint();
        let phase = match row.standing {
            Standing::InFlight { payload, until } => {
                Phase::InFlight { fingerprint: asked(payload), until: at(until) }
            }
            Standing::Completed { payload, outcome: number, until, gone } => Phase::Completed {
                fingerprint: asked(payload),
                outcome: outcome(number),
                until: at(until),
                gone: at(gone),
            },
            Standing::Released { until } => Phase::Released { until: at(until) },
            Standing::InDoubt { payload } => Phase::InDoubt { fingerprint: asked(payload) },
        };
        Self {
            phase,
            holder: holder(row.holder),
            fence: Fence::from_u64(row.fence.into()),
            attempt: 1,
            on_lapse: row.on_lapse,
            retention: ticks(RETENTION),
        }
    }
}

impl From<&Record> for Row {
    fn from(record: &Record) -> Self {
        let payload = |asked: &Fingerprint| u8::from(asked != operation(0).fingerprint());
        let tick = |time: Timestamp| small(time.as_micros() / u64::from(TICK_MICROS));
        let standing = match &record.phase {
            Phase::InFlight { fingerprint, until } => {
                Standing::InFlight { payload: payload(fingerprint), until: tick(*until) }
            }
            Phase::Completed { fingerprint, outcome, until, gone } => Standing::Completed {
                payload: payload(fingerprint),
                outcome: small(outcome.media.0.into()),
                until: tick(*until),
                gone: tick(*gone),
            },
            Phase::Released { until } => Standing::Released { until: tick(*until) },
            Phase::InDoubt { fingerprint } => Standing::InDoubt { payload: payload(fingerprint) },
        };
        let fence = small(record.fence.as_u64());
        Self { standing, holder: record.holder.as_bytes()[0], fence, on_lapse: record.on_lapse }
    }
}

fn small(number: u64) -> u8 {
    u8::try_from(number).expect("bounds keep every number of a walk below 256")
}

/// The fence of a lease in small numbers.
pub(crate) fn small_fence(fence: Fence) -> u8 {
    small(fence.as_u64())
}

pub(crate) const fn verdict_name<G>(verdict: &Claim<G>) -> &'static str {
    match verdict {
        Claim::Granted(_) => "granted",
        Claim::Completed(_) => "completed",
        Claim::Expired => "expired",
        Claim::InFlight { .. } => "in flight",
        Claim::Mismatch(_) => "mismatch",
        Claim::InDoubt { .. } => "in doubt",
        Claim::Ended => "ended",
    }
}

pub(crate) const fn settled_name(settled: Settled) -> &'static str {
    match settled {
        Settled::Applied => "applied",
        Settled::Fenced(_) => "fenced",
    }
}
