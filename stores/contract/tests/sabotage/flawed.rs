//! The reference store with one flaw.

use std::time::Duration;

use idempotency_core::{
    Address, Bid, Claim, Fence, Form, Holder, Inspect, Keep, Lease, Media, OnLapse, Operation, Outcome,
    Parts, Phase, Record, Release, Resolution, Select, Settled, Store, StoreError, Vacant,
    clock::{Clock, Timestamp},
    machine::{self, Step},
};

use crate::{
    flaw::Flaw,
    payload::{heard, miswrite},
    reference::Reference,
};

#[derive(Debug)]
pub(crate) struct Flawed {
    pub(crate) right: Reference,
    pub(crate) flaw: Flaw,
}

impl Flawed {
    /// The record as the flaw reads it before a claim or a look is decided.
    fn misread(
        &self,
        record: Option<&Record>,
        op: &Operation,
        holder: &Holder,
        now: Timestamp,
    ) -> Option<Record> {
        let mut record = record?.clone();
        let (mine, tick) = (record.holder == *holder, Duration::from_micros(1));
        match (self.flaw, &mut record.phase) {
            (Flaw::FenceRestartsAfterRelease, Phase::Released { .. }) => record.fence = Fence::from_u64(0),
            (Flaw::DelayedCopyIsGranted, Phase::Released { .. }) => record.holder = nobody(),
            (Flaw::ReplyIsNotAdopted, Phase::InFlight { .. }) => record.holder = nobody(),
            (Flaw::AttemptIsNotCounted, Phase::InFlight { until, .. }) if !mine && until.is_past(now) => {
                record.attempt = 0;
            }
            (Flaw::HoldIsTakenOver, _) => record.on_lapse = OnLapse::TakeOver,
            (Flaw::AbandonedKeepsItsPayload, Phase::InFlight { .. }) if !mine => {
                record.retention = Duration::MAX;
            }
            (Flaw::RetentionBeatsTheLease, Phase::InFlight { .. })
                if record.retention.is_zero() && record.on_lapse == OnLapse::TakeOver =>
            {
                record.phase = Phase::Released { until: now };
                record.holder = nobody();
            }
            (Flaw::LapseComesLate, Phase::InFlight { until, .. }) if *until == now => *until = now.plus(tick),
            (Flaw::LapseComesEarly, Phase::InFlight { until, .. }) if *until == now.plus(tick) => {
                *until = now;
            }
            (Flaw::ExpiredForEver, Phase::Completed { gone, .. }) => *gone = Timestamp::NEVER,
            (Flaw::ExpiredNamesTheMismatch, Phase::Completed { fingerprint, until, gone, .. })
                if fingerprint != op.fingerprint() && !gone.is_past(now) =>
            {
                *until = Timestamp::NEVER;
            }
            _ => {}
        }
        Some(record)
    }

    fn claim_step(
        &self,
        record: Option<&Record>,
        op: &Operation,
        bid: &Bid,
        now: Timestamp,
    ) -> Step<Claim<Lease>> {
        let bid = &Bid { lease: self.span(bid.lease), ..*bid };
        let op = &heard(self.flaw, op, record);
        let read = self.misread(record, op, &bid.holder, now);
        let mut step = machine::claim(read.as_ref(), op, bid, now);
        let adopted = record.is_some_and(|record| record.holder == bid.holder);
        if let (Some(write), Some(record)) = (&mut step.write, record) {
            miswrite(self.flaw, write, record, op);
        }
        match (self.flaw, &mut step) {
            (
                Flaw::FenceIgnoresTheClock | Flaw::ReleaseForgets,
                Step { write: Some(write), verdict: Claim::Granted(lease) },
            ) if !adopted => {
                write.fence = Fence::from_u64(record.map_or(0, |record| record.fence.as_u64()) + 1);
                lease.fence = write.fence;
            }
            (Flaw::AdoptionShortens, Step { write: Some(write), .. }) => {
                if let Phase::InFlight { until, .. } = &mut write.phase {
                    *until = now.plus(bid.lease);
                }
            }
            (Flaw::MismatchNamesNothing, Step { verdict: Claim::Mismatch(parts), .. }) => {
                *parts = Parts::default();
            }
            (Flaw::MismatchOverwrites, Step { write, verdict: Claim::Mismatch(_) }) => {
                *write = record.cloned();
                match write.as_mut().map(|write| &mut write.phase) {
                    Some(Phase::InFlight { fingerprint, .. } | Phase::InDoubt { fingerprint }) => {
                        *fingerprint = *op.fingerprint();
                    }
                    _ => *write = None,
                }
            }
            (Flaw::LapseIsWritten, Step { write, verdict: Claim::InDoubt { .. } }) => {
                *write = in_doubt(record);
            }
            _ => {}
        }
        step
    }

    /// The record an ending finds, as the flaw reads it.
    fn misread_ending(&self, record: Option<&Record>, lease: &Lease, now: Timestamp) -> Option<Record> {
        let mut record = record?.clone();
        let fence_differs = record.fence != lease.fence;
        match self.flaw {
            Flaw::EndingComparesTheFence if fence_differs => record.holder = nobody(),
            Flaw::ReleaseForgets => record.holder = if fence_differs { nobody() } else { lease.holder },
            _ => {}
        }
        let lapsed = matches!(record.phase, Phase::InFlight { until, .. } if until.is_past(now));
        if lapsed && matches!(self.flaw, Flaw::LapsedCompletionIsRefused | Flaw::LapsedRenewalIsRefused) {
            record.holder = nobody();
        }
        Some(record)
    }

    fn complete_step(
        &self,
        record: Option<&Record>,
        lease: &Lease,
        outcome: &Outcome,
        keep: Keep,
        now: Timestamp,
    ) -> Step<Settled> {
        let read = match self.flaw {
            Flaw::LapsedRenewalIsRefused => record.cloned(),
            _ => self.misread_ending(record, lease, now),
        };
        let keep = Keep { replay: self.span(keep.replay), ..keep };
        let mut read = read;
        if let Some(read) = &mut read {
            match (self.flaw, &read.phase) {
                (Flaw::CompletionIsUnfenced, Phase::InFlight { .. }) => read.holder = lease.holder,
                (Flaw::SecondCompletionOverwrites, Phase::Completed { fingerprint, .. })
                    if read.holder == lease.holder =>
                {
                    read.phase = Phase::InDoubt { fingerprint: *fingerprint };
                }
                _ => {}
            }
        }
        if read.is_none() && self.flaw == Flaw::AbsentCompletionCounts {
            return Step { write: None, verdict: Settled::Applied };
        }
        machine::complete(read.as_ref(), &lease.holder, outcome, keep, now)
    }

    fn release_step(
        &self,
        record: Option<&Record>,
        lease: &Lease,
        why: Release,
        now: Timestamp,
    ) -> Step<Settled> {
        let mut read = match self.flaw {
            Flaw::LapsedRenewalIsRefused | Flaw::LapsedCompletionIsRefused => record.cloned(),
            _ => self.misread_ending(record, lease, now),
        };
        if let Some(read) = &mut read {
            match (self.flaw, &read.phase) {
                (Flaw::RepeatedReleaseIsRefused, Phase::Released { .. }) => read.holder = nobody(),
                (Flaw::DoubtEndsAsReleased, Phase::InDoubt { fingerprint }) if why == Release::NotApplied => {
                    read.phase = Phase::InFlight { fingerprint: *fingerprint, until: now };
                }
                _ => {}
            }
        }
        machine::release(read.as_ref(), &lease.holder, why, now)
    }

    fn renew_step(
        &self,
        record: Option<&Record>,
        lease: &Lease,
        term: Duration,
        now: Timestamp,
    ) -> Step<Settled> {
        let mut read = match self.flaw {
            Flaw::LapsedCompletionIsRefused => record.cloned(),
            _ => self.misread_ending(record, lease, now),
        };
        if let (Flaw::RenewalIsUnfenced, Some(read)) = (self.flaw, &mut read) {
            read.holder = lease.holder;
        }
        let mut step = machine::renew(read.as_ref(), &lease.holder, self.span(term), now);
        if let (Flaw::RenewalShortens, Some(write)) = (self.flaw, &mut step.write)
            && let Phase::InFlight { until, .. } = &mut write.phase
        {
            *until = now.plus(term);
        }
        step
    }

    fn is_removed(&self, record: &Record, now: Timestamp) -> bool {
        let early = now.plus(Duration::from_micros(1));
        machine::is_removable(record, now)
            || match (self.flaw, &record.phase) {
                (Flaw::PurgeComesEarly, _) => machine::is_removable(record, early),
                (Flaw::ExpiredIsPurged, Phase::Completed { until, .. }) => until.is_past(now),
                (Flaw::HeldIsPurged, Phase::InFlight { until, .. }) => {
                    until.plus(record.retention).is_past(now)
                }
                (Flaw::DoubtIsPurged, Phase::InDoubt { .. }) => true,
                _ => false,
            }
    }

    fn span(&self, span: Duration) -> Duration {
        match self.flaw {
            Flaw::DurationsWrap => Duration::from_micros((span.as_micros() as i64).max(0) as u64),
            _ => span,
        }
    }

    fn outcome(&self, outcome: &Outcome) -> Outcome {
        let mut kept = outcome.clone();
        match self.flaw {
            Flaw::BytesAreText => kept.bytes = String::from_utf8_lossy(&outcome.bytes).into_owned().into(),
            Flaw::MediaIsOneByte => kept.media = Media(outcome.media.0 & 0xff),
            Flaw::TombstoneIsLost => kept.form = Form::Whole,
            Flaw::TooLargeIsCut => kept.bytes.truncate(self.right.max_outcome_bytes()),
            _ => {}
        }
        kept
    }

    fn expire(&self, chosen: impl Fn(&Address) -> bool) {
        if self.flaw == Flaw::ExpiresByItself {
            let now = self.right.clock.now();
            self.right
                .records()
                .retain(|address, record| !chosen(address) || !machine::is_removable(record, now));
        }
    }

    /// Where the store looks for the record.
    fn place(&self, address: &Address) -> Address {
        let mut bytes = *address.as_bytes();
        if self.flaw == Flaw::AddressIsCut {
            bytes[16..].fill(0);
        }
        let place = Address::from_bytes(bytes);
        self.expire(|address| *address == place);
        place
    }
}

fn nobody() -> Holder {
    Holder::from_bytes([0; 16])
}

/// The record with its lapse written down, if it lapsed.
fn in_doubt(record: Option<&Record>) -> Option<Record> {
    match record?.phase {
        Phase::InFlight { fingerprint, .. } => {
            Some(Record { phase: Phase::InDoubt { fingerprint }, ..record?.clone() })
        }
        _ => None,
    }
}

impl Store for Flawed {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        let place = self.place(op.address());
        if self.flaw == Flaw::ReadThenWrite {
            let record = self.right.find(&place).await?;
            let step = machine::claim(record.as_ref(), op, bid, self.right.clock.now());
            tokio::task::yield_now().await;
            return Ok(self.right.step(&place, |_, _| step));
        }
        Ok(self.right.step(&place, |record, now| self.claim_step(record, op, bid, now)))
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        Ok(self.right.step(&self.place(op.address()), |record, now| {
            let op = &heard(self.flaw, op, record);
            let read = self.misread(record, op, &nobody(), now);
            let mut verdict = machine::look(read.as_ref(), op, now);
            if let (Flaw::MismatchNamesNothing, Claim::Mismatch(parts)) = (self.flaw, &mut verdict) {
                *parts = Parts::default();
            }
            let lapsed = matches!(verdict, Claim::InDoubt { .. }) && self.flaw == Flaw::LookWrites;
            Step { write: if lapsed { in_doubt(record) } else { None }, verdict }
        }))
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        let place = self.place(&lease.address);
        Ok(self.right.step(&place, |record, now| self.renew_step(record, lease, term, now)))
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        let outcome = self.outcome(outcome);
        self.right.check_length(&outcome)?;
        let place = self.place(&lease.address);
        Ok(self.right.step(&place, |record, now| self.complete_step(record, lease, &outcome, keep, now)))
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        let place = self.place(&lease.address);
        let settled = self.right.step(&place, |record, now| self.release_step(record, lease, why, now));
        if self.flaw == Flaw::ReleaseForgets && settled == Settled::Applied && why == Release::NotApplied {
            self.right.records().remove(&place);
        }
        Ok(settled)
    }

    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        let at_most = match self.flaw {
            Flaw::PurgeIgnoresItsBound => u32::MAX,
            Flaw::ExpiresByItself => 0,
            _ => at_most,
        };
        Ok(self.right.remove(at_most, |record, now| self.is_removed(record, now)))
    }

    fn max_outcome_bytes(&self) -> usize {
        self.right.max_outcome_bytes()
    }
}

impl Inspect for Flawed {
    async fn find(&self, address: &Address) -> Result<Option<Record>, StoreError> {
        let mut found = self.right.find(&self.place(address)).await?;
        if let (Flaw::AttemptIsHidden, Some(found)) = (self.flaw, &mut found) {
            found.attempt = 0;
        }
        Ok(found)
    }

    async fn list(
        &self,
        select: Select,
        after: Option<&Address>,
        at_most: u32,
    ) -> Result<Vec<(Address, Record)>, StoreError> {
        self.expire(|_| true);
        let mut page = self.right.list(select, after, at_most).await?;
        match (self.flaw, after) {
            (Flaw::ListingRepeats, Some(after)) => {
                page.extend(self.right.find(after).await?.map(|record| (*after, record)));
                page.rotate_right(1);
                page.truncate(at_most as usize);
            }
            (Flaw::HeldIsNotListed, _) if select == Select::InDoubt => {
                page.retain(|(_, record)| matches!(record.phase, Phase::InDoubt { .. }));
            }
            _ => {}
        }
        Ok(page)
    }

    async fn resolve(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> Result<Settled, StoreError> {
        let kept = match resolution {
            Resolution::Applied(..) if self.flaw == Flaw::ResolvedOutcomeIsDropped => Resolution::NotApplied,
            Resolution::Applied(outcome, keep) => Resolution::Applied(self.outcome(outcome), *keep),
            Resolution::NotApplied => Resolution::NotApplied,
        };
        Ok(self.right.step(&self.place(address), |record, now| {
            let any = record.filter(|_| self.flaw == Flaw::ResolutionIgnoresTheFence);
            let mut step = machine::resolve(record, any.map_or(fence, |record| record.fence), &kept, now);
            if let (Flaw::ResolutionKeepsTheHolder, Some(write), Some(record)) =
                (self.flaw, &mut step.write, record)
            {
                write.holder = record.holder;
            }
            step
        }))
    }
}
