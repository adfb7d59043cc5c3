//! The future of a request.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use pin_project_lite::pin_project;

use crate::{body::ResponseBody, caller::Exchange};

pin_project! {
    /// The response to come. Dropped after its claim was sent, the run goes on without it.
    pub struct ResponseFuture<F, B, E>
    where
        B: Send,
        B: 'static,
        E: Send,
        E: 'static,
    {
        #[pin]
        kind: Kind<F, B, E>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<F, B, E>
    where
        B: Send,
        B: 'static,
        E: Send,
        E: 'static,
    {
        Unguarded { #[pin] future: F },
        Refused { response: Option<Response<ResponseBody<B>>> },
        Guarded { exchange: Exchange<Result<Response<ResponseBody<B>>, E>> },
    }
}

impl<F, B: Send + 'static, E: Send + 'static> ResponseFuture<F, B, E> {
    pub(crate) const fn unguarded(future: F) -> Self {
        Self { kind: Kind::Unguarded { future } }
    }

    pub(crate) const fn refused(response: Response<ResponseBody<B>>) -> Self {
        Self { kind: Kind::Refused { response: Some(response) } }
    }

    pub(crate) const fn guarded(exchange: Exchange<Result<Response<ResponseBody<B>>, E>>) -> Self {
        Self { kind: Kind::Guarded { exchange } }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Send + 'static,
    E: Send + 'static,
{
    type Output = Result<Response<ResponseBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindProjection::Unguarded { future } => {
                Poll::Ready(ready!(future.poll(cx)).map(|response| response.map(ResponseBody::own)))
            }
            KindProjection::Refused { response } => {
                response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)))
            }
            KindProjection::Guarded { exchange } => exchange.poll(cx),
        }
    }
}

impl<F, B: Send + 'static, E: Send + 'static> fmt::Debug for ResponseFuture<F, B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            Kind::Unguarded { .. } => "ResponseFuture(unguarded)",
            Kind::Refused { .. } => "ResponseFuture(refused)",
            Kind::Guarded { .. } => "ResponseFuture(guarded)",
        })
    }
}
