//! A policy in the shadow: requests pass as if no layer were there, and what it would have done is told to the observer.
//!
//! Its records stand apart from those of policies in force and never answer anybody.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use idempotency_core::{
    Claim, Door, Key, Permit, Release, Store,
    profile::http::{Ending, Tombstone, ending_of},
};
use tower_service::Service;
use tracing::{Instrument, instrument::WithSubscriber};

use crate::{
    body::{RequestBody, ResponseBody},
    convert::operation,
    error::BoxError,
    gather::gather_or_resume,
    layer::DoorState,
    observability::RequestSpan,
};

pub(crate) async fn shadow<I, S, Q, P>(
    mut inner: I,
    door: Arc<DoorState<S>>,
    key: Key,
    incoming: Request<Q>,
    span: RequestSpan,
) -> Result<Response<ResponseBody<P>>, I::Error>
where
    I: Service<Request<RequestBody<Q>>, Response = Response<P>>,
    Q: Body<Data = Bytes>,
    Q::Error: Into<BoxError>,
    S: Store,
{
    let (request, permit) = watch(&door, &key, incoming, &span).await;
    let response = inner.call(request).await;
    if let Some(permit) = permit {
        let server_error = door.policy.on_server_error.ending();
        let ending = response.as_ref().map_or(server_error, |response| {
            let said = response.extensions().get::<Ending>().copied();
            said.unwrap_or_else(|| ending_of(response.status().as_u16(), door.policy.on_server_error))
        });
        tokio::spawn(note(permit, ending).in_current_span().with_current_subscriber());
    }
    Ok(response?.map(ResponseBody::own))
}

/// The request as it came, and a permit when it is the first copy. Whatever stands in the way of watching it, it passes.
async fn watch<S, Q>(
    door: &DoorState<S>,
    key: &Key,
    incoming: Request<Q>,
    span: &RequestSpan,
) -> (Request<RequestBody<Q>>, Option<Permit<S>>)
where
    S: Store,
    Q: Body<Data = Bytes>,
    Q::Error: Into<BoxError>,
{
    let policy = &door.policy;
    let (parts, body) = incoming.into_parts();
    let limit = policy.max_request_bytes;
    if body.size_hint().lower() > limit as u64 {
        return (Request::from_parts(parts, RequestBody::unread(body)), None);
    }
    let held = match gather_or_resume(body, limit).await {
        Ok(held) => held,
        Err(body) => return (Request::from_parts(parts, body), None),
    };
    let op = match policy.callers.identify(&parts) {
        Ok(caller) => operation(Door::Shadow, policy, &parts, key, &caller, &held.bytes),
        Err(refusal) => Err(refusal),
    };
    let permit = match op {
        Ok(op) => {
            span.operation(op.address());
            match door.engine.claim(&op, &policy.terms).await {
                Ok(claim) => {
                    span.verdict(claim.name());
                    granted(claim)
                }
                Err(_) => None,
            }
        }
        Err(_) => None,
    };
    (Request::from_parts(parts, RequestBody::read(held)), permit)
}

fn granted<G>(claim: Claim<G>) -> Option<G> {
    match claim {
        Claim::Granted(grant) => Some(grant),
        _ => None,
    }
}

/// Ends the record of a first copy: that it ran is all that is noted.
async fn note<S: Store>(permit: Permit<S>, ending: Ending) {
    let noted = Tombstone { status: 200, location: None }.encode();
    match ending {
        Ending::Keep | Ending::KeepHead => drop(permit.complete(noted.clone(), || noted).await),
        Ending::NotExecuted => drop(permit.release(Release::NotApplied).await),
        Ending::Unknown => drop(permit.release(Release::Unknown).await),
    }
}
