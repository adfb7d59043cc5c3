//! The store: each call gives its values to one script.

use std::{fmt, sync::Arc, time::Duration};

use idempotency_core::{
    Address, Bells, Bid, Claim, Fate, Fingerprint, Keep, Lease, OnLapse, Operation, Outcome, Release,
    Settled, Store, StoreError, StoreErrorKind, Vacant, machine,
};
use redis::Cmd;

use crate::{
    Eviction, OpenError, RedisLedger, RedisStoreBuilder,
    answer::{Answer, Standing},
    ears::Ears,
    error::StrangeAnswer,
    keys::Keys,
    link::{Copies, Link},
    record::{expiry, removable, rest_of_a_grant, word, words_of_a_lease, words_of_an_outcome},
    script::{self, Name, Script},
};

/// Idempotency records in Redis, Valkey or a cluster of them. Clones share its connections.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) link: Arc<Link>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) bells: Arc<Bells>,
    pub(crate) ears: Arc<Ears>,
    eviction: Eviction,
}

impl RedisStore {
    /// The longest outcome. A server could hold 512 MB, but does nothing else while a script copies an outcome.
    pub const MAX_OUTCOME_BYTES: usize = 16 * 1024 * 1024;

    pub(crate) fn new(link: Link, keys: Keys, bells: Arc<Bells>, ears: Ears, eviction: Eviction) -> Self {
        Self { link: Arc::new(link), keys: Arc::new(keys), bells, ears: Arc::new(ears), eviction }
    }

    /// Connects to the server at `url` with the defaults of [`builder`](Self::builder).
    ///
    /// # Errors
    /// [`OpenError`] when the server does not answer, refuses, or would remove records that are needed.
    pub async fn connect(url: &str) -> Result<Self, OpenError> {
        Self::builder().connect(url).await
    }

    /// Starts from the defaults: keys that begin with `idempotency:`, 1.5 s of patience, no eviction.
    pub fn builder() -> RedisStoreBuilder {
        RedisStoreBuilder::new()
    }

    /// What was known, when the store was opened, of how the servers make room in a full memory.
    pub const fn eviction(&self) -> &Eviction {
        &self.eviction
    }

    /// The ledgers of agents on the same servers, under keys that begin with `idempotency:ledger:` unless set.
    pub fn ledger(&self) -> RedisLedger {
        RedisLedger::new(Arc::clone(&self.link))
    }

    /// Runs a script on the record at `address`; `arguments` appends about `size` bytes of them.
    pub(crate) async fn run(
        &self,
        script: &Script,
        address: &Address,
        copies: Copies,
        size: usize,
        arguments: impl Fn(&mut Cmd) + Sync,
    ) -> Result<redis::Value, StoreError> {
        let key = self.keys.of(address);
        let command = |name: Name| {
            let mut command = script.on(&key, name, size);
            arguments(&mut command);
            command
        };
        self.link.ask(copies, command).await.map_err(|failure| failure.at(address))
    }
}

impl Store for RedisStore {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        let address = *op.address();
        let (words, rest) = (words_of_a_lease(bid), rest_of_a_grant(op, bid));
        let expiry = match bid.on_lapse {
            OnLapse::TakeOver => expiry(removable(bid.lease, bid.retention)),
            OnLapse::Hold => String::new(),
        };
        let previous = op.previous().map(Fingerprint::to_bytes);
        let size = words.len() + rest.len() + expiry.len() + 32;
        let arguments = |command: &mut Cmd| {
            command.arg(&words).arg(&rest).arg(&expiry);
            if let Some(previous) = &previous {
                command.arg(&previous[1..33]);
            }
        };
        let answer = self.run(&script::CLAIM, &address, Copies::Welcome, size, arguments).await?;
        match Answer::read(answer)? {
            Answer::Granted { attempt, fence } => {
                Ok(Claim::Granted(Lease { address, holder: bid.holder, fence, attempt }))
            }
            Answer::Stands(standing) => {
                standing.explain(&address, |record, now| machine::claim(record, op, bid, now))
            }
            Answer::Applied => Err(StrangeAnswer.into()),
        }
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        let standing = self.stands(op.address()).await?;
        let now = standing.now;
        Ok(machine::look(standing.record(op.address())?.as_ref(), op, now))
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        let arguments = |command: &mut Cmd| {
            command.arg(lease.holder.as_bytes()).arg(word(term));
        };
        let answer = self.run(&script::RENEW, &lease.address, Copies::Welcome, 32, arguments).await?;
        Answer::read(answer)?
            .settle(&lease.address, |record, now| machine::renew(record, &lease.holder, term, now))
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        check_size(outcome)?;
        let (words, expiry) =
            (words_of_an_outcome(outcome, keep), expiry(removable(keep.replay, keep.then_reject)));
        let size = 16 + words.len() + outcome.bytes.len() + expiry.len();
        let arguments = |command: &mut Cmd| {
            command.arg(lease.holder.as_bytes()).arg(&words).arg(&outcome.bytes[..]).arg(&expiry);
        };
        let answer = self.run(&script::COMPLETE, &lease.address, Copies::Welcome, size, arguments).await;
        self.bells.ring(&lease.address);
        let law = |record: Option<&_>, now| machine::complete(record, &lease.holder, outcome, keep, now);
        Answer::read(answer?)?.settle(&lease.address, law)
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        let script = match why {
            Release::NotApplied => &script::RELEASE_NOT_APPLIED,
            Release::Unknown => &script::RELEASE_UNKNOWN,
        };
        let arguments = |command: &mut Cmd| {
            command.arg(lease.holder.as_bytes());
        };
        let answer = self.run(script, &lease.address, Copies::Welcome, 16, arguments).await;
        self.bells.ring(&lease.address);
        Answer::read(answer?)?
            .settle(&lease.address, |record, now| machine::release(record, &lease.holder, why, now))
    }

    /// Removes nothing and answers 0: the servers remove records that are over by themselves.
    async fn purge(&self, _at_most: u32) -> Result<u32, StoreError> {
        Ok(0)
    }

    fn max_outcome_bytes(&self) -> usize {
        Self::MAX_OUTCOME_BYTES
    }
}

impl RedisStore {
    /// What stands at an address now.
    pub(crate) async fn stands(&self, address: &Address) -> Result<Standing, StoreError> {
        let answer = self.run(&script::LOOK, address, Copies::Welcome, 0, |_| {}).await?;
        Ok(Standing::read(answer)?)
    }
}

pub(crate) fn check_size(outcome: &Outcome) -> Result<(), StoreError> {
    if outcome.bytes.len() <= RedisStore::MAX_OUTCOME_BYTES {
        Ok(())
    } else {
        Err(StoreError::new(StoreErrorKind::TooLarge, Fate::NotApplied))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("keys", &self.keys)
            .field("link", &self.link)
            .field("eviction", &self.eviction)
            .finish_non_exhaustive()
    }
}
