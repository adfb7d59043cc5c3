//! The store: each call binds its values to one deciding write.

use std::{sync::Arc, time::Duration};

use aws_sdk_dynamodb::Client;
use idempotency_core::{
    Address, Bells, Bid, Claim, Fate, Fence, Keep, Lease, Notify, Operation, Outcome, Record, Release,
    Resolution, Settled, Store, StoreError, StoreErrorKind, Vacant, clock::Timestamp, machine,
};

use crate::{
    DynamoDbStoreBuilder,
    item::{self, Item},
    table::Table,
    witness::Witness,
    write::Write,
};

/// Idempotency records in a DynamoDB table. Clones share their client, what they know of the time, and their bells.
#[derive(Debug, Clone)]
pub struct DynamoDbStore {
    pub(crate) table: Table,
    margin: Duration,
    bells: Arc<Bells>,
}

impl DynamoDbStore {
    /// The longest outcome: an item has at most 409,600 bytes, and what stands beside the outcome needs about 500. The
    /// rest is room for attributes of your own.
    pub const MAX_OUTCOME_BYTES: usize = 400_000;

    /// The name of the table unless another is chosen.
    pub const TABLE: &'static str = "idempotency";

    pub(crate) fn from_parts(table: Table, margin: Duration) -> Self {
        Self { table, margin, bells: Arc::default() }
    }

    /// A store in the table [`idempotency`](Self::TABLE) of `client`, with the defaults of [`builder`](Self::builder).
    /// Nothing is sent before the first call, which asks the service for its time.
    pub fn new(client: Client) -> Self {
        Self::builder(client).unchecked()
    }

    /// Starts from the defaults: the table [`idempotency`](Self::TABLE), which must exist, 1.5 s of patience, and
    /// takeovers 2 s late.
    pub fn builder(client: Client) -> DynamoDbStoreBuilder {
        DynamoDbStoreBuilder::new(client)
    }
}

impl Store for DynamoDbStore {
    /// One round trip, granted or refused; two to adopt a grant whose reply was lost, to take over a record whose
    /// retention is over or shorter than the bid's, and over a fence that is ahead of the time.
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        let bid = Bid { lease: self.guarded(bid.lease), ..*bid };
        let witness = self.table.witness();
        let call = async {
            let first = self.table.now().await?;
            let claim = self.claim_at(&witness, op, &bid, first.now).await?;
            if self.table.has_kept(&first) || !matches!(claim, Claim::Granted(_)) {
                return Ok(claim);
            }
            // It was granted until a time that may be over already.
            self.claim_at(&witness, op, &bid, self.table.now().await?.now).await
        };
        self.table.bounded(&witness, call).await
    }

    /// One strongly consistent read.
    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        let call = async {
            let now = self.table.now().await?.now;
            let record = self.table.find(op.address()).await?;
            Ok(machine::look(record.as_ref(), op, now))
        };
        self.table.bounded(&self.table.witness(), call).await
    }

    /// One round trip; two where the run goes on for more than an hour after its grant, since DynamoDB must then be told
    /// to keep the record longer.
    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        let term = self.guarded(term);
        let witness = self.table.witness();
        let call = async {
            let first = self.table.now().await?;
            let settled = self.renew_at(&witness, lease, term, first.now).await?;
            if self.table.has_kept(&first) || settled != Settled::Applied {
                return Ok(settled);
            }
            self.renew_at(&witness, lease, term, self.table.now().await?.now).await
        };
        self.table.bounded(&witness, call).await
    }

    /// One round trip.
    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        check_size(outcome)?;
        let witness = self.table.witness();
        let call = async {
            let now = self.table.now().await?.now;
            let write = Write::complete(&lease.holder, outcome, keep, now);
            let law = |record: Option<&Record>| machine::complete(record, &lease.holder, outcome, keep, now);
            self.table.decide(&witness, &lease.address, write, settled, law).await
        };
        let settled = self.table.bounded(&witness, call).await;
        self.bells.ring(&lease.address);
        settled
    }

    /// One round trip.
    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        let witness = self.table.witness();
        let call = async {
            let now = self.table.now().await?.now;
            let write = match why {
                Release::NotApplied => Write::release(&lease.holder, now),
                Release::Unknown => Write::doubt(&lease.holder),
            };
            let law = |record: Option<&Record>| machine::release(record, &lease.holder, why, now);
            self.table.decide(&witness, &lease.address, write, settled, law).await
        };
        let settled = self.table.bounded(&witness, call).await;
        self.bells.ring(&lease.address);
        settled
    }

    /// Removes nothing and answers 0: DynamoDB expires records by itself, by the attribute `expires_at`.
    async fn purge(&self, _: u32) -> Result<u32, StoreError> {
        Ok(0)
    }

    fn max_outcome_bytes(&self) -> usize {
        Self::MAX_OUTCOME_BYTES
    }
}

impl DynamoDbStore {
    async fn claim_at(
        &self,
        witness: &Witness,
        op: &Operation,
        bid: &Bid,
        now: Timestamp,
    ) -> Result<Claim<Lease>, StoreError> {
        let (address, holder) = (*op.address(), bid.holder);
        let granted = |changed: &Item| {
            let attempt = item::attempt(changed).map_err(|error| error.at(address))?;
            Ok(Claim::Granted(Lease { address, holder, fence: Fence::from_u64(now.as_micros()), attempt }))
        };
        let law = |record: Option<&Record>| machine::claim(record, op, bid, now);
        self.table.decide(witness, &address, Write::grant(op, bid, now), granted, law).await
    }

    async fn renew_at(
        &self,
        witness: &Witness,
        lease: &Lease,
        term: Duration,
        now: Timestamp,
    ) -> Result<Settled, StoreError> {
        let write = Write::renew(&lease.holder, now.plus(term));
        let law = |record: Option<&Record>| machine::renew(record, &lease.holder, term, now);
        self.table.decide(witness, &lease.address, write, settled, law).await
    }

    pub(crate) async fn resolve_doubt(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> Result<Settled, StoreError> {
        if let Resolution::Applied(outcome, _) = resolution {
            check_size(outcome)?;
        }
        let witness = self.table.witness();
        let call = async {
            let now = self.table.now().await?.now;
            let write = match resolution {
                Resolution::Applied(outcome, keep) => Write::resolve_applied(fence, outcome, *keep, now),
                Resolution::NotApplied => Write::resolve_not_applied(fence, now),
            };
            let law = |record: Option<&Record>| machine::resolve(record, fence, resolution, now);
            match self.table.decide(&witness, address, write, settled, law).await? {
                // What fences it may be the first copy of this very resolution, sent again by the SDK.
                Settled::Fenced(_) if witness.fate() == Fate::Unknown => {
                    Err(StoreError::new(StoreErrorKind::Unavailable, Fate::Unknown))
                }
                settled => Ok(settled),
            }
        };
        let settled = self.table.bounded(&witness, call).await;
        self.bells.ring(address);
        settled
    }

    /// How long a lease is written down for, so that a host whose clock is off takes it over late rather than early.
    fn guarded(&self, lease: Duration) -> Duration {
        lease.saturating_add(self.margin)
    }
}

/// Wakes for endings by this store and its clones; those of another process are found by looking.
impl Notify for DynamoDbStore {
    async fn ended(&self, address: &Address) {
        self.bells.rung(address).await;
    }
}

fn settled(_: &Item) -> Result<Settled, StoreError> {
    Ok(Settled::Applied)
}

fn check_size(outcome: &Outcome) -> Result<(), StoreError> {
    if outcome.bytes.len() <= DynamoDbStore::MAX_OUTCOME_BYTES {
        Ok(())
    } else {
        Err(StoreError::new(StoreErrorKind::TooLarge, Fate::NotApplied))
    }
}

#[cfg(test)]
mod tests;
