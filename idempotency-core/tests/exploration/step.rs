//! What an event does to a world, and the promises every step has to keep.

use idempotency_core::{Claim, Fence, OnLapse, Record, Release, Resolution, Settled, clock::Timestamp};

use crate::{
    law::{After, Law},
    words::{
        HOLDERS, KEEP, LEASE, RESOLVED, Row, Standing, at, bid, holder as holder_of, operation, outcome,
        payload, settled_name, small_fence, ticks, verdict_name,
    },
    world::{Ending, Event, NOW, Stage, Word, World},
};

/// A promise that did not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A run that has every reason to believe in its lease does not stand in the record with it. As a record names
    /// one holder, two runs under live leases would be seen as this.
    LiveRunLostItsLease,
    /// A grant was made while nobody knew how the last run ended.
    GrantOverDoubt,
    /// A run began although an earlier one under `Hold` may have had an effect and nobody accounted for it.
    SecondRunUnderHold,
    /// A copy of a released claim got the key again.
    ReleasedClaimGranted,
    /// A completed record changed before it was gone.
    OutcomeChanged,
    /// A grant's fence was not above every earlier one.
    FenceDidNotRise,
    /// An input repeated at once changed the record or got another answer.
    RepetitionChangedSomething,
    /// An ending by somebody the record does not name changed it or was called applied.
    StrangerCounted,
    /// A purge took a record in doubt.
    PurgeTookDoubt,
    /// A purge changed what a later claim is answered.
    PurgeChangedAVerdict,
}

/// An input and the name of its answer.
pub(crate) type Answer = (&'static str, &'static str);

/// What a walk runs on.
pub(crate) struct Setting {
    pub(crate) law: Law,
    /// What each holder's bid says about a lapse.
    pub(crate) on_lapse: [OnLapse; HOLDERS],
}

impl Setting {
    /// The world after `event`, and what the store answered if it was asked.
    pub(crate) fn step(&self, mut world: World, event: Event) -> Result<(World, Option<Answer>), Broken> {
        let (before, mut answer) = (world, None);
        match event {
            Event::Tick => world.tick(),
            Event::Purge => self.purge(&mut world)?,
            Event::SendClaim { holder } => world.runner(holder).send_claim(),
            Event::ClaimArrives { holder, heard } => answer = Some(self.claim(&mut world, holder, heard)?),
            Event::GrantArrives { holder } => self.begin(&mut world, holder)?,
            Event::SendRenewal { holder } => world.runner(holder).renewed = Some(NOW),
            Event::RenewalArrives { holder, heard } => answer = Some(self.renew(&mut world, holder, heard)?),
            Event::SendEnding { holder, ending } => world.runner(holder).send_ending(ending),
            Event::EndingArrives { holder, ending } => answer = Some(self.end(&mut world, holder, ending)?),
            Event::SendResolution { applied } => {
                world.operator = world.row.map(|row| Word { fence: row.fence, applied });
            }
            Event::ResolutionArrives => answer = self.resolve(&mut world)?,
        }
        check_live_runs(&world)?;
        if world.is_overfull() {
            return Ok((before, None));
        }
        world.forget();
        Ok((world, answer))
    }

    fn purge(&self, world: &mut World) -> Result<(), Broken> {
        let Some(row) = world.row else { return Ok(()) };
        let (record, now) = (Record::from(&row), at(NOW));
        if !(self.law.is_removable)(&record, now) {
            return Ok(());
        }
        if row.is_in_doubt(NOW) {
            return Err(Broken::PurgeTookDoubt);
        }
        for (holder, payload) in (0..HOLDERS as u8).flat_map(|holder| [(holder, 0), (holder, 1)]) {
            let bid = bid(holder, self.on_lapse[usize::from(holder)]);
            let (_, with) = (self.law.claim)(Some(&record), operation(payload), &bid, now);
            let (_, without) = (self.law.claim)(None, operation(payload), &bid, now);
            // A copy by the record's own holder may get a new grant for its old one, or for none: its first answer
            // is older than the retention. Everybody else is answered exactly the same.
            let own = row.holder == holder && matches!(with, Claim::Granted(_) | Claim::Ended);
            if with != without && !(own && matches!(without, Claim::Granted(_))) {
                return Err(Broken::PurgeChangedAVerdict);
            }
        }
        world.row = None;
        Ok(())
    }

    fn claim(&self, world: &mut World, holder: u8, heard: bool) -> Result<Answer, Broken> {
        let bid = bid(holder, self.on_lapse[usize::from(holder)]);
        let op = operation(payload(holder));
        let (before, last_fence) = (world.row, world.last_fence);
        let verdict =
            apply(world, Repeated::SameAnswer, |record, now| (self.law.claim)(record, op, &bid, now))?;
        let granted =
            if let Claim::Granted(lease) = &verdict { Some(small_fence(lease.fence)) } else { None };
        if let Some(fence) = granted {
            let own = before.filter(|row| row.holder == holder);
            if own.is_some_and(|row| matches!(row.standing, Standing::Released { .. })) {
                return Err(Broken::ReleasedClaimGranted);
            }
            let is_adopted = own.is_some_and(|row| row.fence == fence);
            if !is_adopted && before.is_some_and(|row| row.is_in_doubt(NOW)) {
                return Err(Broken::GrantOverDoubt);
            }
            if !is_adopted && fence <= last_fence {
                return Err(Broken::FenceDidNotRise);
            }
            world.last_fence = fence;
        }
        let runner = world.runner(holder);
        match runner.stage {
            Stage::Claiming if granted.is_some() => runner.granted = true,
            Stage::Claiming if heard => runner.leave(),
            _ => {}
        }
        Ok(("claim", verdict_name(&verdict)))
    }

    /// The holder hears of its grant and runs. It gives a grant back that is too old to be believed in.
    fn begin(&self, world: &mut World, holder: u8) -> Result<(), Broken> {
        let believes = world.runner(holder).claimed + LEASE;
        if believes <= NOW {
            world.runner(holder).send_ending(Ending::NotApplied);
            return Ok(());
        }
        if world.unaccounted != 0 {
            return Err(Broken::SecondRunUnderHold);
        }
        if self.on_lapse[usize::from(holder)] == OnLapse::Hold {
            world.unaccounted |= 1 << holder;
        }
        world.runner(holder).run(believes);
        Ok(())
    }

    fn renew(&self, world: &mut World, holder: u8, heard: bool) -> Result<Answer, Broken> {
        let settled = end_by(world, holder, |record, now| {
            (self.law.renew)(record, &holder_of(holder), ticks(LEASE), now)
        })?;
        let runner = world.runner(holder);
        if let (true, Settled::Applied, Some(sent)) = (heard, settled, runner.renewed)
            && sent + LEASE > NOW
        {
            runner.believes = runner.believes.max(sent + LEASE);
        }
        Ok(("renew", settled_name(settled)))
    }

    fn end(&self, world: &mut World, holder: u8, ending: Ending) -> Result<Answer, Broken> {
        let by = holder_of(holder);
        let settled = end_by(world, holder, |record, now| match ending {
            Ending::Complete => (self.law.complete)(record, &by, &outcome(holder), KEEP, now),
            Ending::NotApplied => (self.law.release)(record, &by, Release::NotApplied, now),
            Ending::Unknown => (self.law.release)(record, &by, Release::Unknown, now),
        })?;
        if ending == Ending::NotApplied && settled == Settled::Applied {
            world.unaccounted &= !(1 << holder);
        }
        let input = match ending {
            Ending::Complete => "complete",
            Ending::NotApplied => "release",
            Ending::Unknown => "release unknown",
        };
        Ok((input, settled_name(settled)))
    }

    fn resolve(&self, world: &mut World) -> Result<Option<Answer>, Broken> {
        let Some(Word { fence, applied }) = world.operator else { return Ok(None) };
        let fence = Fence::from_u64(fence.into());
        let how = if applied { Resolution::Applied(outcome(RESOLVED), KEEP) } else { Resolution::NotApplied };
        let resolve = |record: Option<&Record>, now| (self.law.resolve)(record, fence, &how, now);
        let settled = apply(world, Repeated::AnyAnswer, resolve)?;
        if settled == Settled::Applied {
            world.unaccounted = 0;
        }
        Ok(Some(("resolve", settled_name(settled))))
    }
}

/// What a repetition of an input may be answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeated {
    SameAnswer,
    /// A resolution that counted finds nothing left to resolve.
    AnyAnswer,
}

/// Gives the record an input, and once more.
fn apply<V: PartialEq>(
    world: &mut World,
    repeated: Repeated,
    input: impl Fn(Option<&Record>, Timestamp) -> After<V>,
) -> Result<V, Broken> {
    let now = at(NOW);
    let before = world.row.as_ref().map(Record::from);
    let (after, verdict) = input(before.as_ref(), now);
    let stands = |row: Row| matches!(row.standing, Standing::Completed { gone, .. } if gone > NOW);
    if world.row.is_some_and(stands) && after != before {
        return Err(Broken::OutcomeChanged);
    }
    let (again, second) = input(after.as_ref(), now);
    if again != after || (repeated == Repeated::SameAnswer && second != verdict) {
        return Err(Broken::RepetitionChangedSomething);
    }
    world.row = after.as_ref().map(Row::from);
    Ok(verdict)
}

/// Gives the record a renewal or an ending by `holder`.
fn end_by(
    world: &mut World,
    holder: u8,
    input: impl Fn(Option<&Record>, Timestamp) -> After<Settled>,
) -> Result<Settled, Broken> {
    let before = world.row;
    let settled = apply(world, Repeated::SameAnswer, input)?;
    let is_stranger = before.is_none_or(|row| row.holder != holder);
    if is_stranger && (world.row != before || settled == Settled::Applied) {
        return Err(Broken::StrangerCounted);
    }
    Ok(settled)
}

/// Every run that believes in its lease stands in the record, at least as long as it believes.
fn check_live_runs(world: &World) -> Result<(), Broken> {
    for (holder, runner) in (0..).zip(&world.runners) {
        let holds = |row: Row| {
            row.holder == holder
                && matches!(row.standing, Standing::InFlight { until, .. } if until >= runner.believes)
        };
        if runner.believes > NOW && !world.row.is_some_and(holds) {
            return Err(Broken::LiveRunLostItsLease);
        }
    }
    Ok(())
}
