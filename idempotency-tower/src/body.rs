//! The bodies that pass through the door, both ways.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::{error::BoxError, pipe::Reader};

/// What a body still has to give that is held in memory.
#[derive(Clone, Default)]
pub(crate) struct Held {
    pub(crate) bytes: Bytes,
    /// In a box: hardly any body has them, and each is moved often.
    pub(crate) trailers: Option<Box<HeaderMap>>,
}

impl Held {
    fn next_frame(&mut self) -> Option<Frame<Bytes>> {
        if self.bytes.is_empty() {
            return self.trailers.take().map(|trailers| Frame::trailers(*trailers));
        }
        Some(Frame::data(std::mem::take(&mut self.bytes)))
    }

    fn is_end(&self) -> bool {
        self.bytes.is_empty() && self.trailers.is_none()
    }

    /// Exact, unless trailers follow: HTTP/1.1 can only send them after a body of undeclared length.
    fn size_hint(&self) -> SizeHint {
        let length = self.bytes.len() as u64;
        if self.trailers.is_none() {
            return SizeHint::with_exact(length);
        }
        let mut hint = SizeHint::new();
        hint.set_lower(length);
        hint
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({} bytes)", self.bytes.len())
    }
}

pin_project! {
    /// The body the inner service reads: the caller's own, or, where a key is guarded, the bytes already read.
    pub struct RequestBody<B> {
        #[pin]
        inner: RequestInner<B>,
    }
}

pin_project! {
    #[project = RequestProjection]
    enum RequestInner<B> {
        Unread { #[pin] body: B },
        Read { held: Held },
        Resumed { held: Held, error: Option<BoxError>, body: Pin<Box<B>> },
    }
}

impl<B> RequestBody<B> {
    pub(crate) const fn unread(body: B) -> Self {
        Self { inner: RequestInner::Unread { body } }
    }

    /// What was read so far, then how the reading ended or what is left to read.
    pub(crate) const fn resumed(held: Held, error: Option<BoxError>, body: Pin<Box<B>>) -> Self {
        Self { inner: RequestInner::Resumed { held, error, body } }
    }

    pub(crate) const fn read(held: Held) -> Self {
        Self { inner: RequestInner::Read { held } }
    }

    /// What `unread` makes of the caller's own body, or `read` of this one, where something of the caller's was read.
    pub fn fold<T>(self, unread: impl FnOnce(B) -> T, read: impl FnOnce(Self) -> T) -> T {
        match self.inner {
            RequestInner::Unread { body } => unread(body),
            inner => read(Self { inner }),
        }
    }
}

impl<B> Body for RequestBody<B>
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
        match self.project().inner.project() {
            RequestProjection::Unread { body } => body.poll_frame(cx).map_err(Into::into),
            RequestProjection::Read { held } => Poll::Ready(held.next_frame().map(Ok)),
            RequestProjection::Resumed { held, error, body } => match (held.next_frame(), error.take()) {
                (Some(frame), unsent) => {
                    *error = unsent;
                    Poll::Ready(Some(Ok(frame)))
                }
                (None, Some(error)) => Poll::Ready(Some(Err(error))),
                (None, None) => body.as_mut().poll_frame(cx).map_err(Into::into),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            RequestInner::Unread { body } => body.is_end_stream(),
            RequestInner::Read { held } => held.is_end(),
            RequestInner::Resumed { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            RequestInner::Unread { body } => body.size_hint(),
            RequestInner::Read { held } => held.size_hint(),
            RequestInner::Resumed { .. } => SizeHint::default(),
        }
    }
}

impl<B> fmt::Debug for RequestBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.inner {
            RequestInner::Unread { .. } => "RequestBody(unread)",
            RequestInner::Read { .. } => "RequestBody(read)",
            RequestInner::Resumed { .. } => "RequestBody(resumed)",
        })
    }
}

pin_project! {
    /// The body the caller reads: the handler's own, bytes in memory, or what the run's pump feeds.
    pub struct ResponseBody<B> {
        #[pin]
        inner: ResponseInner<B>,
    }
}

pin_project! {
    #[project = ResponseProjection]
    enum ResponseInner<B> {
        Own { #[pin] body: B },
        Held { held: Held },
        Pumped { reader: Reader },
    }
}

impl<B> ResponseBody<B> {
    pub(crate) const fn own(body: B) -> Self {
        Self { inner: ResponseInner::Own { body } }
    }

    pub(crate) const fn held(held: Held) -> Self {
        Self { inner: ResponseInner::Held { held } }
    }

    pub(crate) const fn pumped(reader: Reader) -> Self {
        Self { inner: ResponseInner::Pumped { reader } }
    }

    /// What `own` makes of the handler's own body, or `other` of this one, where the handler's does not pass untouched.
    pub fn fold<T>(self, own: impl FnOnce(B) -> T, other: impl FnOnce(Self) -> T) -> T {
        match self.inner {
            ResponseInner::Own { body } => own(body),
            inner => other(Self { inner }),
        }
    }
}

impl<B> Body for ResponseBody<B>
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
        match self.project().inner.project() {
            ResponseProjection::Own { body } => body.poll_frame(cx).map_err(Into::into),
            ResponseProjection::Held { held } => Poll::Ready(held.next_frame().map(Ok)),
            ResponseProjection::Pumped { reader } => reader.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            ResponseInner::Own { body } => body.is_end_stream(),
            ResponseInner::Held { held } => held.is_end(),
            ResponseInner::Pumped { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            ResponseInner::Own { body } => body.size_hint(),
            ResponseInner::Held { held } => held.size_hint(),
            ResponseInner::Pumped { reader } => reader.size_hint(),
        }
    }
}

/// No bytes: what layers outside, such as a timeout's, answer with.
impl<B> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::held(Held::default())
    }
}

impl<B> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.inner {
            ResponseInner::Own { .. } => "ResponseBody(own)",
            ResponseInner::Held { .. } => "ResponseBody(held)",
            ResponseInner::Pumped { .. } => "ResponseBody(pumped)",
        })
    }
}
