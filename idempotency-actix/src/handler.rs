//! Calls the handler on its own thread, for an exchange that may go anywhere.
//!
//! The exchange calls a [`Desk`]: that leaves an order and waits for the reply. The handler's thread has an [`errand`]
//! for every guarded request: it waits for the order, which a copy never gives, runs the handler, replies with the head
//! of its answer and reads the body out.

use std::{
    any::Any,
    cell::RefCell,
    convert::Infallible,
    panic::{AssertUnwindSafe, resume_unwind},
    pin::Pin,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use actix_web::{
    Error, HttpMessage, HttpRequest, HttpResponse,
    body::MessageBody,
    dev::{Payload, Service, ServiceRequest, ServiceResponse},
};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use idempotency_tower::{Attempt, RequestBody};
use tokio::{sync::oneshot, task::unconstrained};
use tracing::{Instrument, Span};

use crate::{
    body::{Handed, answered, payload},
    convert::answer,
    future::Local,
};

/// The handler, as the exchange sees it: it can be called once.
#[derive(Clone)]
pub(crate) struct Desk(Arc<Mutex<Option<oneshot::Sender<Order>>>>);

/// What an exchange wants of the handler.
pub(crate) struct Order {
    request: Request<RequestBody<Handed>>,
    span: Span,
    reply: oneshot::Sender<Reply>,
}

type Reply = Result<Response<Handed>, Panic>;

type Panic = Box<dyn Any + Send>;

/// A desk, and where its order comes in.
pub(crate) fn desk() -> (Desk, oneshot::Receiver<Order>) {
    let (give, take) = oneshot::channel();
    (Desk(Arc::new(Mutex::new(Some(give)))), take)
}

impl tower_service::Service<Request<RequestBody<Handed>>> for Desk {
    type Response = Response<Handed>;
    type Error = Infallible;
    type Future = Called;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody<Handed>>) -> Called {
        let (reply, replied) = oneshot::channel();
        let order = Order { request, span: Span::current(), reply };
        let desk = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(desk) = desk {
            // An order that nobody takes has no reply either.
            let _ = desk.send(order);
        }
        Called(Some(replied))
    }
}

/// The reply to come.
///
/// A reply that can no longer come, since the handler's thread ended with the handler in it, is waited for all the same:
/// nobody knows what the handler did, so its run must not end. It lapses.
pub(crate) struct Called(Option<oneshot::Receiver<Reply>>);

impl Future for Called {
    type Output = Result<Response<Handed>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(replied) = &mut self.0 else { return Poll::Pending };
        let reply = ready!(replied.poll_unpin(cx));
        self.0 = None;
        match reply {
            Ok(Ok(response)) => Poll::Ready(Ok(response)),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => Poll::Pending,
        }
    }
}

/// What came back from the handler's thread beside the reply.
#[derive(Default)]
pub(crate) struct Returned {
    /// The request, without which actix sends no response; none where the handler's service kept it.
    pub(crate) request: Option<HttpRequest>,
    /// The head of the handler's answer.
    pub(crate) head: Option<HttpResponse<()>>,
}

/// Runs the handler if that is ordered, to the last byte of its answer. It gets the `connection` in place of a body, where
/// the request is that of another protocol.
pub(crate) async fn errand<I, B>(
    inner: Rc<I>,
    request: HttpRequest,
    connection: Option<Payload>,
    ordered: oneshot::Receiver<Order>,
    returned: Rc<RefCell<Returned>>,
) where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
{
    // The poll in which the exchange ends must see that nobody orders any more, however much its task has done.
    let Ok(Order { request: asked, span, reply }) = unconstrained(ordered).await else {
        returned.borrow_mut().request = Some(request);
        return;
    };
    let request = again(request, connection, asked);
    let called = AssertUnwindSafe(async {
        match inner.call(request).await {
            Ok(response) => {
                let (request, response) = response.into_parts();
                returned.borrow_mut().request = Some(request);
                Answered::of(response)
            }
            // What actix makes of an error is an answer like any other.
            Err(error) => Answered::of(error.error_response()),
        }
    });
    match called.catch_unwind().instrument(span.clone()).await {
        Ok(answered) => answered.hand_over(reply, &returned).instrument(span).await,
        // Without a reader there is no run to tell.
        Err(panic) => drop(reply.send(Err(panic))),
    }
}

/// The request as it came to the guard, its body now the exchange's.
fn again(
    request: HttpRequest,
    connection: Option<Payload>,
    asked: Request<RequestBody<Handed>>,
) -> ServiceRequest {
    let (mut head, body) = asked.into_parts();
    let mut extensions = request.extensions_mut();
    match head.extensions.remove::<Attempt>() {
        Some(attempt) => drop(extensions.insert(attempt)),
        None => drop(extensions.remove::<Attempt>()),
    }
    drop(extensions);
    ServiceRequest::from_parts(request, connection.unwrap_or_else(|| payload(body)))
}

/// What the handler answered: the head, as actix has it and as the exchange does, and what reads the body out.
struct Answered {
    head: HttpResponse<()>,
    told: Response<Handed>,
    feeding: Option<Local>,
}

impl Answered {
    fn of<B: MessageBody + 'static>(response: HttpResponse<B>) -> Self {
        let (head, body) = response.into_parts();
        let (handed, feeding) = answered(body);
        // Every head of the one version of `http` is one of the other.
        let told = answer(&head, handed).unwrap_or_else(|_| {
            let mut failed = Response::new(Handed::whole(Bytes::new()));
            *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            failed
        });
        Self { head, told, feeding: feeding.map(|feeding| Box::pin(feeding) as Local) }
    }

    async fn hand_over(self, reply: oneshot::Sender<Reply>, returned: &RefCell<Returned>) {
        returned.borrow_mut().head = Some(self.head);
        if reply.send(Ok(self.told)).is_ok()
            && let Some(feeding) = self.feeding
        {
            feeding.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_whose_thread_ended_with_it_does_not_end() {
        let (reply, replied) = oneshot::channel();
        drop(reply);
        let mut called = Called(Some(replied));
        assert!((&mut called).now_or_never().is_none());
        assert!((&mut called).now_or_never().is_none(), "however often it is asked");
    }
}
