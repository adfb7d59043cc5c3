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
    /// What it is polled in.
    span: Span,
    /// What its caller is told of its end.
    tell: Option<fn(T) -> T>,
    presence: Arc<Presence>,
    /// Where it is polled, once it waits for something: one that never does is not handed on.
    place: Option<Box<Place>>,
}

/// What a task inherits from the caller whose exchange it goes on with.
struct Place {
    runtime: Handle,
    span: Span,
    dispatch: Dispatch,
}

impl Place {
    fn here() -> Self {
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        Self { runtime: Handle::current(), span: Span::current(), dispatch }
    }
}

impl<T: Send + 'static> Exchange<T> {
    pub(crate) fn new(future: Pin<Box<dyn Future<Output = T> + Send>>, presence: Arc<Presence>) -> Self {
        Self { future: Some(future), span: Span::none(), tell: None, presence, place: None }
    }

    /// The same, polled in `span`. A future of its own for that would be one more that is moved.
    pub(crate) fn within(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// The same, its output as `tell` makes it.
    pub(crate) fn telling(mut self, tell: fn(T) -> T) -> Self {
        self.tell = Some(tell);
        self
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let inside = self.span.enter();
        // Taken out, so that an exchange that panics is not polled again.
        let Some(mut future) = self.future.take() else { return Poll::Pending };
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            self.future = Some(future);
            drop(inside);
            self.place.get_or_insert_with(|| Box::new(Place::here()));
        }
        match self.tell {
            None => polled,
            Some(tell) => polled.map(tell),
        }
    }
}

impl<T: Send + 'static> Drop for Exchange<T> {
    fn drop(&mut self) {
        let (Some(future), Some(place)) = (self.future.take(), self.place.take()) else { return };
        if self.presence.claiming.load(Ordering::Acquire) {
            self.presence.leave();
            let Place { runtime, span, dispatch } = *place;
            let run = async move { drop(future.await) }.instrument(self.span.clone());
            runtime.spawn(run.instrument(span).with_subscriber(dispatch));
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Exchange<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("presence", &self.presence).finish_non_exhaustive()
    }
}
