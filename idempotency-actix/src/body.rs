//! The bodies that pass through the door, both ways.
//!
//! An actix body stays on the thread it came to. What reads it there hands each chunk through a channel of one place to
//! a body that may go anywhere, and that has to be told of its end: a channel that closes without that broke off.

use std::{
    any::Any,
    error::Error,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, resume_unwind},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use actix_web::{
    body::{BodySize, MessageBody},
    dev::Payload,
    error::PayloadError,
};
use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use http_body::{Body, Frame, SizeHint};
use idempotency_tower::{BoxError, ResponseBody};
use tokio::sync::mpsc;

/// What comes through the channel.
enum Said {
    Chunk(Bytes),
    End,
    Broken(BodyError),
    Panicked(Box<dyn Any + Send>),
}

/// Why a body ended before it was whole. What an actix body says of it cannot leave its thread, so its words do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// Nobody reads it any more.
    #[error("the body's reader is gone")]
    ReaderGone,
    /// The request could not be read.
    #[error("the request body: {0}")]
    Request(String),
    /// The response could not be.
    #[error("the response body: {0}")]
    Response(String),
}

/// A body that is read on its own thread, or is all here.
pub(crate) struct Handed(Source);

enum Source {
    Whole(Bytes),
    Fed { said: mpsc::Receiver<Said>, size: SizeHint, is_over: bool },
}

impl Handed {
    pub(crate) const fn whole(bytes: Bytes) -> Self {
        Self(Source::Whole(bytes))
    }

    fn fed(size: SizeHint) -> (mpsc::Sender<Said>, Self) {
        let (say, said) = mpsc::channel(1);
        (say, Self(Source::Fed { said, size, is_over: false }))
    }
}

impl Body for Handed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let (said, is_over) = match &mut self.0 {
            Source::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                return Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))));
            }
            Source::Fed { is_over: true, .. } => return Poll::Ready(None),
            Source::Fed { said, is_over, .. } => (said, is_over),
        };
        let said = ready!(said.poll_recv(cx)).unwrap_or(Said::Broken(BodyError::ReaderGone));
        *is_over = !matches!(said, Said::Chunk(_));
        Poll::Ready(match said {
            Said::Chunk(bytes) => Some(Ok(Frame::data(bytes))),
            Said::End => None,
            Said::Broken(error) => Some(Err(error)),
            Said::Panicked(panic) => resume_unwind(panic),
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Fed { is_over, .. } => *is_over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Fed { size, .. } => *size,
        }
    }
}

/// A request's payload as a body, and what feeds it. The `declared` length is believed for its size only: whether so much
/// came is told by the payload's own end, or by `end`, a length after which nothing more is read.
pub(crate) fn arriving(
    payload: Payload,
    declared: Option<u64>,
    end: Option<u64>,
) -> (Handed, Option<impl Future<Output = ()>>) {
    if matches!(payload, Payload::None) {
        return (Handed::whole(Bytes::new()), None);
    }
    let (say, body) = Handed::fed(declared.map(SizeHint::with_exact).unwrap_or_default());
    (body, Some(feed_request(payload, end, say)))
}

async fn feed_request(mut payload: Payload, mut left: Option<u64>, say: mpsc::Sender<Said>) {
    while let Ok(room) = say.reserve().await {
        if left == Some(0) {
            return room.send(Said::End);
        }
        match payload.next().await {
            Some(Ok(mut chunk)) => {
                if let Some(left) = &mut left {
                    chunk.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= chunk.len() as u64;
                }
                room.send(Said::Chunk(chunk));
            }
            Some(Err(error)) => return room.send(Said::Broken(BodyError::Request(error.to_string()))),
            None => return room.send(Said::End),
        }
    }
}

/// A handler's answer as a body, and what feeds it where its bytes are not there yet.
pub(crate) fn answered<B: MessageBody>(body: B) -> (Handed, Option<impl Future<Output = ()>>) {
    let size = body.size();
    let body = match body.try_into_bytes() {
        Ok(bytes) => return (Handed::whole(bytes), None),
        Err(body) => body,
    };
    let (say, handed) = Handed::fed(match size {
        BodySize::None => SizeHint::with_exact(0),
        BodySize::Sized(length) => SizeHint::with_exact(length),
        BodySize::Stream => SizeHint::default(),
    });
    (handed, Some(feed_answer(body, say)))
}

async fn feed_answer<B: MessageBody>(body: B, say: mpsc::Sender<Said>) {
    let mut body = pin!(body);
    loop {
        let next = AssertUnwindSafe(poll_fn(|cx| body.as_mut().poll_next(cx))).catch_unwind();
        let said = tokio::select! {
            biased; // a body that nobody reads is not read on, however ready it is
            () = say.closed() => return,
            next = next => match next {
                Ok(Some(Ok(chunk))) => Said::Chunk(chunk),
                Ok(Some(Err(error))) => Said::Broken(BodyError::Response(error.into().to_string())),
                Ok(None) => Said::End,
                Err(panic) => Said::Panicked(panic),
            },
        };
        let is_last = !matches!(said, Said::Chunk(_));
        if say.send(said).await.is_err() || is_last {
            return;
        }
    }
}

/// What a handler reads of a guarded request.
pub(crate) fn payload<B>(body: B) -> Payload
where
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    Payload::Stream { payload: Box::pin(Frames { body: Box::pin(body) }) }
}

/// The data of a body, as actix streams it.
struct Frames<B> {
    body: Pin<Box<B>>,
}

impl<B> Stream for Frames<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(poll_data(self.body.as_mut(), cx));
        Poll::Ready(
            next.map(|next| next.map_err(|error| PayloadError::Io(std::io::Error::other(error.into())))),
        )
    }
}

/// The body of an answer that a guard gave: a replay, a refusal, or the handler's own.
pub struct GuardedBody(Pin<Box<ResponseBody<Handed>>>);

impl GuardedBody {
    pub(crate) fn new(body: ResponseBody<Handed>) -> Self {
        Self(Box::pin(body))
    }
}

impl MessageBody for GuardedBody {
    type Error = Box<dyn Error>;

    fn size(&self) -> BodySize {
        self.0.size_hint().exact().map_or(BodySize::Stream, BodySize::Sized)
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        poll_data(self.0.as_mut(), cx).map_err(|error| -> Box<dyn Error> { error })
    }
}

impl fmt::Debug for GuardedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GuardedBody").field(&self.0).finish()
    }
}

/// The next data of a body. Trailers are left out: actix has none.
fn poll_data<B: Body<Data = Bytes>>(
    mut body: Pin<&mut B>,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, B::Error>>> {
    loop {
        match ready!(body.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Poll::Ready(Some(Ok(bytes)));
                }
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn next(body: &mut Handed) -> Option<Result<Bytes, BodyError>> {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    #[actix_web::test]
    async fn a_body_whose_end_nobody_told_is_broken() {
        let (say, mut body) = Handed::fed(SizeHint::default());
        assert!(say.send(Said::Chunk(Bytes::from_static(b"half"))).await.is_ok());
        drop(say);
        assert!(matches!(next(&mut body).await, Some(Ok(chunk)) if chunk == "half"));
        assert!(matches!(next(&mut body).await, Some(Err(BodyError::ReaderGone))));
        assert!(next(&mut body).await.is_none());
    }

    #[actix_web::test]
    async fn a_body_that_is_told_to_its_end_is_whole() {
        let (handed, feeding) = answered(actix_web::body::BodyStream::new(futures_util::stream::iter(
            [b"a", b"b"].map(|chunk| Ok::<_, BodyError>(Bytes::from_static(chunk))),
        )));
        let feeding = actix_web::rt::spawn(feeding.expect("a stream has to be fed"));
        let mut handed = handed;
        for chunk in ["a", "b"] {
            assert!(matches!(next(&mut handed).await, Some(Ok(given)) if given == chunk));
        }
        assert!(next(&mut handed).await.is_none());
        assert!(feeding.await.is_ok());
    }
}
