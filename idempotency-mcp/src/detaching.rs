//! Work that its caller's going away does not cut off.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;

/// Work that goes on in a task of its own when whoever polls it drops it. Until then it runs where it is polled, so that
/// what it asks of the client is known to belong to this call.
pub(crate) struct Detaching<T: Send + 'static> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    runtime: Option<Handle>,
}

impl<T: Send + 'static> Detaching<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Some(Box::pin(work)), runtime: None }
    }
}

impl<T: Send + 'static> Future for Detaching<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Taken out, so that work which panics is not gone on with.
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        if self.runtime.is_none() {
            self.runtime = Handle::try_current().ok();
        }
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Detaching<T> {
    fn drop(&mut self) {
        // Work that has not begun has nothing to go on with.
        if let (Some(work), Some(runtime)) = (self.work.take(), &self.runtime) {
            runtime.spawn(work);
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Detaching<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detaching").field("is_over", &self.work.is_none()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, poll};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn begun_work_goes_on_when_it_is_dropped() {
        let ((open, opened), (done, is_done)) = (oneshot::channel::<()>(), oneshot::channel());
        let mut work = Box::pin(Detaching::new(async move {
            opened.await.unwrap();
            done.send("done").unwrap();
        }));
        assert!(poll!(&mut work).is_pending());
        drop(work);
        open.send(()).unwrap();
        assert_eq!(is_done.await, Ok("done"));
    }

    #[tokio::test]
    async fn work_that_never_began_never_begins() {
        let (done, is_done) = oneshot::channel::<()>();
        drop(Detaching::new(async move { done.send(()).unwrap() }));
        assert!(is_done.await.is_err(), "it was dropped with whom it waited for");
    }

    #[tokio::test]
    async fn work_that_panicked_is_not_gone_on_with() {
        let work = Detaching::new(async {
            tokio::task::yield_now().await;
            std::panic::resume_unwind(Box::new("a panic of the work's own"));
        });
        let ended: Result<(), _> = std::panic::AssertUnwindSafe(work).catch_unwind().await;
        assert!(ended.is_err());
    }
}
