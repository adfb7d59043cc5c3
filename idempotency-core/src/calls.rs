//! Calls of the store, bounded in time, and what is told about them.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    Address, Fate, Store, StoreError, StoreErrorKind,
    event::{Event, Observers},
};

/// The store of an engine, as the engine, its keeper and its permits call it.
#[derive(Debug)]
pub(crate) struct Calls<S> {
    pub(crate) store: S,
    observers: Observers,
    time: Duration,
}

impl<S: Store> Calls<S> {
    pub(crate) const fn new(store: S, observers: Observers, time: Duration) -> Self {
        Self { store, observers, time }
    }

    /// Bounds one call. A call cut short may have happened.
    pub(crate) async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.within(self.time, call).await
    }

    /// Bounds one call that is of no use after `limit`.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        timeout(limit.min(self.time), call).await.unwrap_or_else(|elapsed| {
            Err(StoreError::new(StoreErrorKind::Unavailable, Fate::Unknown).with_source(elapsed))
        })
    }

    pub(crate) fn tell(&self, address: &Address, event: &Event<'_>) {
        self.observers.tell(address, event);
    }
}
