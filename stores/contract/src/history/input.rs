//! The inputs of a history: drawn at random, sent to a store, and decided by the machine.

use std::time::Duration;

use fastrand::Rng;
use idempotency_core::{
    Address, Bid, Claim, Fence, Holder, Inspect, Keep, Lease, Media, OnLapse, Operation, Outcome, Record,
    Release, Resolution, Settled, Store, StoreError, Vacant,
    clock::Timestamp,
    machine::{self, Step},
};

use crate::scene::{SECRETS, asked, asking};

#[derive(Debug, Clone)]
pub(super) enum Input {
    Claim(Operation, Bid),
    Look(Operation),
    Renew(Lease, Duration),
    Complete(Lease, Outcome, Keep),
    Release(Lease, Release),
    Resolve(Address, Fence, Resolution),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Claimed(Claim<Lease>),
    Looked(Claim<Vacant>),
    Settled(Settled),
}

impl Input {
    pub(super) const fn address(&self) -> &Address {
        match self {
            Self::Claim(op, _) | Self::Look(op) => op.address(),
            Self::Renew(lease, _) | Self::Complete(lease, ..) | Self::Release(lease, _) => &lease.address,
            Self::Resolve(address, ..) => address,
        }
    }

    pub(super) async fn send<S: Store + Inspect>(&self, store: &S) -> Result<Answer, StoreError> {
        Ok(match self {
            Self::Claim(op, bid) => Answer::Claimed(store.claim(op, bid).await?),
            Self::Look(op) => Answer::Looked(store.look(op).await?),
            Self::Renew(lease, term) => Answer::Settled(store.renew(lease, *term).await?),
            Self::Complete(lease, outcome, keep) => {
                Answer::Settled(store.complete(lease, outcome, *keep).await?)
            }
            Self::Release(lease, why) => Answer::Settled(store.release(lease, *why).await?),
            Self::Resolve(address, fence, resolution) => {
                Answer::Settled(store.resolve(address, *fence, resolution).await?)
            }
        })
    }

    pub(super) fn decide(&self, record: Option<&Record>, now: Timestamp) -> Step<Answer> {
        match self {
            Self::Claim(op, bid) => answer(machine::claim(record, op, bid, now), Answer::Claimed),
            Self::Look(op) => Step { write: None, verdict: Answer::Looked(machine::look(record, op, now)) },
            Self::Renew(lease, term) => {
                answer(machine::renew(record, &lease.holder, *term, now), Answer::Settled)
            }
            Self::Complete(lease, outcome, keep) => {
                answer(machine::complete(record, &lease.holder, outcome, *keep, now), Answer::Settled)
            }
            Self::Release(lease, why) => {
                answer(machine::release(record, &lease.holder, *why, now), Answer::Settled)
            }
            Self::Resolve(_, fence, resolution) => {
                answer(machine::resolve(record, *fence, resolution, now), Answer::Settled)
            }
        }
    }

    /// The durations this input carries, each added to the time of the write that it may cause.
    pub(super) fn terms(&self) -> Vec<Duration> {
        match self {
            Self::Claim(_, bid) => vec![bid.lease],
            Self::Renew(_, term) => vec![*term],
            Self::Complete(_, _, keep) | Self::Resolve(_, _, Resolution::Applied(_, keep)) => {
                vec![keep.replay]
            }
            Self::Look(_) | Self::Release(..) | Self::Resolve(_, _, Resolution::NotApplied) => vec![],
        }
    }
}

fn answer<V>(step: Step<V>, wrap: impl FnOnce(V) -> Answer) -> Step<Answer> {
    Step { write: step.write, verdict: wrap(step.verdict) }
}

/// What the inputs of one stretch of a history are about: a few keys, and a few holders who want them.
#[derive(Debug)]
pub(super) struct Cast {
    addresses: [Address; 3],
    holders: [Holder; 4],
    durations: Vec<Duration>,
}

impl Cast {
    pub(super) fn draw(rng: &mut Rng, durations: Vec<Duration>) -> Self {
        let addresses = [(); 3].map(|()| {
            let mut bytes = [0; 32];
            rng.fill(&mut bytes);
            Address::from_bytes(bytes)
        });
        let holders = [(); 4].map(|()| Holder::from_bytes(rng.u128(..).to_le_bytes()));
        Self { addresses, holders, durations }
    }

    /// An input at one of the addresses; `found` is the record that stands there, so that most endings and resolutions
    /// name what is there.
    pub(super) fn input<'a>(
        &self,
        rng: &mut Rng,
        found: impl FnOnce(&Address) -> Option<&'a Record>,
    ) -> Input {
        let address = *one_of(rng, &self.addresses);
        let record = found(&address);
        let holder = match record {
            Some(record) if rng.u8(..) < 160 => record.holder,
            _ => *one_of(rng, &self.holders),
        };
        let lease = Lease::unconfirmed(address, holder);
        let op = operation(rng, address);
        match rng.u8(..20) {
            0..8 => Input::Claim(op, self.bid(rng)),
            8..10 => Input::Look(op),
            10..12 => Input::Renew(lease, *one_of(rng, &self.durations)),
            12..15 => Input::Complete(lease, outcome(rng), self.keep(rng)),
            15..17 => Input::Release(lease, Release::NotApplied),
            17 => Input::Release(lease, Release::Unknown),
            _ => Input::Resolve(address, fence(rng, record), self.resolution(rng)),
        }
    }

    fn bid(&self, rng: &mut Rng) -> Bid {
        Bid {
            holder: *one_of(rng, &self.holders),
            lease: *one_of(rng, &self.durations),
            retention: *one_of(rng, &self.durations),
            on_lapse: *one_of(rng, &[OnLapse::TakeOver, OnLapse::TakeOver, OnLapse::Hold]),
        }
    }

    fn keep(&self, rng: &mut Rng) -> Keep {
        Keep { replay: *one_of(rng, &self.durations), then_reject: *one_of(rng, &self.durations) }
    }

    fn resolution(&self, rng: &mut Rng) -> Resolution {
        if rng.bool() { Resolution::NotApplied } else { Resolution::Applied(outcome(rng), self.keep(rng)) }
    }
}

/// One of two payloads, mostly as a host asks it that knows the secret of the record there.
fn operation(rng: &mut Rng, address: Address) -> Operation {
    let body = if rng.bool() { b"100 EUR to Bob" } else { b"900 EUR to Bob" };
    let [old, new, _] = &SECRETS;
    match rng.u8(..8) {
        0 => asking(address, body),
        1..4 => Operation::new(address, asked(old, body)),
        4..7 => Operation::new(address, asked(new, body)).with_previous(asked(old, body)),
        _ => Operation::new(address, asked(new, body)),
    }
}

fn outcome(rng: &mut Rng) -> Outcome {
    let mut bytes = vec![0; rng.usize(..24)];
    rng.fill(&mut bytes);
    let media = Media(rng.u16(..));
    if rng.u8(..4) == 0 { Outcome::tombstone(media, bytes) } else { Outcome::whole(media, bytes) }
}

/// Mostly the fence that stands there; sometimes one next to it.
fn fence(rng: &mut Rng, record: Option<&Record>) -> Fence {
    let standing = record.map_or(1, |record| record.fence.as_u64());
    Fence::from_u64(if rng.u8(..4) == 0 { standing - 1 } else { standing })
}

pub(super) fn one_of<'a, T>(rng: &mut Rng, choices: &'a [T]) -> &'a T {
    &choices[rng.usize(..choices.len())]
}
