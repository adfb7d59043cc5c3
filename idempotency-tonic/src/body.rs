//! The request body of a guarded call: one message, and its end soon after.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use idempotency_tower::{BodyRefused, BoxError, Code, Refusal};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use crate::message::PREFIX;

/// How long a call may stay open after its first message. A unary call ends with it; one that waits for an answer first
/// would wait for ever.
pub(crate) const OPEN_LIMIT: Duration = Duration::from_secs(5);

pin_project! {
    /// Refuses a body of two messages, and one that stays open after its first.
    pub(crate) struct OneMessage<B> {
        #[pin]
        body: B,
        count: Count,
        open: Option<Pin<Box<Sleep>>>,
    }
}

impl<B> OneMessage<B> {
    pub(crate) fn new(body: B) -> Self {
        Self { body, count: Count::default(), open: None }
    }
}

impl<B> Body for OneMessage<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.project();
        let frame = match this.body.poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                if this.count.is_whole() {
                    let open = this.open.get_or_insert_with(|| Box::pin(sleep(OPEN_LIMIT)));
                    ready!(open.as_mut().poll(cx));
                    return Poll::Ready(Some(Err(streams().into())));
                }
                return Poll::Pending;
            }
        };
        Poll::Ready(match frame {
            Some(Ok(frame)) if frame.data_ref().is_some_and(|data| !this.count.takes(data)) => {
                Some(Err(streams().into()))
            }
            other => other.map(|frame| frame.map_err(Into::into)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn streams() -> BodyRefused {
    BodyRefused(streaming_refusal())
}

/// Why a keyed call that streams its requests is refused.
pub(crate) fn streaming_refusal() -> Refusal {
    Refusal::new(
        Code::UnreadableBody,
        "a key guards calls of one request message, and this call streams its requests; nothing was run",
    )
}

/// How far into its first message a body is.
#[derive(Debug, Default)]
struct Count {
    prefix: Vec<u8>,
    /// What is left of the message, once its prefix is whole.
    left: Option<usize>,
}

impl Count {
    fn is_whole(&self) -> bool {
        self.left == Some(0)
    }

    /// Whether `data` is no more than the rest of the first message.
    fn takes(&mut self, mut data: &[u8]) -> bool {
        let left = match self.left {
            Some(left) => left,
            None => {
                let (prefix, rest) = data.split_at(data.len().min(PREFIX - self.prefix.len()));
                self.prefix.extend_from_slice(prefix);
                data = rest;
                let Some((_, length)) = self.prefix.split_first_chunk::<1>() else { return true };
                let Ok(length) = <[u8; 4]>::try_from(length) else { return true };
                u32::from_be_bytes(length) as usize
            }
        };
        self.left = Some(left.saturating_sub(data.len()));
        data.len() <= left
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn is_one(chunks: &[&[u8]]) -> (bool, bool) {
        let mut count = Count::default();
        (chunks.iter().all(|chunk| count.takes(chunk)), count.is_whole())
    }

    #[test]
    fn one_message_is_taken_however_it_is_cut() {
        assert_eq!(is_one(&[b"\0\0\0\0\x03tea"]), (true, true));
        assert_eq!(is_one(&[b"\0\0", b"", b"\0\0\x03t", b"e", b"a"]), (true, true));
        assert_eq!(is_one(&[b"\0\0\0\0\0"]), (true, true));
        assert_eq!(is_one(&[b"\0\0\0\0\x03te"]), (true, false));
        assert_eq!(is_one(&[b"\0\0"]), (true, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stays_open_after_its_message_is_refused() {
        let (mut send, body) = http_body_util::channel::Channel::<Bytes>::new(1);
        send.send_data(Bytes::from_static(b"\0\0\0\0\x03tea")).await.unwrap();
        let error = OneMessage::new(body).collect().await.unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&streams()));
        let (mut send, body) = http_body_util::channel::Channel::<Bytes>::new(1);
        send.send_data(Bytes::from_static(b"\0\0\0\0\x03te")).await.unwrap();
        let mut body = std::pin::pin!(OneMessage::new(body));
        assert!(body.frame().await.is_some());
        let unfinished = tokio::time::timeout(OPEN_LIMIT * 2, body.frame()).await;
        assert!(unfinished.is_err(), "half a message is waited for as long as the server does");
    }

    #[test]
    fn a_second_message_is_not() {
        assert!(!is_one(&[b"\0\0\0\0\x03tea\0"]).0);
        assert!(!is_one(&[b"\0\0\0\0\x03tea", b"\0"]).0);
        assert!(!is_one(&[b"\0\0\0\0\0", b"\0\0\0\0\0"]).0);
    }
}
