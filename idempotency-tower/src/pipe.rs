//! What lies between a run's body and its client: the run writes at its own pace, the client reads at its own.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use tokio::{sync::Notify, time::Instant};

use crate::error::BoxError;

/// A pipe whose reader announces `exact` bytes, if that many are known to come.
pub(crate) fn pipe(exact: Option<u64>) -> (Writer, Reader) {
    let shared = Arc::new(Shared::default());
    (Writer { shared: Arc::clone(&shared) }, Reader { shared, left: exact })
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Told whenever the reader took something or left.
    moved: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Written and not yet read. Small writes join, so a slow reader costs no more than the bytes.
    pending: BytesMut,
    end: Option<End>,
    reader: Option<Waker>,
    left_at: Option<Instant>,
}

/// How a body ended.
#[derive(Debug)]
pub(crate) enum End {
    /// With all its bytes, and these trailers.
    Whole(Option<HeaderMap>),
    /// Half way: the client must see that it is not whole.
    Broken(BoxError),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The run's end of the pipe. Dropped without an [`end`](Self::end), the client sees a broken body.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
}

impl Writer {
    pub(crate) fn write(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = self.shared.state();
        if state.left_at.is_some() {
            return;
        }
        state.pending.extend_from_slice(bytes);
        wake(state);
    }

    pub(crate) fn end(&self, end: End) {
        let mut state = self.shared.state();
        if state.end.is_none() {
            state.end = Some(end);
            wake(state);
        }
    }

    /// Waits until at most `limit` bytes are unread, or the reader has left.
    pub(crate) async fn room(&self, limit: usize) {
        loop {
            {
                let state = self.shared.state();
                if state.pending.len() <= limit || state.left_at.is_some() {
                    return;
                }
            }
            self.shared.moved.notified().await;
        }
    }

    /// Waits until the reader has left, and says when it did.
    pub(crate) async fn left(&self) -> Instant {
        loop {
            if let Some(left_at) = self.shared.state().left_at {
                return left_at;
            }
            self.shared.moved.notified().await;
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end(End::Broken("the run ended without finishing its response body".into()));
    }
}

/// Wakes the reader after the lock is free.
fn wake(mut state: MutexGuard<'_, State>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// The client's end of the pipe.
#[derive(Debug)]
pub(crate) struct Reader {
    shared: Arc<Shared>,
    left: Option<u64>,
}

impl Reader {
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.shared.state();
        if !state.pending.is_empty() {
            let bytes = state.pending.split().freeze();
            drop(state);
            self.shared.moved.notify_one();
            self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match state.end.take() {
            Some(End::Broken(error)) => {
                state.end = Some(End::Whole(None)); // an error is told once
                Poll::Ready(Some(Err(error)))
            }
            Some(End::Whole(trailers)) => {
                state.end = Some(End::Whole(None));
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.left.map(SizeHint::with_exact).unwrap_or_default()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.left_at = Some(Instant::now());
        state.pending = BytesMut::new();
        drop(state);
        self.shared.moved.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn next(reader: &mut Reader) -> Option<Result<Bytes, String>> {
        let frame = poll_fn(|cx| reader.poll_frame(cx)).await?;
        Some(frame.map(|frame| frame.into_data().unwrap_or_default()).map_err(|error| error.to_string()))
    }

    #[tokio::test]
    async fn small_writes_join_and_the_end_comes_last() {
        let (writer, mut reader) = pipe(Some(4));
        writer.write(b"ab");
        writer.write(b"cd");
        writer.end(End::Whole(None));
        assert_eq!(reader.size_hint().exact(), Some(4));
        assert_eq!(next(&mut reader).await, Some(Ok(Bytes::from_static(b"abcd"))));
        assert_eq!(reader.size_hint().exact(), Some(0));
        assert_eq!(next(&mut reader).await, None);
        assert_eq!(next(&mut reader).await, None);
    }

    #[tokio::test]
    async fn a_writer_that_vanishes_breaks_the_body() {
        let (writer, mut reader) = pipe(None);
        writer.write(b"half");
        drop(writer);
        assert_eq!(next(&mut reader).await, Some(Ok(Bytes::from_static(b"half"))));
        assert!(next(&mut reader).await.unwrap().is_err());
    }

    #[tokio::test]
    async fn room_comes_with_reading_or_leaving() {
        let (writer, mut reader) = pipe(None);
        writer.write(b"abcd");
        let mut room = Box::pin(writer.room(2));
        assert!(futures_util::poll!(&mut room).is_pending());
        next(&mut reader).await;
        room.await;
        writer.write(b"abcd");
        let mut room = Box::pin(writer.room(2));
        assert!(futures_util::poll!(&mut room).is_pending());
        drop(reader);
        room.await;
        writer.left().await;
    }
}
