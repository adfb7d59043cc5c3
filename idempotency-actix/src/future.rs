//! The future of a request.

use std::{
    cell::RefCell,
    convert::Infallible,
    fmt,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use actix_web::{
    Error,
    body::{EitherBody, MessageBody},
    dev::ServiceResponse,
    rt,
};
use futures_util::future::{Either, select};
use http::Response;
use idempotency_tower::{ResponseBody, ResponseFuture};
use pin_project_lite::pin_project;

use crate::{
    GuardedBody,
    body::Handed,
    convert::response,
    error::Unaccompanied,
    handler::{Called, Returned},
};

/// Something done on the handler's thread.
pub(crate) type Local = Pin<Box<dyn Future<Output = ()>>>;

pin_project! {
    /// The response to come. Dropped after its claim was sent, the run goes on without it.
    pub struct IdempotencyFuture<F> {
        #[pin]
        kind: Kind<F>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<F> {
        Passing { #[pin] future: F },
        Unreadable { error: Option<Error> },
        Guarded { guarded: Guarded },
    }
}

impl<F> IdempotencyFuture<F> {
    pub(crate) const fn passing(future: F) -> Self {
        Self { kind: Kind::Passing { future } }
    }

    pub(crate) const fn unreadable(error: Error) -> Self {
        Self { kind: Kind::Unreadable { error: Some(error) } }
    }

    pub(crate) const fn guarded(guarded: Guarded) -> Self {
        Self { kind: Kind::Guarded { guarded } }
    }
}

impl<F, B> Future for IdempotencyFuture<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
    B: MessageBody,
{
    type Output = Result<ServiceResponse<EitherBody<B, GuardedBody>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindProjection::Passing { future } => {
                Poll::Ready(ready!(future.poll(cx)).map(ServiceResponse::map_into_left_body))
            }
            KindProjection::Unreadable { error } => {
                error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)))
            }
            KindProjection::Guarded { guarded } => {
                Poll::Ready(ready!(guarded.poll(cx)).map(ServiceResponse::map_into_right_body))
            }
        }
    }
}

impl<F> fmt::Debug for IdempotencyFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Passing { .. } => "IdempotencyFuture(passing)",
            Kind::Unreadable { .. } => "IdempotencyFuture(unreadable)",
            Kind::Guarded { .. } => "IdempotencyFuture(guarded)",
        })
    }
}

/// An exchange, and what is done for it on the handler's thread.
///
/// All of it is polled in its caller's place: nothing is spawned for a caller that stays until its answer is whole.
pub(crate) struct Guarded {
    exchange: ResponseFuture<Called, Handed, Infallible>,
    arriving: Option<Local>,
    errand: Option<Local>,
    returned: Rc<RefCell<Returned>>,
}

impl Guarded {
    pub(crate) fn new(
        exchange: ResponseFuture<Called, Handed, Infallible>,
        arriving: Option<Local>,
        errand: Local,
        returned: Rc<RefCell<Returned>>,
    ) -> Self {
        Self { exchange, arriving, errand: Some(errand), returned }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ServiceResponse<GuardedBody>, Error>> {
        loop {
            if let Poll::Ready(Ok(answered)) = Pin::new(&mut self.exchange).poll(cx) {
                // Now that nobody orders any more, an errand without an order gives the request back.
                if !has_ended(&mut self.errand, cx) {
                    self.go_on();
                }
                return Poll::Ready(self.accompany(answered));
            }
            let has_arrived = has_ended(&mut self.arriving, cx);
            if !(has_ended(&mut self.errand, cx) || has_arrived) {
                return Poll::Pending;
            }
        }
    }

    /// The handler, or the rest of its answer, goes on without whoever polls this, and may read its request meanwhile.
    fn go_on(&mut self) {
        let Some(errand) = self.errand.take() else { return };
        match self.arriving.take() {
            None => drop(rt::spawn(errand)),
            Some(arriving) => drop(rt::spawn(async {
                if let Either::Right(((), errand)) = select(errand, arriving).await {
                    errand.await;
                }
            })),
        }
    }

    fn accompany(
        &self,
        answered: Response<ResponseBody<Handed>>,
    ) -> Result<ServiceResponse<GuardedBody>, Error> {
        let (answered, body) = answered.into_parts();
        let Returned { request, head } = self.returned.take();
        let response = response(head, &answered).set_body(GuardedBody::new(body));
        match request {
            Some(request) => Ok(ServiceResponse::new(request, response)),
            None => Err(Unaccompanied::new(response.map_into_boxed_body()).into()),
        }
    }
}

/// Whether this poll is the one that ends it.
fn has_ended(local: &mut Option<Local>, cx: &mut Context<'_>) -> bool {
    let ended = local.as_mut().is_some_and(|local| local.as_mut().poll(cx).is_ready());
    if ended {
        *local = None;
    }
    ended
}

impl Drop for Guarded {
    /// Without an order there is nothing to go on with.
    fn drop(&mut self) {
        self.go_on();
    }
}
