//! The future of a call.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::Response;
use http_body::Body as HttpBody;
use idempotency_tower::{BoxError, ResponseBody, ResponseFuture};
use pin_project_lite::pin_project;
use tonic::body::Body;

use crate::ending::strip;

pin_project! {
    /// The response to come, with tonic's body. Dropped after its claim was sent, the run goes on without it.
    pub struct GrpcIdempotencyFuture<F, P, E>
    where
        P: Send,
        P: 'static,
        E: Send,
        E: 'static,
    {
        #[pin]
        kind: Kind<F, P, E>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<F, P, E>
    where
        P: Send,
        P: 'static,
        E: Send,
        E: 'static,
    {
        Taken { #[pin] response: ResponseFuture<F, P, E> },
        Refused { response: Option<Response<Body>> },
    }
}

impl<F, P: Send + 'static, E: Send + 'static> GrpcIdempotencyFuture<F, P, E> {
    pub(crate) const fn new(response: ResponseFuture<F, P, E>) -> Self {
        Self { kind: Kind::Taken { response } }
    }

    pub(crate) const fn refused(response: Response<Body>) -> Self {
        Self { kind: Kind::Refused { response: Some(response) } }
    }
}

impl<F, P, E> Future for GrpcIdempotencyFuture<F, P, E>
where
    F: Future<Output = Result<Response<P>, E>>,
    P: HttpBody<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    E: Send + 'static,
{
    type Output = Result<Response<Body>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindProjection::Taken { response } => {
                let outside = |body: ResponseBody<P>| body.fold(Body::new, Body::new);
                Poll::Ready(ready!(response.poll(cx)).map(|mut response| {
                    strip(response.headers_mut());
                    response.map(outside)
                }))
            }
            KindProjection::Refused { response } => {
                response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)))
            }
        }
    }
}

impl<F, P: Send + 'static, E: Send + 'static> fmt::Debug for GrpcIdempotencyFuture<F, P, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Taken { .. } => "GrpcIdempotencyFuture(taken)",
            Kind::Refused { .. } => "GrpcIdempotencyFuture(refused)",
        })
    }
}
