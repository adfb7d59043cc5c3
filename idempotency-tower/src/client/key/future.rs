//! The future of a request with a key.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::Request;
use http_body::Body;
use http_body_util::{BodyExt, combinators::Collect};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::rules::Rules;
use crate::{
    BoxError,
    client::{Misuse, OperationKey},
};

pin_project! {
    /// The response to come.
    pub struct KeyFuture<I, B>
    where
        I: Service<Request<B>>,
        B: Body,
    {
        #[pin]
        state: State<I, B>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<I, B>
    where
        I: Service<Request<B>>,
        B: Body,
    {
        Sent { #[pin] answer: I::Future },
        Refused { misuse: Option<Misuse> },
        Binding { #[pin] body: Collect<B>, binding: Option<Box<Binding<I, B>>> },
    }
}

/// A request that waits for its key to be held against its body.
pub(super) struct Binding<I, B> {
    pub(super) inner: I,
    pub(super) rules: Arc<Rules>,
    pub(super) operation: OperationKey,
    pub(super) request: Request<B>,
}

impl<I: Service<Request<B>>, B: Body> Binding<I, B> {
    fn send(self, body: &[u8]) -> Result<I::Future, Misuse> {
        let Self { mut inner, rules, operation, request } = self;
        let (parts, own_body) = request.into_parts();
        operation.bind(&parts, body)?;
        let mut request = Request::from_parts(parts, own_body);
        rules.write(operation.key(), &mut request)?;
        Ok(inner.call(request))
    }
}

impl<I, B> KeyFuture<I, B>
where
    I: Service<Request<B>>,
    B: Body,
{
    pub(super) const fn sent(answer: I::Future) -> Self {
        Self { state: State::Sent { answer } }
    }

    pub(super) const fn refused(misuse: Misuse) -> Self {
        Self { state: State::Refused { misuse: Some(misuse) } }
    }

    pub(super) fn binding(binding: Binding<I, B>) -> Self
    where
        B: Clone,
    {
        let body = binding.request.body().clone().collect();
        Self { state: State::Binding { body, binding: Some(Box::new(binding)) } }
    }
}

impl<I, B> Future for KeyFuture<I, B>
where
    I: Service<Request<B>>,
    I::Error: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
{
    type Output = Result<I::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Sent { answer } => return answer.poll(cx).map_err(Into::into),
                StateProjection::Refused { misuse } => {
                    return misuse.take().map_or(Poll::Pending, |misuse| Poll::Ready(Err(misuse.into())));
                }
                StateProjection::Binding { body, binding } => {
                    let body = ready!(body.poll(cx)).map_err(Into::into)?.to_bytes();
                    let Some(binding) = binding.take() else { return Poll::Pending };
                    State::Sent { answer: binding.send(&body)? }
                }
            };
            state.set(next);
        }
    }
}

impl<I, B> fmt::Debug for KeyFuture<I, B>
where
    I: Service<Request<B>>,
    B: Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Sent { .. } => "KeyFuture(sent)",
            State::Refused { .. } => "KeyFuture(refused)",
            State::Binding { .. } => "KeyFuture(binding)",
        })
    }
}
