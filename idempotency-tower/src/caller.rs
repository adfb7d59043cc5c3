//! Whether the caller of an exchange still waits for it, and what happens when it no longer does.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{runtime::Handle, sync::Notify, time::Instant};
use tracing::{Dispatch, Span, instrument::Instrument, instrument::WithSubscriber};

/// Shared by an exchange and the future that polls it for its caller.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    claiming: AtomicBool,
    left_at: OnceLock<Instant>,
    left: Notify,
}

impl Presence {
    /// From here on the exchange goes on without its caller: its claim is on its way.
    pub(crate) fn claims(&self) {
        self.claiming.store(true, Ordering::Release);
    }

    /// Waits until the caller has left, and says when it did.
    pub(crate) async fn left(&self) -> Instant {
        loop {
            let left = self.left.notified();
            let mut left = std::pin::pin!(left);
            left.as_mut().enable(); // before the time is read, so that no leaving is missed
            if let Some(left_at) = self.left_at.get() {
                return *left_at;
            }
            left.await;
        }
    }

    fn leave(&self) {
        // The first leaving is the one that counts; there is no second.
        let _ = self.left_at.set(Instant::now());
        self.left.notify_waiters();
    }
}

/// An exchange, polled in its caller's place and handed to a task when the caller drops it after its claim was sent.
///
/// Nothing is spawned for a caller that stays.
pub(crate) struct Exchange<T: Send + 'static> {
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    presence: Arc<Presence>,
    runtime: Handle,
    span: Span,
    dispatch: Dispatch,
}

impl<T: Send + 'static> Exchange<T> {
    pub(crate) fn new(future: Pin<Box<dyn Future<Output = T> + Send>>, presence: Arc<Presence>) -> Self {
        Self {
            future: Some(future),
            presence,
            runtime: Handle::current(),
            span: Span::current(),
            dispatch: tracing::dispatcher::get_default(Clone::clone),
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        // Taken out, so that an exchange that panics is not polled again.
        let Some(mut future) = self.future.take() else { return Poll::Pending };
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            self.future = Some(future);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Exchange<T> {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else { return };
        if self.presence.claiming.load(Ordering::Acquire) {
            self.presence.leave();
            let run = async move { drop(future.await) };
            self.runtime.spawn(run.instrument(self.span.clone()).with_subscriber(self.dispatch.clone()));
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Exchange<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("presence", &self.presence).finish_non_exhaustive()
    }
}
