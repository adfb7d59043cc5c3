//! The port that wakes a waiter when a record elsewhere ended.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use tokio::sync::Notify as Bell;

use crate::Address;

/// A store, or something beside it, that can tell when a record may have ended: completed, released, or removed.
///
/// Without it waiters find out by looking at the store, 25 ms to 500 ms apart; a run of the same engine wakes them in
/// any case. Waking too often costs a look, waking too late or never costs a pause.
pub trait Notify: Send + Sync + 'static {
    /// Ends when the record at `address` may have ended since the call.
    fn ended(&self, address: &Address) -> impl Future<Output = ()> + Send;
}

/// Wakes waiters within one process: what a store rings when a record of its own ends.
///
/// Addresses share bells, so some wake-ups are for another record; a look tells.
#[derive(Debug)]
pub struct Bells([Bell; Self::COUNT]);

impl Bells {
    const COUNT: usize = 64;

    /// Silent bells.
    pub fn new() -> Self {
        Self(std::array::from_fn(|_| Bell::new()))
    }

    /// Wakes who waits for the record at `address`.
    pub fn ring(&self, address: &Address) {
        self.bell(address).notify_waiters();
    }

    /// Wakes everybody: for whoever may have missed what was to be rung for.
    pub fn ring_all(&self) {
        self.0.iter().for_each(Bell::notify_waiters);
    }

    /// Ends with the next [`ring`](Self::ring) for `address` after the call.
    pub async fn rung(&self, address: &Address) {
        self.bell(address).notified().await;
    }

    fn bell(&self, address: &Address) -> &Bell {
        &self.0[usize::from(address.as_bytes()[0]) % Self::COUNT]
    }
}

impl Default for Bells {
    fn default() -> Self {
        Self::new()
    }
}

/// Any [`Notify`], or none.
#[derive(Clone, Default)]
pub(crate) struct Wakes(Option<Arc<dyn ErasedNotify>>);

impl Wakes {
    pub(crate) fn by(notify: impl Notify) -> Self {
        Self(Some(Arc::new(notify)))
    }

    /// Ends when a wake comes; never without a port.
    pub(crate) async fn wake(&self, address: &Address) {
        match &self.0 {
            Some(notify) => notify.ended(address).await,
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Wakes(by a port)" } else { "Wakes(never)" })
    }
}

trait ErasedNotify: Send + Sync {
    fn ended<'a>(&'a self, address: &'a Address) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

impl<N: Notify> ErasedNotify for N {
    fn ended<'a>(&'a self, address: &'a Address) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(Notify::ended(self, address))
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, task::Context, task::Waker};

    use futures_util::future::join_all;

    use super::*;

    #[test]
    fn a_bell_wakes_who_waits_for_its_address_and_all_bells_everybody() {
        let bells = Bells::new();
        let addresses = [0, 1, 77, 255].map(|byte| Address::from_bytes([byte; 32]));
        let mut waiters = pin!(join_all(addresses.iter().map(|address| bells.rung(address))));
        let mut are_all_woken = || waiters.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(!are_all_woken());
        bells.ring(&addresses[0]);
        assert!(!are_all_woken());
        bells.ring_all();
        assert!(are_all_woken());
    }
}
