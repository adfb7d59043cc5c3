//! What a law asks of a store while the line breaks, and how one sees whether it was done.

use std::time::Duration;

use idempotency_core::{
    Bid, Claim, Inspect, Keep, Lease, Operation, Outcome, Phase, Record, Release, Settled, Store, StoreError,
};

use super::line::{Line, bid};
use crate::{
    Violation,
    scene::{KEPT, LONG, operation, outcome},
    violation::demand,
};

/// Every kind of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    FirstClaim,
    Takeover,
    ClaimAfterRelease,
    Renewal,
    Completion,
    Release,
    Doubt,
}

/// What a store says of a write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    Granted(Lease),
    Refused(&'static str),
    Settled(Settled),
}

/// One write, staged: its record is as the write wants to find it.
pub(super) struct Act {
    deed: Deed,
    op: Operation,
    bid: Bid,
    lease: Lease,
    /// The record before the write.
    before: Option<Record>,
    keep: Keep,
    outcome: Outcome,
}

impl Deed {
    pub(super) const ALL: [Self; 7] = [
        Self::FirstClaim,
        Self::Takeover,
        Self::ClaimAfterRelease,
        Self::Renewal,
        Self::Completion,
        Self::Release,
        Self::Doubt,
    ];

    /// Prepares an operation of its own for this write, over the line that is whole.
    pub(super) async fn stage<S: Store + Inspect>(self, line: &Line<S>) -> Result<Act, Violation> {
        let (op, bid) = (operation(), bid());
        let mut lease = Lease::unconfirmed(*op.address(), bid.holder);
        match self {
            Self::FirstClaim => {}
            Self::Takeover => {
                let brief = Bid { lease: Duration::from_millis(1), ..super::line::bid() };
                granted(line, &op, &brief).await?;
                line.freed(&op).await?;
            }
            Self::ClaimAfterRelease => {
                let earlier = granted(line, &op, &super::line::bid()).await?;
                let released = line.tried(|| line.near.release(&earlier, Release::NotApplied)).await?;
                demand!(released, Settled::Applied, "a release counts");
            }
            Self::Renewal | Self::Completion | Self::Release | Self::Doubt => {
                lease = granted(line, &op, &bid).await?;
            }
        }
        let before = line.record(op.address()).await?;
        Ok(Act { deed: self, op, bid, lease, before, keep: KEPT, outcome: outcome("done") })
    }
}

async fn granted<S: Store + Inspect>(line: &Line<S>, op: &Operation, bid: &Bid) -> Result<Lease, Violation> {
    match line.tried(|| line.near.claim(op, bid)).await? {
        Claim::Granted(lease) => Ok(lease),
        refused => Err(Violation::new("a claim of a free key is granted", &refused)),
    }
}

impl Act {
    /// Sends the write. It may be sent again: the second copy gets the first one's answer.
    pub(super) async fn send<S: Store>(&self, store: &S) -> Result<Told, StoreError> {
        let settled = match self.deed {
            Deed::FirstClaim | Deed::Takeover | Deed::ClaimAfterRelease => {
                return Ok(match store.claim(&self.op, &self.bid).await? {
                    Claim::Granted(lease) => Told::Granted(lease),
                    refused => Told::Refused(refused.name()),
                });
            }
            Deed::Renewal => store.renew(&self.lease, LONG * 2).await?,
            Deed::Completion => store.complete(&self.lease, &self.outcome, self.keep).await?,
            Deed::Release => store.release(&self.lease, Release::NotApplied).await?,
            Deed::Doubt => store.release(&self.lease, Release::Unknown).await?,
        };
        Ok(Told::Settled(settled))
    }

    /// Whether the write was done, as the record tells.
    pub(super) async fn is_done<S: Store + Inspect>(&self, line: &Line<S>) -> Result<bool, Violation> {
        Ok(line.record(self.op.address()).await? != self.before)
    }

    /// Demands that the write was done once, whole, and in the name of whoever sent it, and that the answer says so.
    pub(super) async fn check<S: Store + Inspect>(
        &self,
        line: &Line<S>,
        told: &Told,
    ) -> Result<(), Violation> {
        let record = line.record(self.op.address()).await?;
        let Some(record) = record else {
            return Err(Violation::new("what a store says it did is on the server", told));
        };
        match told {
            Told::Granted(lease) => {
                let wanted = Lease {
                    address: *self.op.address(),
                    holder: record.holder,
                    fence: record.fence,
                    attempt: record.attempt,
                };
                demand!(lease, lease if **lease == wanted, "a grant is the one on the server");
            }
            Told::Settled(Settled::Applied) => {}
            other => {
                return Err(Violation::new("nobody meets a write of their own as somebody else's", other));
            }
        }
        demand!(&record, record if record.holder == self.bid.holder, "a record names the holder who bid");
        let attempt = if self.deed == Deed::Takeover { 2 } else { 1 };
        demand!(&record, record if record.attempt == attempt, "a write that is sent again counts once");
        let before = self.before.as_ref();
        match (self.deed, &record.phase) {
            (Deed::FirstClaim | Deed::Takeover | Deed::ClaimAfterRelease, Phase::InFlight { .. })
            | (Deed::Release, Phase::Released { .. })
            | (Deed::Doubt, Phase::InDoubt { .. }) => Ok(()),
            (Deed::Renewal, Phase::InFlight { .. }) if before.is_some_and(|before| *before != record) => {
                Ok(())
            }
            (Deed::Completion, Phase::Completed { outcome, .. }) if *outcome == self.outcome => Ok(()),
            _ => Err(Violation::new("what a store says it did is on the server", &record)),
        }
    }
}
