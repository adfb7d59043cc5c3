//! The steps of a guarded request, in the one order they have: scope, declared size, body, fingerprint, claim, run.
//! (Policy and key come before, in the service, where nothing of the request is touched yet.)

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::Body;
use http_body_util::LengthLimitError;
use idempotency_core::{
    Address, Claim, ClaimError, Door, Key, Operation, Permit, Settled, Store, StoreErrorKind,
    event::Event,
    profile::http::{Code, Refusal},
};
use tokio::time::timeout;
use tower_service::Service;

use crate::{
    Attempt, Policy,
    answer::answer,
    body::{Held, RequestBody, ResponseBody},
    caller::Presence,
    convert::{Room, operation, request},
    error::{BodyRefused, BoxError},
    gather::{GatherError, gather},
    layer::DoorState,
    observability::{RequestSpan, log},
    patience::Patience,
    policy::StoreDown,
    refusal::refuse,
    run::run,
    unrecorded::{Turn, run_unrecorded},
};

// Every guarded request pays for the size of this future: a block has room for what it captures once, an `async fn` twice,
// and each stage stands in a box of its own, no longer than allocators give away cheaply.
pub(crate) fn exchange<I, S, Q, P>(
    mut inner: I,
    door: Arc<DoorState<S>>,
    key: Key,
    incoming: Request<Q>,
    presence: Arc<Presence>,
    span: RequestSpan,
) -> impl Future<Output = Result<Response<ResponseBody<P>>, I::Error>>
where
    I: Service<Request<RequestBody<Q>>, Response = Response<P>> + Clone + Send + 'static,
    I::Future: Send + 'static,
    I::Error: Send + 'static,
    Q: Body<Data = Bytes> + Send + 'static,
    Q::Error: Into<BoxError>,
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    let (mut parts, body) = incoming.into_parts();
    async move {
        if parts.extensions.get::<Attempt>().is_some() && Box::pin(is_own_run(&door, &parts, &key)).await {
            span.verdict("passed");
            let passing = inner.call(Request::from_parts(parts, RequestBody::unread(body)));
            return Ok(Box::pin(passing).await?.map(ResponseBody::own));
        }
        let (op, held) = match ask(&door.policy, &parts, body, &key).await {
            Ok(asked) => asked,
            Err(refusal) => return Ok(turn_away(&door.policy, &refusal, &span)),
        };
        span.operation(op.address());
        let patience = Patience::of(&door.policy, &parts.headers);
        let inner = if patience.is_some() { unready(inner) } else { inner };
        let right = match Box::pin(claim(&door, &op, patience, &presence, &span, &mut parts)).await {
            Claimed::Run(right) => right,
            Claimed::Answer(answer) => return Ok(answer),
        };
        let permit = match right {
            Right::Recorded(permit) => permit,
            Right::Unrecorded(turn) => {
                parts.extensions.remove::<Attempt>();
                return Box::pin(run_unrecorded(inner, request(parts, held), turn, &door)).await;
            }
        };
        span.granted(permit.lease());
        let outer = parts.extensions.remove::<Attempt>();
        parts.extensions.insert(Attempt {
            key,
            lease: *permit.lease(),
            lease_lost: permit.lease_lost(),
            outer: outer.map(Arc::new),
        });
        Box::pin(run(inner, request(parts, held), permit, door, presence)).await
    }
}

/// Whether a layer further out holds the very record that this one would claim: here the run would be refused by itself.
async fn is_own_run<S: Store>(door: &DoorState<S>, parts: &Parts, key: &Key) -> bool {
    let outer = parts.extensions.get::<Attempt>();
    let (Some(outer), Ok(caller)) = (outer, door.policy.callers.identify(parts)) else { return false };
    let address = Address::new(Door::Http, &caller.scope, key);
    for lease in outer.leases().filter(|lease| lease.address == address) {
        // On another store the same address is another record. Only where a lease stands can it be renewed, here by nothing.
        let renewal = door.engine.store().renew(lease, Duration::ZERO);
        let renewed = timeout(door.policy.bounds.store_timeout, renewal).await;
        if matches!(renewed, Ok(Ok(Settled::Applied))) {
            return true;
        }
    }
    false
}

/// The steps up to the operation: scope, declared size, body, fingerprint.
async fn ask<B>(policy: &Policy, parts: &Parts, body: B, key: &Key) -> Result<(Operation, Held), Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let caller = policy.callers.identify(parts)?;
    let held = read(body, policy.max_request_bytes).await?;
    let op = operation(Door::Http, policy, parts, key, &caller, &held.bytes)?;
    Ok((op, held))
}

/// Refuses a request of which nothing was claimed.
fn turn_away<B>(policy: &Policy, refusal: &Refusal, span: &RequestSpan) -> Response<ResponseBody<B>> {
    span.verdict("refused");
    log::turned_away(refusal);
    refuse(policy, refusal)
}

/// Whoever waits holds no readiness: it is given back, and asked for again before the run.
fn unready<I: Clone>(ready: I) -> I {
    let next = ready.clone();
    drop(ready);
    next
}

/// What a claim leads to.
enum Claimed<S: Store, B> {
    Run(Right<S>),
    Answer(Response<ResponseBody<B>>),
}

/// What a run stands on.
enum Right<S: Store> {
    Recorded(Permit<S>),
    Unrecorded(Turn),
}

async fn claim<S: Store, B>(
    door: &DoorState<S>,
    op: &Operation,
    patience: Option<Patience>,
    presence: &Presence,
    span: &RequestSpan,
    parts: &mut Parts,
) -> Claimed<S, B> {
    let policy = &door.policy;
    let claim = match &patience {
        None => {
            presence.claims();
            door.engine.claim(op, &policy.terms).await
        }
        // A copy whose caller leaves while it waits stops waiting; only a run goes on without its caller.
        Some(patience) => Box::pin(door.engine.claim_within(op, &policy.terms, patience.limit)).await,
    };
    span.verdict(claim.as_ref().map_or_else(failure, Claim::name));
    let answer = match claim {
        Ok(Claim::Granted(permit)) => {
            presence.claims();
            return Claimed::Run(Right::Recorded(permit));
        }
        Ok(refused) => answer(policy, op.address(), refused.map(drop), Room::left_by(parts)),
        Err(error) if policy.store_down == StoreDown::FailOpen && is_outage(&error) => {
            presence.claims();
            match door.unrecorded.begin(door, op) {
                Ok(turn) => {
                    span.verdict("unrecorded");
                    door.engine.tell(op.address(), &Event::RanUnrecorded);
                    return Claimed::Run(Right::Unrecorded(turn));
                }
                Err(refusal) => refuse(policy, &refusal),
            }
        }
        Err(error) => refuse(policy, &refusal_of(&error)),
    };
    Claimed::Answer(match patience {
        Some(patience) => patience.applied(answer),
        None => answer,
    })
}

/// What stands in a span where there is no verdict.
const fn failure(error: &ClaimError) -> &'static str {
    match error {
        ClaimError::Overloaded { .. } => "overloaded",
        ClaimError::Store(_) => "store_failed",
        _ => "refused",
    }
}

fn is_outage(error: &ClaimError) -> bool {
    matches!(error, ClaimError::Store(error) if error.kind == StoreErrorKind::Unavailable)
}

fn refusal_of(error: &ClaimError) -> Refusal {
    match error {
        ClaimError::Overloaded { bound } => Refusal::overloaded(*bound),
        ClaimError::Store(error) => Refusal::store(error),
        error => Refusal::new(Code::Internal, error.to_string()),
    }
}

/// The whole request body, unless it is longer than `limit` bytes. A declared length is believed before a byte is read.
async fn read<B>(body: B, limit: usize) -> Result<Held, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    if body.size_hint().lower() > limit as u64 {
        return Err(Refusal::payload_too_large(limit));
    }
    gather(body, limit).await.map_err(|error| match error {
        GatherError::TooLong => Refusal::payload_too_large(limit),
        GatherError::Broken(error) => unreadable(&error),
    })
}

/// A limit further out is still a limit, and a layer's word its word; all else is a body that broke off.
fn unreadable(error: &BoxError) -> Refusal {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&**error);
    while let Some(error) = cause {
        if let Some(BodyRefused(refusal)) = error.downcast_ref() {
            return refusal.clone();
        }
        if error.is::<LengthLimitError>() {
            return Refusal::new(Code::PayloadTooLarge, "the request body is longer than the service reads");
        }
        cause = error.source();
    }
    Refusal::unreadable_body()
}
