//! The future of a request that may be tried again.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;

use super::PeekedBody;

type Tries<P, E> = Pin<Box<dyn Future<Output = Result<Response<PeekedBody<P>>, E>> + Send>>;

pin_project! {
    /// The response to come.
    pub struct RetryFuture<F, P, E>
    where
        P: Body,
    {
        #[pin]
        kind: Kind<F, P, E>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<F, P, E>
    where
        P: Body,
    {
        Once { #[pin] answer: F },
        Tries { tries: Tries<P, E> },
    }
}

impl<F, P: Body, E> RetryFuture<F, P, E> {
    pub(super) const fn once(answer: F) -> Self {
        Self { kind: Kind::Once { answer } }
    }

    pub(super) fn tries(
        tries: impl Future<Output = Result<Response<PeekedBody<P>>, E>> + Send + 'static,
    ) -> Self {
        Self { kind: Kind::Tries { tries: Box::pin(tries) } }
    }
}

impl<F, P, E> Future for RetryFuture<F, P, E>
where
    F: Future<Output = Result<Response<P>, E>>,
    P: Body,
{
    type Output = Result<Response<PeekedBody<P>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindProjection::Once { answer } => {
                Poll::Ready(ready!(answer.poll(cx)).map(|response| response.map(PeekedBody::unread)))
            }
            KindProjection::Tries { tries } => tries.as_mut().poll(cx),
        }
    }
}

impl<F, P: Body, E> fmt::Debug for RetryFuture<F, P, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            Kind::Once { .. } => "RetryFuture(once)",
            Kind::Tries { .. } => "RetryFuture(tries)",
        })
    }
}
