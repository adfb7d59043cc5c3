//! What a verdict without a grant is answered with.

use std::{sync::Once, time::Duration};

use http::Response;
use idempotency_core::{Address, Claim, Part, profile::http::Refusal};

use crate::{
    Policy,
    body::ResponseBody,
    convert::{Room, replay},
    refusal::refuse,
};

/// The replay or the refusal that a verdict calls for; a replay stands in `room`.
pub(crate) fn answer<G, B>(
    policy: &Policy,
    address: &Address,
    verdict: Claim<G>,
    room: Room,
) -> Response<ResponseBody<B>> {
    let refusal = match verdict {
        Claim::Completed(outcome) => return replay(policy, &outcome, room),
        Claim::Expired => Refusal::key_expired(),
        Claim::InFlight { left } => Refusal::conflict(left, policy.retry_after_cap),
        Claim::Mismatch(parts) => {
            if parts.contains(Part::Credentials) {
                warn_of_missing_scope(address);
            }
            Refusal::mismatch(parts)
        }
        Claim::InDoubt { .. } => Refusal::outcome_unknown(),
        // Vacant for a moment, or a delayed copy of a claim that is over: the next try finds out.
        Claim::Granted(_) | Claim::Ended => Refusal::conflict(Duration::ZERO, policy.retry_after_cap),
    };
    refuse(policy, &refusal)
}

/// Said once: a service whose callers' credentials change between tries wants a scope.
fn warn_of_missing_scope(address: &Address) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tracing::warn!(
            operation = %address,
            "a key was used again with other credentials and was refused; if tokens or cookies change between two \
             tries of one caller, set a scope() on the idempotency policy"
        );
    });
}
