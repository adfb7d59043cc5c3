//! Sends a request until there is an answer.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use idempotency_core::profile::http::Code;
use tokio::time::{Instant, sleep};
use tower_service::Service;

use super::{Decision, PeekedBody, RetryFuture, RetryTerms};
use crate::client::key::Keyed;

/// The longest refusal that is read to know it by. The guard's own are a tenth of it.
const MAX_REFUSAL_BYTES: usize = 16 * 1024;

/// The service a [`RetryLayer`](super::RetryLayer) makes. Its errors are the inner service's.
#[derive(Debug, Clone)]
pub struct RetryService<I> {
    inner: I,
    terms: Arc<RetryTerms>,
}

impl<I> RetryService<I> {
    pub(super) const fn new(inner: I, terms: Arc<RetryTerms>) -> Self {
        Self { inner, terms }
    }
}

impl<I, B, P> Service<Request<B>> for RetryService<I>
where
    I: Service<Request<B>, Response = Response<P>> + Clone + Send + 'static,
    I::Future: Send,
    I::Error: Send + 'static,
    B: Clone + Send + 'static,
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Send,
{
    type Response = Response<PeekedBody<P>>;
    type Error = I::Error;
    type Future = RetryFuture<I::Future, P, I::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.extensions().get::<Keyed>().is_none() {
            return RetryFuture::once(self.inner.call(request));
        }
        // The instance that is ready goes with the request; the one left in its place must become ready itself.
        let next = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, next);
        RetryFuture::tries(until_answered(ready, request, Arc::clone(&self.terms)))
    }
}

async fn until_answered<I, B, P>(
    mut inner: I,
    request: Request<B>,
    terms: Arc<RetryTerms>,
) -> Result<Response<PeekedBody<P>>, I::Error>
where
    I: Service<Request<B>, Response = Response<P>>,
    B: Clone,
    P: Body<Data = Bytes>,
{
    let start = Instant::now();
    let mut retries = 0;
    loop {
        let (outcome, reason) = attempt(&mut inner, request.clone(), &terms).await;
        let Some(reason) = reason else { return outcome };
        let Some(wait) = terms.wait(retries, start.elapsed(), reason.after()) else { return outcome };
        drop(outcome); // a connection is not held through the wait
        retries += 1;
        tracing::debug!(retries, ?wait, reason = reason.name(), "a keyed request is tried again");
        sleep(wait).await;
        poll_fn(|cx| inner.poll_ready(cx)).await?;
    }
}

/// Why a request is tried again.
enum Reason {
    Refused { code: Code, after: Option<Duration> },
    Failed,
}

impl Reason {
    const fn after(&self) -> Option<Duration> {
        match self {
            Self::Refused { after, .. } => *after,
            Self::Failed => None,
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Refused { code, .. } => code.name(),
            Self::Failed => "error",
        }
    }
}

/// One try of a service that is ready: what it gave, and why it is not the last one if it need not be.
async fn attempt<I, B, P>(
    inner: &mut I,
    request: Request<B>,
    terms: &RetryTerms,
) -> (Result<Response<PeekedBody<P>>, I::Error>, Option<Reason>)
where
    I: Service<Request<B>, Response = Response<P>>,
    P: Body<Data = Bytes>,
{
    let response = match inner.call(request).await {
        Ok(response) => response,
        Err(error) => return (Err(error), Some(Reason::Failed)),
    };
    let (head, body) = response.into_parts();
    if !Decision::depends_on_body(&head) {
        return (Ok(Response::from_parts(head, PeekedBody::unread(body))), None);
    }
    let (body, whole) = PeekedBody::peek(body, MAX_REFUSAL_BYTES).await;
    let reason = whole.and_then(|whole| match terms.decide(&head, &whole) {
        Decision::Answer => None,
        Decision::Retry { code, after } => Some(Reason::Refused { code, after }),
    });
    (Ok(Response::from_parts(head, body)), reason)
}
