//! A store that fails on command, for tests of what stands above stores.

use std::{collections::HashMap, sync::Arc, time::Duration};

use idempotency_core::{
    Bid, Claim, Fate, Keep, Lease, Operation, Outcome, Release, Settled, Store, StoreError, StoreErrorKind,
    Vacant,
};
use tokio::sync::watch;

/// A call of the [`Store`] port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// [`Store::claim`].
    Claim,
    /// [`Store::look`].
    Look,
    /// [`Store::renew`].
    Renew,
    /// [`Store::complete`].
    Complete,
    /// [`Store::release`].
    Release,
    /// [`Store::purge`].
    Purge,
}

/// The text of what causes every fault: the stand-in for what a backend says, and may say of what it was given.
pub const CAUSE: &str = "a fault that was set, in the backend's own words";

/// What befalls a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails without having happened.
    Fails(StoreErrorKind),
    /// It happens, and its reply is lost.
    LosesReply,
    /// It hangs before anything happens, until the fault is mended; then it happens.
    Hangs,
}

/// The store under test, whose calls fail as its [`Faults`] say.
#[derive(Debug, Clone)]
pub struct Faulty<S> {
    store: S,
    faults: Faults,
}

impl<S: Store> Faulty<S> {
    /// Wraps `store`. It is faultless until told otherwise.
    pub fn new(store: S) -> (Self, Faults) {
        let faults = Faults(Arc::new(watch::Sender::new(State::default())));
        (Self { store, faults: faults.clone() }, faults)
    }

    async fn call<T>(
        &self,
        call: Call,
        done: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.faults.0.send_modify(|state| *state.calls.entry(call).or_default() += 1);
        match self.faults.next(call) {
            None => done.await,
            Some(Fault::Fails(kind)) => Err(StoreError::new(kind, Fate::NotApplied).with_source(CAUSE)),
            Some(Fault::LosesReply) => {
                done.await?;
                Err(StoreError::new(StoreErrorKind::Unavailable, Fate::Unknown).with_source(CAUSE))
            }
            Some(Fault::Hangs) => {
                self.faults.wait(|state| !state.lasting.contains_key(&call)).await;
                done.await
            }
        }
    }
}

/// Sets the faults of a [`Faulty`] store and watches its calls.
#[derive(Debug, Clone)]
pub struct Faults(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    lasting: HashMap<Call, Fault>,
    next: HashMap<Call, Vec<Fault>>,
    calls: HashMap<Call, usize>,
}

impl Faults {
    /// `fault` befalls every `call` from now on.
    pub fn set(&self, call: Call, fault: Fault) {
        self.0.send_modify(|state| {
            state.lasting.insert(call, fault);
        });
    }

    /// `fault` befalls the next `call` that none befalls yet, once. A hang needs [`set`](Self::set).
    pub fn once(&self, call: Call, fault: Fault) {
        self.0.send_modify(|state| state.next.entry(call).or_default().push(fault));
    }

    /// Nothing befalls `call` any more.
    pub fn mend(&self, call: Call) {
        self.0.send_modify(|state| {
            state.lasting.remove(&call);
            state.next.remove(&call);
        });
    }

    /// How many of `call` were made.
    pub fn calls(&self, call: Call) -> usize {
        self.0.borrow().calls.get(&call).copied().unwrap_or_default()
    }

    /// Waits until `count` of `call` were made in all.
    pub async fn reached(&self, call: Call, count: usize) {
        self.wait(|state| state.calls.get(&call).is_some_and(|calls| *calls >= count)).await;
    }

    async fn wait(&self, until: impl FnMut(&State) -> bool) {
        // The sender lives in `self`, so the wait cannot fail.
        let _ = self.0.subscribe().wait_for(until).await;
    }

    fn next(&self, call: Call) -> Option<Fault> {
        let mut fault = None;
        self.0.send_if_modified(|state| {
            fault = match state.next.get_mut(&call) {
                Some(faults) if !faults.is_empty() => Some(faults.remove(0)),
                _ => state.lasting.get(&call).copied(),
            };
            false
        });
        fault
    }
}

impl<S: Store> Store for Faulty<S> {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        self.call(Call::Claim, self.store.claim(op, bid)).await
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        self.call(Call::Look, self.store.look(op)).await
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        self.call(Call::Renew, self.store.renew(lease, term)).await
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        self.call(Call::Complete, self.store.complete(lease, outcome, keep)).await
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        self.call(Call::Release, self.store.release(lease, why)).await
    }

    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        self.call(Call::Purge, self.store.purge(at_most)).await
    }

    fn max_outcome_bytes(&self) -> usize {
        self.store.max_outcome_bytes()
    }
}
