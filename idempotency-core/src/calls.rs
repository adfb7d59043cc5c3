//! Calls of the store, bounded in time, and what is told about them.

use std::{pin::Pin, time::Duration};

use futures_util::future::poll_immediate;
use tokio::time::{Instant, timeout};

use crate::{
    Address, Fate, Store, StoreError, StoreErrorKind,
    event::{Event, Observers, StoreCall},
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

    /// Bounds one call, and tells how long it took and whether it failed. A call cut short may have happened.
    ///
    /// The call comes pinned: a future that takes another one by value has room for it twice.
    pub(crate) fn in_time<T>(
        &self,
        call: StoreCall,
        address: &Address,
        sent: Pin<&mut impl Future<Output = Result<T, StoreError>>>,
    ) -> impl Future<Output = Result<T, StoreError>> {
        self.within(self.time, call, address, sent)
    }

    /// The same for a call that is of no use after `limit`.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        call: StoreCall,
        address: &Address,
        mut sent: Pin<&mut impl Future<Output = Result<T, StoreError>>>,
    ) -> Result<T, StoreError> {
        let begun = self.observers.time_store_calls().then(Instant::now);
        // A store that answers at once, as one in memory does, needs no timer.
        let result = match poll_immediate(sent.as_mut()).await {
            Some(answer) => answer,
            // In a box: every request has room for this future, and hardly a wait notices an allocation.
            None => Box::pin(timeout(limit.min(self.time), sent)).await.unwrap_or_else(|elapsed| {
                Err(StoreError::new(StoreErrorKind::Unavailable, Fate::Unknown).with_source(elapsed))
            }),
        };
        if let Some(begun) = begun {
            self.tell(address, &Event::StoreCalled { call, took: begun.elapsed() });
        }
        if let Err(error) = &result {
            self.tell(address, &Event::StoreFailed { call, error });
        }
        result
    }

    pub(crate) fn tell(&self, address: &Address, event: &Event<'_>) {
        self.observers.tell(address, event);
    }
}
