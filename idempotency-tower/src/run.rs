//! Runs the handler under its permit, and keeps or releases what it answers.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, future::Either};
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
    convert::{Draft, Room, strip_markers},
    error::{BoxError, Panic},
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

fn conclude<S, P, E>(
    called: Called<P, E>,
    permit: Permit<S>,
    door: Arc<DoorState<S>>,
    presence: Arc<Presence>,
) -> impl Future<Output = Result<Response<ResponseBody<P>>, E>>
where
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    let address = permit.lease().address;
    let answered = match called {
        Ok(Ok(response)) => Answered::read(response, permit, &door),
        Ok(Err(error)) => Err(Failed { error: Some(error), permit }),
        Err(_) => Err(Failed { error: None, permit }),
    };
    match answered {
        Ok(answered) => {
            let finished = AssertUnwindSafe(finish(answered, Arc::clone(&door), presence));
            Either::Left(finished.catch_unwind().map(move |finished| {
                Ok(finished.unwrap_or_else(|_| {
                    log::panicked(&address);
                    refuse(&door.policy, &Refusal::panicked())
                }))
            }))
        }
        Err(failed) => Either::Right(Box::pin(failed.end(door))),
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

/// A run without an answer: with the inner service's error, or none where it panicked.
struct Failed<S: Store, E> {
    error: Option<E>,
    permit: Permit<S>,
}

impl<S: Store, E> Failed<S, E> {
    /// Ends the run as a server error does; where those are kept, a tombstone stands for the answer.
    async fn end<P>(self, door: Arc<DoorState<S>>) -> Result<Response<ResponseBody<P>>, E> {
        let Self { error, permit } = self;
        let address = permit.lease().address;
        match &error {
            Some(_) => log::inner_failed(&address),
            None => log::panicked(&address),
        }
        let ending = Some(door.policy.on_server_error.ending());
        let draft = Draft::new(&door.policy, StatusCode::INTERNAL_SERVER_ERROR, &HeaderMap::new());
        // Whoever took its place, this caller learns that its run failed.
        let _ = Closing::new(permit, ending, draft, Arc::clone(&door)).close(Captured::TooLarge).await;
        error.map_or_else(|| Ok(refuse(&door.policy, &Refusal::panicked())), Err)
    }
}

/// A run's answer, its body still to be read.
struct Answered<S: Store, P> {
    head: Parts,
    body: P,
    /// How many bytes the body has, if that is known.
    exact: Option<u64>,
    closing: Closing<S>,
}

impl<S: Store, P: Body> Answered<S, P> {
    fn read<E>(
        response: Response<P>,
        permit: Permit<S>,
        door: &Arc<DoorState<S>>,
    ) -> Result<Self, Failed<S, E>> {
        let (mut head, body) = response.into_parts();
        let told = || (body.size_hint().exact(), said_of(&head, &door.policy));
        let Ok((exact, said)) = catch_unwind(AssertUnwindSafe(told)) else {
            // It may panic once more where it is dropped.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(body)));
            return Err(Failed { error: None, permit });
        };
        strip_markers(&mut head.headers, &door.policy.replayed_header);
        let lease = permit.lease();
        head.extensions.insert(Verdict::Ran { fence: lease.fence, attempt: lease.attempt });
        let draft = Draft::new(&door.policy, head.status, &head.headers);
        let ending = match (said, door.policy.protocol) {
            (None, Some(_)) if head.status == StatusCode::OK => None, // its trailers will say
            (Some(said), _) => Some(said),
            (None, _) => Some(ending_of(head.status.as_u16(), door.policy.on_server_error)),
        };
        let closing = Closing::new(permit, ending, draft, Arc::clone(door));
        Ok(Self { head, body, exact, closing })
    }
}

fn finish<S, P>(
    answered: Answered<S, P>,
    door: Arc<DoorState<S>>,
    presence: Arc<Presence>,
) -> impl Future<Output = Response<ResponseBody<P>>>
where
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    let length = answered.exact.and_then(|exact| usize::try_from(exact).ok());
    let length = length.filter(|length| *length <= answered.closing.cap());
    // What is captured is taken apart where it is needed: in a variable of its own it would stand here twice.
    async move {
        if answered.head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Box::pin(upgrade(answered)).await;
        }
        let Some(length) = length else {
            return Box::pin(streamed(answered)).await;
        };
        // A body of known size within the cap is stored before the head is sent.
        let address = *answered.closing.address();
        let collected = collect(answered.body, length, &presence, &address).await;
        let (captured, response) = told(answered.head, collected, length, &door.policy);
        match answered.closing.close(captured).await {
            Closed::Settled => response,
            Closed::TakenOver(standing) => late(&door, &address, standing),
        }
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

/// An upgraded connection cannot be given back: the key is free, and the answer passes untouched.
async fn upgrade<S: Store, P>(answered: Answered<S, P>) -> Response<ResponseBody<P>> {
    let Answered { head, body, closing, .. } = answered;
    let _ = closing.with_ending(Ending::NotExecuted).close(Captured::TooLarge).await;
    Response::from_parts(head, ResponseBody::own(body))
}

/// What is kept of a body in memory, and what its caller is told.
fn told<B>(
    head: Parts,
    collected: Collected,
    length: usize,
    policy: &Policy,
) -> (Captured, Response<ResponseBody<B>>) {
    let declared = content_length(&head).unwrap_or(length as u64);
    match collected {
        Collected::Whole(held) if held.bytes.len() as u64 == declared => {
            let mut told = held.clone();
            if let Some(trailers) = &mut told.trailers {
                strip_markers(trailers, &policy.replayed_header);
            }
            (Captured::Whole(held), Response::from_parts(head, ResponseBody::held(told)))
        }
        Collected::Whole(_) | Collected::Broken => (Captured::Broken, refuse(policy, &broken())),
        Collected::Abandoned => (Captured::Abandoned, refuse(policy, &broken())),
    }
}

fn broken() -> Refusal {
    Refusal::new(Code::Internal, "the response body broke off before it was whole")
}

/// Any other body is fed to the client by a pump of the run's own.
async fn streamed<S, P>(answered: Answered<S, P>) -> Response<ResponseBody<P>>
where
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    let Answered { head, body, exact, closing } = answered;
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
    answer(&door.policy, address, standing.unwrap_or(unknown), Room::default())
}
