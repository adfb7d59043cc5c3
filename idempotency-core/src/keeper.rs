//! One task renews the leases of all runs of an engine, in each runtime it is used in.

use std::{
    collections::{BTreeSet, HashMap},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt,
    stream::{FuturesUnordered, StreamExt},
};
use tokio::{
    runtime::{self, Handle},
    sync::Notify,
    task::JoinHandle,
    time::Instant,
};

use crate::{
    Fate, Lease, Settled, Store, StoreError, StoreErrorKind,
    calls::Calls,
    event::{Event, StoreCall},
    lease_lost::{LeaseLost, Signal},
};

/// How many renewals are on their way at once: a store's connections are few, and the others are due a little later.
const AT_ONCE: usize = 32;

/// The keepers of an engine, one for each runtime it is used in: a runtime that ends or stalls takes no other's with it.
#[derive(Debug)]
pub(crate) struct Keepers<S: Store> {
    calls: Arc<Calls<S>>,
    by_runtime: Mutex<Vec<(runtime::Id, Arc<Keeper<S>>)>>,
}

impl<S: Store> Keepers<S> {
    pub(crate) fn new(calls: Arc<Calls<S>>) -> Arc<Self> {
        Arc::new(Self { calls, by_runtime: Mutex::default() })
    }

    /// The keeper of the runtime this is called in.
    pub(crate) fn here(&self) -> Arc<Keeper<S>> {
        let here = Handle::current().id();
        let mut keepers = self.by_runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, keeper)) = keepers.iter().find(|(id, _)| *id == here) {
            return Arc::clone(keeper);
        }
        keepers.retain(|(_, keeper)| !keeper.is_idle());
        let calls = Arc::clone(&self.calls);
        let keeper = Arc::new(Keeper { calls, table: Mutex::default(), earlier: Notify::new() });
        keepers.push((here, Arc::clone(&keeper)));
        keeper
    }
}

/// The leases of the runs of one engine in one runtime.
#[derive(Debug)]
pub(crate) struct Keeper<S: Store> {
    calls: Arc<Calls<S>>,
    table: Mutex<Table>,
    earlier: Notify,
}

#[derive(Debug, Default)]
struct Table {
    runs: HashMap<u64, Run>,
    /// When each run is looked at next.
    agenda: BTreeSet<(Instant, u64)>,
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
    /// When renewing stops.
    stop: Instant,
    renewing: bool,
    /// Its place in the agenda.
    place: Instant,
    signal: Arc<Signal>,
}

impl Run {
    fn next_place(&self) -> Instant {
        let due = (!self.renewing).then_some(self.due);
        let deadline = (!self.signal.is_raised()).then(|| self.signal.deadline());
        due.into_iter().chain(deadline).fold(self.stop, Instant::min)
    }
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
        self.keeper.table().remove(self.id);
    }
}

/// Whether the keeper's task was started or woken to keep one more lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Undisturbed,
    Woken,
}

/// A third of the lease: two renewals may fail before it lapses.
fn renewal_interval(term: Duration) -> Duration {
    term / 3
}

impl Table {
    fn insert(&mut self, run: Run) -> u64 {
        self.last_id += 1;
        self.agenda.insert((run.place, self.last_id));
        self.runs.insert(self.last_id, run);
        self.last_id
    }

    fn remove(&mut self, id: u64) {
        if let Some(run) = self.runs.remove(&id) {
            self.agenda.remove(&(run.place, id));
        }
    }

    /// Changes a run and its place in the agenda with it.
    fn change<T>(&mut self, id: u64, change: impl FnOnce(&mut Run) -> T) -> Option<T> {
        let run = self.runs.get_mut(&id)?;
        let changed = change(run);
        self.agenda.remove(&(run.place, id));
        run.place = run.next_place();
        self.agenda.insert((run.place, id));
        Some(changed)
    }

    /// A task that ended with renewals on their way took them with it.
    fn forget_renewals(&mut self) {
        let ids: Vec<_> = self.runs.iter().filter(|(_, run)| run.renewing).map(|(id, _)| *id).collect();
        for id in ids {
            self.change(id, |run| run.renewing = false);
        }
    }
}

impl<S: Store> Keeper<S> {
    /// Renews `lease`, whose claim was sent at `sent`, for as long as the value lives, at most `max_run`.
    pub(crate) fn keep(
        self: &Arc<Self>,
        lease: Lease,
        sent: Instant,
        term: Duration,
        max_run: Duration,
    ) -> (Kept<S>, Task) {
        let due = sent + renewal_interval(term);
        let signal = Signal::new(sent, sent + term);
        let kept = Arc::clone(&signal);
        let run = Run { lease, term, due, stop: sent + max_run, renewing: false, place: due, signal };
        let (id, task) = self.add(run);
        (Kept { keeper: Arc::clone(self), id, signal: kept }, task)
    }

    fn add(self: &Arc<Self>, run: Run) -> (u64, Task) {
        let mut table = self.table();
        let due = run.due;
        let id = table.insert(run);
        // A task that ended is replaced; one that would sleep too long is woken.
        if table.task.as_ref().is_none_or(JoinHandle::is_finished) {
            table.forget_renewals();
            table.wakes_at = Some(due);
            table.task = Some(tokio::spawn(run_keeper(Arc::clone(self))));
        } else if table.wakes_at.is_none_or(|wakes_at| due < wakes_at) {
            table.wakes_at = Some(due);
            self.earlier.notify_one();
        } else {
            return (id, Task::Undisturbed);
        }
        (id, Task::Woken)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        self.table().runs.is_empty()
    }

    /// Marks what the clock changed, and says what to renew, at most `room`, and when to look again. `None`: nothing is
    /// kept any more.
    fn advance(&self, now: Instant, room: usize) -> Option<Plan> {
        let mut table = self.table();
        let mut plan = Plan::default();
        while let Some((place, id)) = table.agenda.first().copied()
            && place <= now
            && plan.renew.len() < room
        {
            let over = table.change(id, |run| {
                let over = run.stop <= now;
                if (over || run.signal.deadline() <= now) && !run.signal.is_raised() {
                    run.signal.raise();
                    plan.lost.push(run.lease);
                }
                if !over && run.due <= now && !run.renewing {
                    run.renewing = true;
                    plan.renew.push((id, run.lease, run.term));
                }
                over
            });
            if over == Some(true) {
                table.remove(id);
            }
        }
        plan.wake_at = table.agenda.first().map(|(place, _)| *place);
        table.wakes_at = plan.wake_at;
        if plan.wake_at.is_none() && plan.renew.is_empty() {
            table.task = None;
            return None;
        }
        Some(plan)
    }

    /// Notes how a renewal ended; true when it told a run that its lease is lost.
    fn note(&self, renewal: &Renewal) -> bool {
        let mut table = self.table();
        let told = table.change(renewal.id, |run| {
            run.renewing = false;
            match &renewal.result {
                Ok(Settled::Applied) => {
                    run.signal.extend(renewal.sent + run.term);
                    run.due = renewal.sent + renewal_interval(run.term);
                    false
                }
                Ok(Settled::Fenced(_)) => !run.signal.is_raised() && run.signal.raise(),
                Err(_) => {
                    run.due = Instant::now() + renewal_interval(run.term) / 4;
                    false
                }
            }
        });
        if matches!(renewal.result, Ok(Settled::Fenced(_))) {
            table.remove(renewal.id);
        }
        told.unwrap_or(false)
    }
}

#[derive(Default)]
struct Plan {
    wake_at: Option<Instant>,
    renew: Vec<(u64, Lease, Duration)>,
    lost: Vec<Lease>,
}

struct Renewal {
    id: u64,
    lease: Lease,
    sent: Instant,
    result: Result<Settled, StoreError>,
}

/// The task: sleeps until a lease is due, renews those that are, and ends when none is left.
async fn run_keeper<S: Store>(keeper: Arc<Keeper<S>>) {
    let mut renewals = FuturesUnordered::new();
    loop {
        let room = AT_ONCE - renewals.len();
        let Some(plan) = keeper.advance(Instant::now(), room) else { return };
        for lease in &plan.lost {
            keeper.calls.tell(&lease.address, &Event::LeaseLost);
        }
        for (id, lease, term) in plan.renew {
            renewals.push(renew(&keeper.calls, id, lease, term));
        }
        let wake_at = plan.wake_at.filter(|_| renewals.len() < AT_ONCE);
        let sleep = async {
            match wake_at {
                Some(wake_at) => tokio::time::sleep_until(wake_at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(renewal) = renewals.next() => note(&keeper, &renewal),
            () = sleep => {}
            () = keeper.earlier.notified() => {}
        }
        // A store in memory answers at once: other tasks, and the timers, must have their turn all the same.
        tokio::task::consume_budget().await;
    }
}

/// One renewal. It may take no longer than until the next is due; what panics has failed.
async fn renew<S: Store>(calls: &Calls<S>, id: u64, lease: Lease, term: Duration) -> Renewal {
    let sent = Instant::now();
    let renewed = AssertUnwindSafe(calls.store.renew(&lease, term)).catch_unwind().map(|renewed| {
        renewed.unwrap_or_else(|_| {
            Err(StoreError::new(StoreErrorKind::Refused, Fate::Unknown).with_source("the renewal panicked"))
        })
    });
    let result = calls.within(renewal_interval(term), StoreCall::Renew, &lease.address, pin!(renewed)).await;
    Renewal { id, lease, sent, result }
}

fn note<S: Store>(keeper: &Keeper<S>, renewal: &Renewal) {
    if keeper.note(renewal) {
        keeper.calls.tell(&renewal.lease.address, &Event::LeaseLost);
    }
}
