//! The steps of a guarded request, in the one order they have: scope, declared size, body, fingerprint, claim, run.
//! (Policy and key come before, in the service, where nothing of the request is touched yet.)

use std::{error::Error, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::LengthLimitError;
use idempotency_core::{
    Claim, ClaimError, Key, Operation, Permit, Store,
    profile::http::{Code, Refusal},
};
use tower_service::Service;

use crate::{
    Attempt,
    answer::answer,
    body::{Held, RequestBody, ResponseBody},
    caller::Waiting,
    convert::{operation, request},
    error::BoxError,
    gather::{GatherError, gather},
    layer::DoorState,
    refusal::refuse,
    run::run,
};

pub(crate) async fn exchange<I, S, Q, P>(
    inner: I,
    door: Arc<DoorState<S>>,
    key: Key,
    incoming: Request<Q>,
    waiting: Arc<Waiting>,
) -> Result<Response<ResponseBody<P>>, I::Error>
where
    I: Service<Request<RequestBody<Q>>, Response = Response<P>> + Send + 'static,
    I::Future: Send + 'static,
    I::Error: Send + 'static,
    Q: Body<Data = Bytes> + Send + 'static,
    Q::Error: Into<BoxError>,
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
    S: Store,
{
    let (mut parts, body) = incoming.into_parts();
    let caller = match door.policy.callers.identify(&parts) {
        Ok(caller) => caller,
        Err(refusal) => return Ok(refuse(&refusal)),
    };
    let held = match read(body, door.policy.max_request_bytes).await {
        Ok(held) => held,
        Err(refusal) => return Ok(refuse(&refusal)),
    };
    let op = operation(&door.policy, &parts, &key, &caller, &held.bytes);
    drop(caller);
    waiting.claims();
    let permit = match claim(&door, &op).await {
        Ok(permit) => permit,
        Err(answer) => return Ok(answer),
    };
    let lease = permit.lease();
    parts.extensions.insert(Attempt {
        key,
        fence: lease.fence,
        number: lease.attempt,
        lease_lost: permit.lease_lost(),
    });
    run(inner, request(parts, held), permit, door, waiting).await
}

/// A permit to run, or what to answer instead.
async fn claim<S: Store, B>(
    door: &DoorState<S>,
    op: &Operation,
) -> Result<Permit<S>, Response<ResponseBody<B>>> {
    match door.engine.claim(op, &door.policy.terms).await {
        Ok(Claim::Granted(permit)) => Ok(permit),
        Ok(refused) => Err(answer(&door.policy, op.address(), refused.map(drop))),
        Err(ClaimError::Overloaded { bound }) => Err(refuse(&Refusal::overloaded(bound))),
        Err(ClaimError::Store(error)) => {
            tracing::error!(operation = %op.address(), error = &error as &dyn Error, "a claim failed");
            Err(refuse(&Refusal::store(&error)))
        }
        Err(error) => Err(refuse(&Refusal::new(Code::Internal, error.to_string()))),
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

/// A limit further out is still a limit; all else is a body that broke off.
fn unreadable(error: &BoxError) -> Refusal {
    tracing::debug!(%error, "a request body could not be read to its end");
    let mut cause: Option<&(dyn Error + 'static)> = Some(&**error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return Refusal::new(Code::PayloadTooLarge, "the request body is longer than the service reads");
        }
        cause = error.source();
    }
    Refusal::unreadable_body()
}
