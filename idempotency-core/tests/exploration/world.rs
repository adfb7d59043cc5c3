//! One record, everybody who writes to it, and everything that can happen to them next.
//!
//! A [`World`] is a handful of small numbers, all of time in it relative to now: there are only so many of them, and a
//! walk ends although time never does.

use idempotency_core::OnLapse;

use crate::words::{HOLDERS, LEASE, RETENTION, Row, Standing, TICK_MICROS, Tick};

/// A tick no later than any that matters.
pub(crate) const PAST: Tick = 1;
/// Where the clock always stands: instead of time going on, everything else moves back.
pub(crate) const NOW: Tick = 8;

/// The fence a first grant has now.
const FENCE_NOW: u8 = NOW * TICK_MICROS;
/// A fence some tick ago.
const OLD_FENCE: u8 = 1;
/// A fence no record will have any more.
const NO_FENCE: u8 = 0;

/// How many of the holders renew. The last one runs for a single lease: that is enough to see it lapse, and halves a
/// walk.
const RENEWING: u8 = 2;

/// One thing that can happen next. A message stays in flight for good once it is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    Tick,
    Purge,
    /// A holder asks for the key, with its own payload.
    SendClaim {
        holder: u8,
    },
    /// A copy of the claim arrives. A grant is answered later or never, a refusal now or never.
    ClaimArrives {
        holder: u8,
        heard: bool,
    },
    /// The answer that grants the claim arrives.
    GrantArrives {
        holder: u8,
    },
    SendRenewal {
        holder: u8,
    },
    RenewalArrives {
        holder: u8,
        heard: bool,
    },
    SendEnding {
        holder: u8,
        ending: Ending,
    },
    EndingArrives {
        holder: u8,
        ending: Ending,
    },
    /// The operator looks at a record in doubt and says how it ended.
    SendResolution {
        applied: bool,
    },
    ResolutionArrives,
}

/// How a holder ends what it was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Ending {
    Complete = 1,
    NotApplied = 2,
    Unknown = 4,
}

impl Ending {
    const ALL: [Self; 3] = [Self::Complete, Self::NotApplied, Self::Unknown];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Idle,
    Claiming,
    Running,
    Over,
}

/// What one holder knows and has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Runner {
    pub(crate) stage: Stage,
    /// When it sent its claim.
    pub(crate) claimed: Tick,
    /// Whether the answer that grants the claim is on its way.
    pub(crate) granted: bool,
    /// Until when it believes in its lease: the term from before the claim or renewal was sent.
    pub(crate) believes: Tick,
    /// When it last sent a renewal, if ever.
    pub(crate) renewed: Option<Tick>,
    /// The endings it has sent, as bits.
    endings: u8,
}

impl Runner {
    const IDLE: Self =
        Self { stage: Stage::Idle, claimed: PAST, granted: false, believes: PAST, renewed: None, endings: 0 };

    pub(crate) const fn send_claim(&mut self) {
        *self = Self { stage: Stage::Claiming, claimed: NOW, ..Self::IDLE };
    }

    /// The holder runs, believing in its lease until `believes`.
    pub(crate) const fn run(&mut self, believes: Tick) {
        *self = Self { stage: Stage::Running, believes, ..Self::IDLE };
    }

    pub(crate) fn send_ending(&mut self, ending: Ending) {
        self.endings |= ending as u8;
        self.leave();
    }

    /// The holder stops; its messages stay in flight.
    pub(crate) fn leave(&mut self) {
        let renewed = self.renewed.map(|_| PAST);
        *self = Self { stage: Stage::Over, renewed, endings: self.endings, ..Self::IDLE };
    }

    fn events(&self, holder: u8, events: &mut Vec<Event>) {
        let send = |ending| Event::SendEnding { holder, ending };
        match self.stage {
            Stage::Idle => events.push(Event::SendClaim { holder }),
            Stage::Claiming => {
                events.push(Event::ClaimArrives { holder, heard: true });
                events.push(send(Ending::NotApplied));
                if self.granted {
                    events.push(Event::GrantArrives { holder });
                }
            }
            Stage::Running => {
                if holder < RENEWING {
                    events.push(Event::SendRenewal { holder });
                }
                events.extend(Ending::ALL.map(send));
            }
            // A completion whose fate stayed unknown may be followed by word that the ending is unknown.
            Stage::Over if self.endings == Ending::Complete as u8 => events.push(send(Ending::Unknown)),
            Stage::Over => {}
        }
        if self.stage != Stage::Idle {
            events.push(Event::ClaimArrives { holder, heard: false });
        }
        if self.renewed.is_some() {
            events.push(Event::RenewalArrives { holder, heard: false });
            if self.stage == Stage::Running {
                events.push(Event::RenewalArrives { holder, heard: true });
            }
        }
        let sent = Ending::ALL.into_iter().filter(|ending| self.endings & *ending as u8 != 0);
        events.extend(sent.map(|ending| Event::EndingArrives { holder, ending }));
    }
}

/// What an operator said of the grant with this fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Word {
    pub(crate) fence: u8,
    pub(crate) applied: bool,
}

/// Everything that can make a difference later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) row: Option<Row>,
    pub(crate) runners: [Runner; HOLDERS],
    pub(crate) operator: Option<Word>,
    /// The highest fence granted so far.
    pub(crate) last_fence: u8,
    /// The holders whose run under `Hold` may have had an effect that nobody accounted for, as bits.
    pub(crate) unaccounted: u8,
}

impl World {
    /// Nothing stands and nobody asked.
    pub(crate) const START: Self =
        Self { row: None, runners: [Runner::IDLE; HOLDERS], operator: None, last_fence: 0, unaccounted: 0 };

    /// Everything that can happen here.
    pub(crate) fn events(&self, events: &mut Vec<Event>) {
        events.push(Event::Tick);
        for (holder, runner) in (0..).zip(&self.runners) {
            runner.events(holder, events);
        }
        if let Some(row) = self.row {
            events.push(Event::Purge);
            if row.is_in_doubt(NOW) {
                events.extend([false, true].map(|applied| Event::SendResolution { applied }));
            }
        }
        if self.operator.is_some() {
            events.push(Event::ResolutionArrives);
        }
    }

    pub(crate) const fn runner(&mut self, holder: u8) -> &mut Runner {
        &mut self.runners[holder as usize]
    }

    /// Whether more grants were made in this tick than it has time for.
    pub(crate) const fn is_overfull(&self) -> bool {
        self.last_fence >= FENCE_NOW + TICK_MICROS
    }

    /// Time passes by one tick: everything else moves back by one.
    pub(crate) fn tick(&mut self) {
        for runner in &mut self.runners {
            move_back(&mut runner.believes);
            move_back(&mut runner.claimed);
            runner.renewed.iter_mut().for_each(move_back);
        }
        let operators =
            self.operator.as_mut().map(|word| &mut word.fence).filter(|fence| **fence != NO_FENCE);
        operators.into_iter().chain([&mut self.last_fence]).for_each(move_fence_back);
        if let Some(row) = &mut self.row {
            move_fence_back(&mut row.fence);
            match &mut row.standing {
                Standing::InFlight { until, .. } | Standing::Released { until } => move_back(until),
                Standing::Completed { until, gone, .. } => {
                    move_back(until);
                    move_back(gone);
                    if *gone <= NOW {
                        self.unaccounted = 0;
                    }
                }
                Standing::InDoubt { .. } => {}
            }
        }
        self.forget();
    }

    /// Writes what can make no difference any more in one way, so that worlds which differ in nothing else are one.
    pub(crate) fn forget(&mut self) {
        for runner in &mut self.runners {
            forget(&mut runner.believes, 0);
            forget(&mut runner.claimed, LEASE);
            runner.renewed.iter_mut().for_each(|sent| forget(sent, LEASE));
        }
        if let Some(row) = &mut self.row {
            match &mut row.standing {
                Standing::InFlight { until, .. } if row.on_lapse == OnLapse::TakeOver => {
                    forget(until, RETENTION);
                }
                Standing::InFlight { until, .. } | Standing::Released { until } => forget(until, 0),
                Standing::Completed { until, gone, .. } => {
                    forget(until, 0);
                    forget(gone, 0);
                }
                Standing::InDoubt { .. } => {}
            }
        }
        // A fence below the clock is as good as any other: the next one is the clock.
        let named = self.operator.is_some_and(|word| self.row.is_some_and(|row| row.fence == word.fence));
        let oldest = |fence: &mut u8| *fence = if *fence < FENCE_NOW { OLD_FENCE } else { *fence };
        oldest(&mut self.last_fence);
        self.row.iter_mut().for_each(|row| oldest(&mut row.fence));
        if let Some(word) = &mut self.operator {
            word.fence = if named { self.last_fence } else { NO_FENCE };
        }
    }
}

fn move_back(tick: &mut Tick) {
    *tick = PAST.max(*tick - 1);
}

fn move_fence_back(fence: &mut u8) {
    *fence = OLD_FENCE.max(fence.saturating_sub(TICK_MICROS));
}

fn forget(tick: &mut Tick, matters_for: Tick) {
    if *tick + matters_for <= NOW {
        *tick = PAST;
    }
}
