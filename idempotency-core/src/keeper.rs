//! One task an engine renews the leases of all its runs.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::{sync::Notify, task::JoinHandle, time::Instant};

use crate::{Lease, Settled, Store, StoreError, calls::Calls, event::Event};

/// Tells a run that its lease is lost, or may be: another holder may run by now.
#[derive(Debug, Clone)]
pub struct LeaseLost(Arc<Signal>);

impl LeaseLost {
    /// Whether the lease is lost. Once lost it stays so.
    pub fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Acquire)
    }

    /// Waits until the lease is lost. A run that can stop half way should, and one that cannot may go on: its
    /// completion counts unless another holder took its place.
    pub async fn wait(&self) {
        loop {
            let changed = self.0.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable(); // before the flag is read, so that no signal is missed
            if self.is_lost() {
                return;
            }
            changed.await;
        }
    }
}

#[derive(Debug, Default)]
struct Signal {
    lost: AtomicBool,
    changed: Notify,
}

impl Signal {
    /// Whether this call was the first to say so.
    fn raise(&self) -> bool {
        let first = !self.lost.swap(true, Ordering::AcqRel);
        self.changed.notify_waiters();
        first
    }
}

/// The leases of an engine's live runs.
#[derive(Debug)]
pub(crate) struct Keeper<S: Store> {
    calls: Arc<Calls<S>>,
    table: Mutex<Table>,
    earlier: Notify,
}

#[derive(Debug, Default)]
struct Table {
    runs: HashMap<u64, Run>,
    last_id: u64,
    wakes_at: Option<Instant>,
    task: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Run {
    lease: Lease,
    term: Duration,
    /// When the next renewal is sent.
    due: Instant,
    /// When the lease may have lapsed: the instant before the last applied bid or renewal was sent, plus the term.
    deadline: Instant,
    /// When renewing stops.
    stop: Instant,
    renewing: bool,
    signal: Arc<Signal>,
}

/// What keeps one lease renewed; dropped, it stops.
#[derive(Debug)]
pub(crate) struct Kept<S: Store> {
    keeper: Arc<Keeper<S>>,
    id: u64,
    signal: Arc<Signal>,
}

impl<S: Store> Kept<S> {
    pub(crate) fn lease_lost(&self) -> LeaseLost {
        LeaseLost(Arc::clone(&self.signal))
    }
}

impl<S: Store> Drop for Kept<S> {
    fn drop(&mut self) {
        self.keeper.table().runs.remove(&self.id);
    }
}

/// A third of the lease: two renewals may fail before it lapses.
fn renewal_interval(term: Duration) -> Duration {
    term / 3
}

impl<S: Store> Keeper<S> {
    pub(crate) fn new(calls: Arc<Calls<S>>) -> Arc<Self> {
        Arc::new(Self { calls, table: Mutex::default(), earlier: Notify::new() })
    }

    /// Renews `lease`, whose claim was sent at `sent`, for as long as the value lives, at most `max_run`.
    pub(crate) fn keep(
        self: &Arc<Self>,
        lease: Lease,
        sent: Instant,
        term: Duration,
        max_run: Duration,
    ) -> Kept<S> {
        let signal = Arc::new(Signal::default());
        let run = Run {
            lease,
            term,
            due: sent + renewal_interval(term),
            deadline: sent + term,
            stop: sent + max_run,
            renewing: false,
            signal: Arc::clone(&signal),
        };
        Kept { keeper: Arc::clone(self), id: self.add(run), signal }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, run: Run) -> u64 {
        let mut table = self.table();
        table.last_id += 1;
        let id = table.last_id;
        let due = run.due;
        table.runs.insert(id, run);
        // A task that ended with its runtime is replaced; one that sleeps too long is woken.
        if table.task.as_ref().is_none_or(JoinHandle::is_finished) {
            table.wakes_at = Some(due);
            table.task = Some(tokio::spawn(run_keeper(Arc::clone(self))));
        } else if table.wakes_at.is_none_or(|wakes_at| due < wakes_at) {
            table.wakes_at = Some(due);
            self.earlier.notify_one();
        }
        id
    }

    /// Marks what the clock changed, and says what to renew and when to look again. `None`: nothing is kept.
    fn advance(&self, now: Instant) -> Option<Plan> {
        let mut table = self.table();
        let mut plan = Plan { wake_at: now + Duration::from_secs(3600), renew: Vec::new(), lost: Vec::new() };
        table.runs.retain(|id, run| {
            let over = run.stop <= now;
            if (over || run.deadline <= now) && run.signal.raise() {
                plan.lost.push(run.lease);
            }
            if over {
                return false;
            }
            if run.due <= now && !run.renewing {
                run.renewing = true;
                plan.renew.push((*id, run.lease, run.term));
            }
            let lost = run.signal.lost.load(Ordering::Acquire);
            let next = [(!run.renewing).then_some(run.due), (!lost).then_some(run.deadline), Some(run.stop)];
            plan.wake_at = next.into_iter().flatten().fold(plan.wake_at, Instant::min);
            true
        });
        if table.runs.is_empty() && plan.renew.is_empty() {
            table.task = None;
            table.wakes_at = None;
            return None;
        }
        table.wakes_at = Some(plan.wake_at);
        Some(plan)
    }

    /// Notes how a renewal ended; true when it told a run that its lease is lost.
    fn note(&self, renewal: &Renewal) -> bool {
        let mut table = self.table();
        let Some(run) = table.runs.get_mut(&renewal.id) else { return false };
        run.renewing = false;
        match &renewal.result {
            Ok(Settled::Applied) => {
                run.deadline = renewal.sent + run.term;
                run.due = renewal.sent + renewal_interval(run.term);
                false
            }
            Ok(Settled::Fenced(_)) => {
                let first = run.signal.raise();
                table.runs.remove(&renewal.id);
                first
            }
            Err(_) => {
                run.due = Instant::now() + renewal_interval(run.term) / 4;
                false
            }
        }
    }
}

struct Plan {
    wake_at: Instant,
    renew: Vec<(u64, Lease, Duration)>,
    lost: Vec<Lease>,
}

struct Renewal {
    id: u64,
    lease: Lease,
    sent: Instant,
    result: Result<Settled, StoreError>,
}

/// The task: sleeps until a lease is due, renews those that are, all at once, and ends when none is left.
async fn run_keeper<S: Store>(keeper: Arc<Keeper<S>>) {
    let mut renewals = FuturesUnordered::new();
    loop {
        let Some(plan) = keeper.advance(Instant::now()) else { return };
        for lease in &plan.lost {
            keeper.calls.tell(&lease.address, &Event::LeaseLost);
        }
        for (id, lease, term) in plan.renew {
            renewals.push(renew(&keeper.calls, id, lease, term));
        }
        tokio::select! {
            () = tokio::time::sleep_until(plan.wake_at) => {}
            () = keeper.earlier.notified() => {}
            Some(renewal) = renewals.next() => note(&keeper, &renewal),
        }
    }
}

async fn renew<S: Store>(calls: &Calls<S>, id: u64, lease: Lease, term: Duration) -> Renewal {
    let sent = Instant::now();
    let result = calls.in_time(calls.store.renew(&lease, term)).await;
    Renewal { id, lease, sent, result }
}

fn note<S: Store>(keeper: &Keeper<S>, renewal: &Renewal) {
    if let Err(error) = &renewal.result {
        keeper.calls.tell(&renewal.lease.address, &Event::StoreFailed(error));
    }
    if keeper.note(renewal) {
        keeper.calls.tell(&renewal.lease.address, &Event::LeaseLost);
    }
}
