//! Runs the handler under its permit, and keeps or releases what it answers.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header, response::Parts};
use http_body::Body;
use idempotency_core::{
    Address, Claim, Permit, Store, Vacant,
    profile::http::{Code, Ending, Refusal, ending_of},
};
use tower::util::Oneshot;
use tower_service::Service;

use crate::{
    Policy, Protocol, Verdict,
    answer::answer,
    body::{RequestBody, ResponseBody},
    caller::Presence,
    closing::{Captured, Closed, Closing},
    convert::{Draft, strip_markers},
    error::BoxError,
    gather::{Collected, collect},
    layer::DoorState,
    observability::log,
    pump::Pump,
    refusal::refuse,
};

/// Calls the inner service, then makes its answer the run's. One future follows the other in the same place.
pub(crate) fn run<I, S, Q, P>(
    inner: I,
    request: Request<RequestBody<Q>>,
    permit: Permit<S>,
    door: Arc<DoorState<S>>,
    presence: Arc<Presence>,
) -> impl Future<Output = Result<Response<ResponseBody<P>>, I::Error>>
where
    I: Service<Request<RequestBody<Q>>, Response = Response<P>>,
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    call(inner, request).then(move |called| conclude(called, permit, door, presence))
}

async fn conclude<S, P, E>(
    called: Called<P, E>,
    permit: Permit<S>,
    door: Arc<DoorState<S>>,
    presence: Arc<Presence>,
) -> Result<Response<ResponseBody<P>>, E>
where
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    let address = permit.lease().address;
    match called {
        Ok(Ok(response)) => {
            let finished = AssertUnwindSafe(finish(response, permit, &door, &presence));
            Ok(finished.catch_unwind().await.unwrap_or_else(|_| {
                log::panicked(&address);
                refuse(&door.policy, &Refusal::panicked())
            }))
        }
        Ok(Err(error)) => {
            log::inner_failed(&address);
            Box::pin(fail(permit, &door)).await;
            Err(error)
        }
        Err(_) => {
            log::panicked(&address);
            Box::pin(fail(permit, &door)).await;
            Ok(refuse(&door.policy, &Refusal::panicked()))
        }
    }
}

// The ways through a run are boxed where they are taken: every guarded request pays for the size of the whole future.

/// Calls the inner service once it is ready; a panic is caught.
pub(crate) fn call<I, R>(
    inner: I,
    request: R,
) -> impl Future<Output = Result<Result<I::Response, I::Error>, Panic>>
where
    I: Service<R>,
{
    AssertUnwindSafe(Oneshot::new(inner, request)).catch_unwind()
}

/// What became of the call: an answer, the inner service's error, or a panic.
type Called<P, E> = Result<Result<Response<P>, E>, Panic>;

type Panic = Box<dyn Any + Send>;

/// A run without an answer ends as a server error; where those are kept, a tombstone stands for the answer.
async fn fail<S: Store>(permit: Permit<S>, door: &Arc<DoorState<S>>) {
    let ending = door.policy.on_server_error.ending();
    let draft = Draft::new(&door.policy, StatusCode::INTERNAL_SERVER_ERROR, &HeaderMap::new());
    // Whoever took its place, this caller learns that its run failed.
    let _ = Closing::new(permit, ending, draft, Arc::clone(door)).close(Captured::TooLarge).await;
}

async fn finish<S, P>(
    response: Response<P>,
    permit: Permit<S>,
    door: &Arc<DoorState<S>>,
    presence: &Presence,
) -> Response<ResponseBody<P>>
where
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    let (mut head, body) = response.into_parts();
    let Ok(exact) = exact_length(&body) else {
        log::panicked(&permit.lease().address);
        Box::pin(fail(permit, door)).await;
        return refuse(&door.policy, &Refusal::panicked());
    };
    let said = said_of(&head, &door.policy);
    strip_markers(&mut head.headers, &door.policy.replayed_header);
    let lease = permit.lease();
    head.extensions.insert(Verdict::Ran { fence: lease.fence, attempt: lease.attempt });
    let draft = Draft::new(&door.policy, head.status, &head.headers);
    let closing = match (said, door.policy.protocol) {
        (None, Some(protocol)) if head.status == StatusCode::OK => {
            Closing::new(permit, Ending::Keep, draft, Arc::clone(door)).unless_trailers_say(protocol)
        }
        (said, _) => {
            let by_status = || ending_of(head.status.as_u16(), door.policy.on_server_error);
            Closing::new(permit, said.unwrap_or_else(by_status), draft, Arc::clone(door))
        }
    };
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Box::pin(upgrade(head, body, closing)).await;
    }
    match usize::try_from(exact.unwrap_or(u64::MAX)) {
        Ok(length) if length <= closing.cap() => {
            Box::pin(in_memory(head, body, length, closing, presence)).await
        }
        _ => Box::pin(streamed(head, body, closing, exact)).await,
    }
}

/// The ending that the handler says, or a protocol by the head of its answer.
fn said_of(head: &Parts, policy: &Policy) -> Option<Ending> {
    // Left where it is, for a layer around this one.
    let said = head.extensions.get::<Ending>().copied();
    let is_of_protocol = |_: &Protocol| head.status == StatusCode::OK;
    said.or_else(|| {
        let protocol = policy.protocol.filter(is_of_protocol)?;
        (protocol.ending)(&head.headers, policy.on_server_error)
    })
}

fn exact_length(body: &impl Body) -> Result<Option<u64>, Panic> {
    catch_unwind(AssertUnwindSafe(|| body.size_hint().exact()))
}

/// An upgraded connection cannot be given back: the key is free, and the answer passes untouched.
async fn upgrade<S: Store, P>(head: Parts, body: P, closing: Closing<S>) -> Response<ResponseBody<P>> {
    let _ = closing.with_ending(Ending::NotExecuted).close(Captured::TooLarge).await;
    Response::from_parts(head, ResponseBody::own(body))
}

/// A body of known size within the cap is stored before the head is sent.
async fn in_memory<S, P>(
    head: Parts,
    body: P,
    length: usize,
    closing: Closing<S>,
    presence: &Presence,
) -> Response<ResponseBody<P>>
where
    P: Body<Data = Bytes>,
    P::Error: Into<BoxError>,
    S: Store,
{
    let address = *closing.address();
    let door = Arc::clone(closing.door());
    let declared = content_length(&head).unwrap_or(length as u64);
    let (captured, response) = match collect(body, length, presence, &address).await {
        Collected::Whole(held) if held.bytes.len() as u64 == declared => {
            let mut told = held.clone();
            if let Some(trailers) = &mut told.trailers {
                strip_markers(trailers, &door.policy.replayed_header);
            }
            let response = Response::from_parts(head, ResponseBody::held(told));
            (Captured::Whole(held), response)
        }
        Collected::Whole(_) | Collected::Broken => (Captured::Broken, refuse(&door.policy, &broken())),
        Collected::Abandoned => (Captured::Abandoned, refuse(&door.policy, &broken())),
    };
    match closing.close(captured).await {
        Closed::Settled => response,
        Closed::TakenOver(standing) => late(&door, &address, standing),
    }
}

fn broken() -> Refusal {
    Refusal::new(Code::Internal, "the response body broke off before it was whole")
}

/// Any other body is fed to the client by a pump of the run's own.
async fn streamed<S, P>(
    head: Parts,
    body: P,
    closing: Closing<S>,
    exact: Option<u64>,
) -> Response<ResponseBody<P>>
where
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    let address = *closing.address();
    let door = Arc::clone(closing.door());
    // What is known not to be kept is settled before a byte of it is sent.
    let closing = if exact.is_some() && closing.keeps_body() || closing.keeps_head_only() {
        match closing.close(Captured::TooLarge).await {
            Closed::Settled => None,
            Closed::TakenOver(standing) => return late(&door, &address, standing),
        }
    } else {
        Some(closing)
    };
    let declared = content_length(&head).or(exact);
    let marker = door.policy.replayed_header.clone();
    let reader = Pump::start(body, closing, address, exact, declared, marker);
    Response::from_parts(head, ResponseBody::pumped(reader))
}

/// The length an answer declares of its own body.
fn content_length(head: &Parts) -> Option<u64> {
    if matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return None; // it is another answer's, if it is there
    }
    head.headers.get(header::CONTENT_LENGTH).map(HeaderValue::to_str)?.ok()?.parse().ok()
}

/// What the caller of a run gets whose place another one took: that one's outcome, or a conflict while it runs.
fn late<S: Store, P>(
    door: &DoorState<S>,
    address: &Address,
    standing: Option<Claim<Vacant>>,
) -> Response<ResponseBody<P>> {
    let unknown = Claim::InFlight { left: Duration::ZERO };
    answer(&door.policy, address, standing.unwrap_or(unknown))
}
