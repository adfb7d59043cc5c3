//! How a run learns that its lease is lost.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::{sync::Notify, time::Instant};

/// Tells a run that its lease is lost, or may be: another holder may run by now.
///
/// It reads the clock itself, so that a run is told even where nothing renews any more.
#[derive(Debug, Clone)]
pub struct LeaseLost(pub(crate) Arc<Signal>);

impl LeaseLost {
    /// Whether the lease is lost. Once lost it stays so.
    pub fn is_lost(&self) -> bool {
        self.0.is_raised() || (self.0.deadline() <= Instant::now() && self.0.raise())
    }

    /// Waits until the lease is lost. A run that can stop half way should, and one that cannot may go on: its
    /// completion counts unless another holder took its place.
    pub async fn wait(&self) {
        loop {
            let raised = self.0.raised.notified();
            let mut raised = std::pin::pin!(raised);
            raised.as_mut().enable(); // before the flag is read, so that no signal is missed
            if self.is_lost() {
                return;
            }
            tokio::select! {
                () = raised => {}
                () = tokio::time::sleep_until(self.0.deadline()) => {} // it may have moved on since
            }
        }
    }
}

/// When one lease may have lapsed, and whether its run was told.
#[derive(Debug)]
pub(crate) struct Signal {
    begun: Instant,
    /// The instant before the last applied bid or renewal was sent, plus the term: in nanoseconds since `begun`.
    deadline: AtomicU64,
    lost: AtomicBool,
    raised: Notify,
}

impl Signal {
    pub(crate) fn new(begun: Instant, deadline: Instant) -> Arc<Self> {
        let signal =
            Self { begun, deadline: AtomicU64::new(0), lost: AtomicBool::new(false), raised: Notify::new() };
        signal.extend(deadline);
        Arc::new(signal)
    }

    pub(crate) fn extend(&self, deadline: Instant) {
        let nanos = deadline.saturating_duration_since(self.begun).as_nanos();
        self.deadline.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Release);
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.begun + std::time::Duration::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Tells the run; true, so that it can end a condition.
    pub(crate) fn raise(&self) -> bool {
        self.lost.store(true, Ordering::Release);
        self.raised.notify_waiters();
        true
    }
}
