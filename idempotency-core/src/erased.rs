//! A store chosen at run time.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::{Bid, Claim, Keep, Lease, Operation, Outcome, Release, Settled, Store, StoreError, Vacant};

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The private twin of [`Store`] that can be a trait object, at the price of one allocation a call.
trait ErasedStore: Send + Sync + 'static {
    fn claim<'a>(&'a self, op: &'a Operation, bid: &'a Bid) -> Answer<'a, Claim<Lease>>;
    fn look<'a>(&'a self, op: &'a Operation) -> Answer<'a, Claim<Vacant>>;
    fn renew<'a>(&'a self, lease: &'a Lease, term: Duration) -> Answer<'a, Settled>;
    fn complete<'a>(&'a self, lease: &'a Lease, outcome: &'a Outcome, keep: Keep) -> Answer<'a, Settled>;
    fn release<'a>(&'a self, lease: &'a Lease, why: Release) -> Answer<'a, Settled>;
    fn purge(&self, at_most: u32) -> Answer<'_, u32>;
    fn max_outcome_bytes(&self) -> usize;
}

impl<S: Store> ErasedStore for S {
    fn claim<'a>(&'a self, op: &'a Operation, bid: &'a Bid) -> Answer<'a, Claim<Lease>> {
        Box::pin(Store::claim(self, op, bid))
    }

    fn look<'a>(&'a self, op: &'a Operation) -> Answer<'a, Claim<Vacant>> {
        Box::pin(Store::look(self, op))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, term: Duration) -> Answer<'a, Settled> {
        Box::pin(Store::renew(self, lease, term))
    }

    fn complete<'a>(&'a self, lease: &'a Lease, outcome: &'a Outcome, keep: Keep) -> Answer<'a, Settled> {
        Box::pin(Store::complete(self, lease, outcome, keep))
    }

    fn release<'a>(&'a self, lease: &'a Lease, why: Release) -> Answer<'a, Settled> {
        Box::pin(Store::release(self, lease, why))
    }

    fn purge(&self, at_most: u32) -> Answer<'_, u32> {
        Box::pin(Store::purge(self, at_most))
    }

    fn max_outcome_bytes(&self) -> usize {
        Store::max_outcome_bytes(self)
    }
}

/// Any store, chosen at run time. Static dispatch is the default everywhere else and allocates nothing.
#[derive(Clone)]
pub struct DynStore(Arc<dyn ErasedStore>);

impl DynStore {
    /// Hides the type of `store`.
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }
}

impl fmt::Debug for DynStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DynStore")
    }
}

impl Store for DynStore {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        self.0.claim(op, bid).await
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        self.0.look(op).await
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        self.0.renew(lease, term).await
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        self.0.complete(lease, outcome, keep).await
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        self.0.release(lease, why).await
    }

    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        self.0.purge(at_most).await
    }

    fn max_outcome_bytes(&self) -> usize {
        self.0.max_outcome_bytes()
    }
}
