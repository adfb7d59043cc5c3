//! The records as the machine has them, and the comparison with a store's.

use std::collections::BTreeMap;

use idempotency_core::{
    Address, Bid, Claim, Inspect, Phase, Record, Select, Store, Vacant,
    clock::{Clock, SystemClock, Timestamp, as_micros},
    machine::{self, Step},
};

use super::input::{Answer, Input};
use crate::{
    Expiry, Time, Violation,
    scene::{LONG, Scene, operation},
    violation::{demand, demand_eq},
};

/// Between which two times a store read its clock for one call: one and the same where the clock stands still.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    earliest: Timestamp,
    latest: Timestamp,
}

/// Reads the store's time from outside.
#[derive(Debug)]
pub(super) struct Watch {
    time: Time,
    /// How far the store's clock is ahead of the host's, in microseconds: at least and at most.
    ahead: (i64, i64),
    /// By how many microseconds it may be set meanwhile.
    steps: i64,
}

impl Watch {
    /// Sets the watch by the time a claim shows, which is the first record of the model.
    pub(super) async fn set<S: Store + Inspect>(scene: &Scene<S>) -> Result<(Self, Model), Violation> {
        let op = operation();
        let before = host_micros();
        scene.granted(&op, &Bid { lease: LONG, ..scene.bid() }).await?;
        let after = host_micros();
        let record = scene.record(&op).await?;
        let Phase::InFlight { until, .. } = record.phase else {
            return Err(Violation::new("a claimed record is in flight", &record));
        };
        let shown = signed(until.as_micros()) - signed(as_micros(LONG));
        let steps = signed(as_micros(scene.clock_steps));
        let watch = Self { time: scene.time.clone(), ahead: (shown - after, shown - before), steps };
        Ok((watch, Model { records: BTreeMap::from([(*op.address(), record)]) }))
    }

    /// The window of a call that began at `began` on the host's clock and has just ended.
    pub(super) fn window(&self, began: i64) -> Window {
        let at = |micros: i64| Timestamp::from_micros(micros.max(0) as u64);
        match &self.time {
            Time::Manual(clock) => Window { earliest: clock.now(), latest: clock.now() },
            Time::Real => Window {
                earliest: at(began + self.ahead.0 - self.steps),
                latest: at(host_micros() + self.ahead.1 + self.steps),
            },
        }
    }
}

pub(super) fn host_micros() -> i64 {
    signed(SystemClock.now().as_micros())
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// Every record a history made.
#[derive(Debug)]
pub(super) struct Model {
    records: BTreeMap<Address, Record>,
}

impl Model {
    pub(super) fn record(&self, address: &Address) -> Option<&Record> {
        self.records.get(address)
    }

    /// Goes on from the record that is found after an input, if the machine agrees with it and with the answer at some
    /// time within the window. If it does not, what the machine says.
    pub(super) fn follow(
        &mut self,
        input: &Input,
        answer: &Answer,
        found: Option<&Record>,
        window: Window,
        expiry: Expiry,
    ) -> Result<(), Box<Step<Answer>>> {
        let address = *input.address();
        let known = self.records.remove(&address);
        let over = |record: Option<&Record>| {
            expiry == Expiry::Native
                && record.is_some_and(|record| machine::is_removable(record, window.latest))
        };
        let agrees = |start: Option<&Record>| {
            times(input, answer, start, found, window).into_iter().any(|now| {
                let Step { write, verdict } = input.decide(start, now);
                let after = write.as_ref().or(start);
                verdict == *answer && (after == found || found.is_none() && over(after))
            })
        };
        let known = known.as_ref();
        if !(agrees(known) || over(known) && agrees(None)) {
            return Err(Box::new(input.decide(known, window.earliest)));
        }
        if let Some(found) = found {
            self.records.insert(address, found.clone());
        }
        Ok(())
    }

    /// Compares a whole store after a purge that says it removed `removed` records.
    pub(super) async fn purged<S: Store + Inspect>(
        &mut self,
        scene: &Scene<S>,
        removed: u32,
        window: Window,
    ) -> Result<(), Violation> {
        let mut standing = list(scene, Select::All).await?;
        let known = std::mem::take(&mut self.records);
        let mut missing = 0;
        for (address, record) in known {
            match standing.remove(&address) {
                Some(found) if found == record => drop(self.records.insert(address, found)),
                None if machine::is_removable(&record, window.latest) => missing += 1,
                found => {
                    let seen = (record, found);
                    return Err(Violation::new(
                        "a purge changes nothing it may not remove (before, after)",
                        &seen,
                    ));
                }
            }
        }
        demand!(standing, standing if standing.is_empty(), "there is no record that nobody claimed");
        if window.earliest == window.latest {
            let doubtful = |(_, record): &(&Address, &Record)| machine::is_in_doubt(record, window.latest);
            let wanted: Vec<_> = self.records.iter().filter(doubtful).map(|(address, _)| *address).collect();
            let listed: Vec<_> = list(scene, Select::InDoubt).await?.into_keys().collect();
            demand_eq!(listed, wanted, "what is in doubt is listed, and nothing else");
        }
        match scene.expiry {
            Expiry::Purged => demand!(
                (removed, missing),
                (removed, missing) if removed == missing,
                "a purge counts what it removes (counted, missing)"
            ),
            Expiry::Native => demand!(removed, 0, "a backend that expires records by itself counts none"),
        }
        Ok(())
    }
}

/// The times within the window at which the store may have decided. Where time cannot be stopped, the answer or the
/// record that was written shows the time exactly; where neither does, any time of the window decides alike, but for the
/// boundaries within it. A busy machine's window may hold more than one.
fn times(
    input: &Input,
    answer: &Answer,
    start: Option<&Record>,
    found: Option<&Record>,
    window: Window,
) -> Vec<Timestamp> {
    let mut times = vec![window.earliest];
    if window.earliest == window.latest {
        return times;
    }
    times.push(window.latest);
    times.extend(start.into_iter().flat_map(boundaries));
    let before =
        |until: Timestamp, span| Timestamp::from_micros(until.as_micros().saturating_sub(as_micros(span)));
    if let Some(Record { phase: Phase::InFlight { until, .. }, .. }) = start
        && let Answer::Claimed(Claim::InFlight { left }) | Answer::Looked(Claim::<Vacant>::InFlight { left }) =
            answer
    {
        times.push(before(*until, *left));
    }
    if let Some(record) = found {
        let until = match record.phase {
            Phase::InFlight { until, .. } | Phase::Completed { until, .. } | Phase::Released { until } => {
                Some(until)
            }
            Phase::InDoubt { .. } => None,
        };
        for term in input.terms().into_iter().chain([record.retention]) {
            times.extend(until.map(|until| before(until, term)));
        }
    }
    times.retain(|now| (window.earliest..=window.latest).contains(now));
    times
}

/// The times from which a record is something else to those who ask.
fn boundaries(record: &Record) -> Vec<Timestamp> {
    match record.phase {
        Phase::InFlight { until, .. } => vec![until, until.plus(record.retention)],
        Phase::Completed { until, gone, .. } => vec![until, gone],
        Phase::Released { until } => vec![until],
        Phase::InDoubt { .. } => Vec::new(),
    }
}

async fn list<S: Store + Inspect>(
    scene: &Scene<S>,
    select: Select,
) -> Result<BTreeMap<Address, Record>, Violation> {
    let mut all = BTreeMap::new();
    let mut after = None;
    loop {
        let page = scene.store.list(select, after.as_ref(), 500).await?;
        let Some((last, _)) = page.last() else { return Ok(all) };
        demand!((after, *last), (after, last) if *after < Some(*last), "a page begins after the address given");
        after = Some(*last);
        all.extend(page);
    }
}
