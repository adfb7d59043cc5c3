//! A body that was looked into and is given on whole.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use pin_project_lite::pin_project;

pin_project! {
    /// The inner service's body, with what was read of it put back in front.
    pub struct PeekedBody<P>
    where
        P: Body,
    {
        #[pin]
        inner: Inner<P>,
    }
}

pin_project! {
    #[project = InnerProjection]
    enum Inner<P>
    where
        P: Body,
    {
        Unread { #[pin] body: P },
        Peeked { front: Front<P>, rest: Pin<Box<P>> },
    }
}

/// Frames already read, and the error that reading ended with if it did.
type Front<P> = VecDeque<Result<Frame<<P as Body>::Data>, <P as Body>::Error>>;

impl<P: Body> PeekedBody<P> {
    pub(super) const fn unread(body: P) -> Self {
        Self { inner: Inner::Unread { body } }
    }
}

impl<P: Body<Data = Bytes>> PeekedBody<P> {
    /// Reads at most about `limit` bytes of `body`. Gives the bytes too when they are all of it.
    pub(super) async fn peek(body: P, limit: usize) -> (Self, Option<Vec<u8>>) {
        if body.size_hint().lower() > limit as u64 {
            return (Self::unread(body), None);
        }
        let (mut front, mut read, mut rest) = (VecDeque::new(), Vec::new(), Box::pin(body));
        let is_whole = loop {
            let Some(frame) = rest.frame().await else { break true };
            let data = frame.as_ref().ok().and_then(|frame| frame.data_ref());
            read.extend_from_slice(data.map_or(&[], |data| data));
            let is_broken = frame.is_err();
            front.push_back(frame);
            if is_broken || read.len() > limit {
                break false;
            }
        };
        (Self { inner: Inner::Peeked { front, rest } }, is_whole.then_some(read))
    }
}

impl<P: Body<Data = Bytes>> Body for PeekedBody<P> {
    type Data = Bytes;
    type Error = P::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, P::Error>>> {
        match self.project().inner.project() {
            InnerProjection::Unread { body } => body.poll_frame(cx),
            InnerProjection::Peeked { front, rest } => match front.pop_front() {
                Some(frame) => Poll::Ready(Some(frame)),
                None => rest.as_mut().poll_frame(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Unread { body } => body.is_end_stream(),
            Inner::Peeked { front, rest } => front.is_empty() && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Unread { body } => body.size_hint(),
            Inner::Peeked { front, rest } => {
                let frames = front.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref());
                let read = frames.map(|data| data.len() as u64).sum::<u64>();
                let mut hint = rest.size_hint();
                if let Some(upper) = hint.upper() {
                    hint.set_upper(upper.saturating_add(read));
                }
                hint.set_lower(hint.lower().saturating_add(read));
                hint
            }
        }
    }
}

impl<P: Body> fmt::Debug for PeekedBody<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.inner {
            Inner::Unread { .. } => "PeekedBody(unread)",
            Inner::Peeked { .. } => "PeekedBody(peeked)",
        })
    }
}

#[cfg(test)]
mod tests;
