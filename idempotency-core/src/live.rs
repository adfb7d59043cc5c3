//! How many runs are live, and the wait until none is.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// Counts live runs up to a bound.
#[derive(Debug)]
pub(crate) struct Live {
    count: AtomicUsize,
    bound: usize,
    idle: Notify,
}

impl Live {
    pub(crate) fn new(bound: usize) -> Arc<Self> {
        Arc::new(Self { count: AtomicUsize::new(0), bound, idle: Notify::new() })
    }

    /// A seat, unless all are taken.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Seat> {
        let one_more = |count: usize| (count < self.bound).then_some(count + 1);
        self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Seat(Arc::clone(self)))
    }

    pub(crate) const fn bound(&self) -> usize {
        self.bound
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until no run is live.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            let mut idle = std::pin::pin!(idle);
            idle.as_mut().enable(); // before the count is read, so that no last seat is missed
            if self.count() == 0 {
                return;
            }
            idle.await;
        }
    }
}

/// One live run; given back when dropped.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Live>);

impl Drop for Seat {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_bounded_and_given_back() {
        let live = Live::new(2);
        let first = live.take().unwrap();
        let _second = live.take().unwrap();
        assert!(live.take().is_none());
        drop(first);
        assert!(live.take().is_some());
        assert_eq!(live.count(), 1);
    }

    #[tokio::test]
    async fn idle_waits_for_the_last_seat() {
        let live = Live::new(2);
        live.idle().await;
        let seat = live.take().unwrap();
        let waiting = tokio::spawn({
            let live = Arc::clone(&live);
            async move { live.idle().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(seat);
        waiting.await.unwrap();
    }
}
