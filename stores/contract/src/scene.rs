//! The stage of a law: a fresh store, its time, and what laws do over and over.

use std::{sync::Arc, time::Duration};

use idempotency_core::{
    Address, Bid, Claim, Fingerprint, Holder, Inspect, Keep, Lease, Media, OnLapse, Operation, Outcome, Part,
    Record, Release, Secret, Settled, Store, clock::Clock,
};

use crate::{Bench, Candidate, Expiry, Time, Violation, violation::demand_eq};

/// Longer than any law takes, on any clock.
pub(crate) const LONG: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct Scene<S> {
    pub(crate) store: Arc<S>,
    pub(crate) time: Time,
    pub(crate) expiry: Expiry,
    pub(crate) steps: u32,
    pub(crate) most_steps: u32,
    pub(crate) clock_steps: Duration,
}

impl<S: Store + Inspect> Scene<S> {
    pub(crate) async fn open<C: Candidate<Store = S>>(candidate: &C) -> Self {
        let Bench { store, time } = candidate.open().await;
        Self {
            store,
            time,
            expiry: candidate.expiry(),
            steps: candidate.steps(),
            most_steps: candidate.most_steps(),
            clock_steps: candidate.clock_steps(),
        }
    }

    /// How often a race is run.
    pub(crate) const fn rounds(&self) -> std::ops::Range<u32> {
        if self.steps < 10_000 { 0..5 } else { 0..20 }
    }

    /// A time that a law lets pass: short where it must be slept.
    pub(crate) const fn brief(&self) -> Duration {
        match self.time {
            Time::Manual(_) => Duration::from_secs(30),
            Time::Real => Duration::from_millis(300),
        }
    }

    /// Lets a brief time pass, and half as much again: no boundary is near.
    pub(crate) async fn pass_brief(&self) {
        self.pass(self.brief() * 3 / 2).await;
    }

    /// Lets exactly this much pass where the clock is moved, at least this much where it is slept.
    pub(crate) async fn pass(&self, step: Duration) {
        match &self.time {
            Time::Manual(clock) => clock.advance(step),
            Time::Real => tokio::time::sleep(step).await,
        }
    }

    /// The store's time where it is known to the microsecond.
    pub(crate) fn manual_micros(&self) -> Option<u64> {
        match &self.time {
            Time::Manual(clock) => Some(clock.now().as_micros()),
            Time::Real => None,
        }
    }

    /// A bid by a new holder whose lease and retention outlast the law.
    pub(crate) fn bid(&self) -> Bid {
        Bid { holder: Holder::draw(), lease: LONG, retention: LONG, on_lapse: OnLapse::TakeOver }
    }

    /// A bid by a new holder whose lease is brief.
    pub(crate) fn brief_bid(&self, on_lapse: OnLapse) -> Bid {
        Bid { lease: self.brief(), on_lapse, ..self.bid() }
    }

    /// Claims where the law grants.
    pub(crate) async fn granted(&self, op: &Operation, bid: &Bid) -> Result<Lease, Violation> {
        match self.store.claim(op, bid).await? {
            Claim::Granted(lease) => Ok(lease),
            refused => Err(Violation::new("the claim is granted", &refused)),
        }
    }

    /// Completes where the law says that it counts.
    pub(crate) async fn completed(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        keep: Keep,
    ) -> Result<(), Violation> {
        demand_eq!(
            self.store.complete(lease, outcome, keep).await?,
            Settled::Applied,
            "the completion counts"
        );
        Ok(())
    }

    /// Releases where the law says that it counts.
    pub(crate) async fn released(&self, lease: &Lease, why: Release) -> Result<(), Violation> {
        demand_eq!(self.store.release(lease, why).await?, Settled::Applied, "the release counts");
        Ok(())
    }

    /// The record of an operation that has one.
    pub(crate) async fn record(&self, op: &Operation) -> Result<Record, Violation> {
        let found = self.store.find(op.address()).await?;
        found.ok_or_else(|| Violation::new("there is a record to find", &op.address()))
    }
}

/// An operation at an address of its own.
pub(crate) fn operation() -> Operation {
    let mut bytes = [0; 32];
    fastrand::fill(&mut bytes);
    asking(Address::from_bytes(bytes), b"100 EUR to Bob")
}

/// The operation that asks `body` at the address.
pub(crate) fn asking(address: Address, body: &[u8]) -> Operation {
    let fingerprint = Fingerprint::builder().part(Part::Method, b"POST").part(Part::Body, body).build();
    Operation::new(address, fingerprint)
}

/// The secret of a service, the one that took its place, and one that nobody knows.
pub(crate) const SECRETS: [Secret; 3] =
    [Secret::new(1, [1; 32]), Secret::new(2, [2; 32]), Secret::new(3, [3; 32])];

/// What `body` is under `secret`.
pub(crate) fn asked(secret: &Secret, body: &[u8]) -> Fingerprint {
    Fingerprint::keyed(secret).part(Part::Method, b"POST").part(Part::Body, body).build()
}

/// The same key with another payload.
pub(crate) fn other_payload(op: &Operation) -> Operation {
    asking(*op.address(), b"900 EUR to Mallory")
}

/// An outcome kept for longer than any law takes.
pub(crate) const KEPT: Keep = Keep { replay: LONG, then_reject: LONG };

/// An outcome that replays `text`.
pub(crate) fn outcome(text: &'static str) -> Outcome {
    Outcome::whole(Media(1), text)
}
