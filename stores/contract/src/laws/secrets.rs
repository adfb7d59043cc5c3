//! One payload before and after the secret that keys fingerprints is changed.

use idempotency_core::{Claim, Inspect, OnLapse, Operation, Part, Parts, Phase, Release, Store};

use crate::{
    Violation,
    scene::{KEPT, SECRETS, Scene, asked, asking, operation, outcome},
    violation::{demand, demand_eq},
};

const BODY: &[u8] = b"100 EUR to Bob";

/// An operation as hosts ask it that have the old secret only.
fn before() -> Operation {
    let [old, ..] = &SECRETS;
    Operation::new(*operation().address(), asked(old, BODY))
}

/// The operation as hosts ask it that have the new secret, and the old one as the previous.
fn after(op: &Operation, body: &[u8]) -> Operation {
    let [old, new, _] = &SECRETS;
    Operation::new(*op.address(), asked(new, body)).with_previous(asked(old, body))
}

/// A record made under the previous secret answers in every phase as if it were made under the current one, and keeps
/// its fingerprint; so does a record of which a claim's reply was lost.
pub(crate) async fn payload_under_the_previous_secret_is_the_same<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let [in_flight, completed, in_doubt, held] = [(); 4].map(|()| before());
    let bid = scene.bid();
    let first = scene.granted(&in_flight, &bid).await?;
    let lease = scene.granted(&completed, &scene.bid()).await?;
    scene.completed(&lease, &outcome("done"), KEPT).await?;
    let lease = scene.granted(&in_doubt, &scene.bid()).await?;
    scene.released(&lease, Release::Unknown).await?;
    scene.granted(&held, &scene.brief_bid(OnLapse::Hold)).await?;
    scene.pass_brief().await;

    let seen = scene.store.claim(&after(&in_flight, BODY), &scene.bid()).await?;
    demand!(seen, Claim::InFlight { .. }, "it is in flight");
    let seen = scene.store.claim(&after(&completed, BODY), &scene.bid()).await?;
    demand_eq!(seen, Claim::Completed(outcome("done")), "it is answered");
    for op in [&in_doubt, &held] {
        let seen = scene.store.claim(&after(op, BODY), &scene.bid()).await?;
        demand!(seen, Claim::InDoubt { .. }, "it is in doubt");
    }
    let seen = scene.store.look(&after(&completed, BODY)).await?;
    demand_eq!(seen, Claim::Completed(outcome("done")), "a look is answered");
    let seen = scene.store.claim(&after(&in_flight, BODY), &bid).await?;
    demand_eq!(seen, Claim::Granted(first), "a repeated claim gets the first grant back");
    for op in [&in_flight, &completed, &in_doubt, &held] {
        demand_eq!(recorded(&scene, op).await?, op.fingerprint().to_bytes(), "nothing is rewritten");
    }
    Ok(())
}

/// A lease that lapsed under the previous secret is taken over, and the grant records the current one.
pub(crate) async fn takeover_records_the_current_secret<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = before();
    scene.granted(&op, &scene.brief_bid(OnLapse::TakeOver)).await?;
    scene.pass_brief().await;
    let op = after(&op, BODY);
    scene.granted(&op, &scene.bid()).await?;
    demand_eq!(
        recorded(&scene, &op).await?,
        op.fingerprint().to_bytes(),
        "a grant records the current secret"
    );
    Ok(())
}

/// Another payload is refused under the previous secret too, with the parts that differ.
pub(crate) async fn mismatch_is_told_under_the_previous_secret_too<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let op = before();
    scene.granted(&op, &scene.bid()).await?;
    let seen = scene.store.claim(&after(&op, b"900 EUR to Mallory"), &scene.bid()).await?;
    demand_eq!(seen, Claim::Mismatch(Parts::from_iter([Part::Body])), "the part that differs is named");
    Ok(())
}

/// A record made under a secret that the operation does not bring is a mismatch in every phase, for nobody can tell what
/// was asked: it is never run, and nothing but the secret is named.
pub(crate) async fn record_under_an_unknown_secret_is_refused<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let [old, new, unknown] = &SECRETS;
    let in_flight = before();
    let [completed, lapsed] = [(); 2].map(|()| Operation::new(*operation().address(), asked(unknown, BODY)));
    scene.granted(&in_flight, &scene.bid()).await?;
    let lease = scene.granted(&completed, &scene.bid()).await?;
    scene.completed(&lease, &outcome("done"), KEPT).await?;
    scene.granted(&lapsed, &scene.brief_bid(OnLapse::TakeOver)).await?;
    scene.pass_brief().await;
    let unkeyed = asking(*in_flight.address(), BODY);
    let without_previous = Operation::new(*in_flight.address(), asked(new, BODY));
    let wrong_previous =
        Operation::new(*in_flight.address(), asked(new, BODY)).with_previous(asked(unknown, BODY));
    let without_current = Operation::new(*completed.address(), asked(old, BODY));
    for op in [
        unkeyed,
        without_previous,
        wrong_previous,
        after(&completed, BODY),
        without_current,
        after(&lapsed, BODY),
    ] {
        let before = scene.record(&op).await?;
        let seen = scene.store.claim(&op, &scene.bid()).await?;
        demand_eq!(seen, Claim::Mismatch(Parts::from_iter([Part::Secret])), "the secret alone is named");
        demand_eq!(scene.record(&op).await?, before, "a mismatch writes nothing");
    }
    Ok(())
}

/// The bytes of the fingerprint that stands at the operation's address.
async fn recorded<S: Store + Inspect>(scene: &Scene<S>, op: &Operation) -> Result<Vec<u8>, Violation> {
    let record = scene.record(op).await?;
    match &record.phase {
        Phase::InFlight { fingerprint, .. }
        | Phase::Completed { fingerprint, .. }
        | Phase::InDoubt { fingerprint } => Ok(fingerprint.to_bytes().to_vec()),
        Phase::Released { .. } => Err(Violation::new("the record remembers what was asked", &record)),
    }
}
