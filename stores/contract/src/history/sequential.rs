//! One input at a time: every verdict and every record is what the machine says.

use std::{
    collections::VecDeque,
    fmt::{self, Write as _},
    time::Duration,
};

use fastrand::Rng;
use idempotency_core::{Inspect, Record, Store, machine::Step};

use super::{
    input::{Answer, Cast, Input, one_of},
    model::{Model, Watch, host_micros},
    seed, steps,
};
use crate::{
    Time, Violation,
    scene::{LONG, Scene},
    violation::demand,
};

/// How many steps one cast of keys and holders lasts.
const STRETCH: u32 = 500;

/// How many steps of a history a violation shows.
const SHOWN: usize = 20;

/// A long random history, many of its inputs sent twice, agrees with the machine in every verdict and every record.
pub(crate) async fn sequential_history_agrees_with_the_machine<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let (seed, steps) = (seed(), steps(&scene));
    let steps = if matches!(scene.time, Time::Real) { steps.min(800) } else { steps };
    let (watch, model) = Watch::set(&scene).await?;
    let mut history = History { rng: Rng::with_seed(seed), watch, model, past: VecDeque::new(), scene };
    for step in 0..steps.div_ceil(STRETCH) {
        let stretch = STRETCH.min(steps - step * STRETCH);
        if let Err(broken) = history.stretch(stretch).await {
            return Err(history.tell(seed, &broken));
        }
    }
    Ok(())
}

struct History<S> {
    rng: Rng,
    watch: Watch,
    model: Model,
    past: VecDeque<Past>,
    scene: Scene<S>,
}

/// What was done in one step.
enum Past {
    Sent(Box<(Input, Answer)>),
    Passed(Duration),
    Purged { at_most: u32, removed: u32 },
}

impl fmt::Display for Past {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(sent) => write!(f, "{:?}\n    -> {:?}", sent.0, sent.1),
            Self::Passed(step) => write!(f, "{step:?} pass"),
            Self::Purged { at_most, removed } => write!(f, "Purge at most {at_most}\n    -> {removed}"),
        }
    }
}

impl<S: Store + Inspect> History<S> {
    async fn stretch(&mut self, steps: u32) -> Result<(), Violation> {
        let durations = self.durations();
        let cast = Cast::draw(&mut self.rng, durations);
        let mut last: Option<Input> = None;
        for _ in 0..steps {
            match (self.rng.u8(..100), last.take()) {
                (0..20, _) => self.pass().await,
                (20..22, _) => self.purge().await?,
                (22..35, Some(lost)) => self.send(lost).await?, // its reply was lost
                _ => {
                    let input = cast.input(&mut self.rng, |address| self.model.record(address));
                    last = Some(input.clone());
                    self.send(input).await?;
                }
            }
        }
        Ok(())
    }

    async fn send(&mut self, input: Input) -> Result<(), Violation> {
        let began = host_micros();
        let answer = input.send(&*self.scene.store).await?;
        let window = self.watch.window(began);
        let found = self.scene.store.find(input.address()).await?;
        let before = self.model.record(input.address()).cloned();
        let followed = self.model.follow(&input, &answer, found.as_ref(), window, self.scene.expiry);
        self.remember(Past::Sent(Box::new((input, answer))));
        followed.map_err(|step| disagreement(before.as_ref(), &step, found.as_ref()))
    }

    async fn purge(&mut self) -> Result<(), Violation> {
        let at_most = *one_of(&mut self.rng, &[0, 1, 2, u32::MAX]);
        let began = host_micros();
        let removed = self.scene.store.purge(at_most).await?;
        let window = self.watch.window(began);
        self.remember(Past::Purged { at_most, removed });
        demand!(removed, removed if *removed <= at_most, "a purge keeps to its bound");
        self.model.purged(&self.scene, removed, window).await
    }

    async fn pass(&mut self) {
        let (brief, tick) = (self.scene.brief(), Duration::from_micros(1));
        let step = match self.scene.time {
            Time::Manual(_) => {
                *one_of(&mut self.rng, &[tick, tick, brief / 2, brief / 2, brief - tick, brief, brief * 2])
            }
            Time::Real if self.rng.u8(..10) == 0 => brief * 3 / 2,
            Time::Real => brief / 30,
        };
        self.scene.pass(step).await;
        self.remember(Past::Passed(step));
    }

    /// The leases, terms and retentions of a stretch; what would keep a key for ever is rare.
    fn durations(&mut self) -> Vec<Duration> {
        let brief = self.scene.brief();
        if matches!(self.scene.time, Time::Real) {
            return vec![brief, brief, brief, LONG];
        }
        let mut durations =
            vec![Duration::ZERO, Duration::from_micros(1), brief / 2, brief, brief, brief * 2];
        if self.rng.u8(..4) == 0 {
            durations.extend([LONG, Duration::MAX]);
        }
        durations
    }

    fn remember(&mut self, past: Past) {
        if self.past.len() == SHOWN {
            self.past.pop_front();
        }
        self.past.push_back(past);
    }

    /// The violation with what led to it.
    fn tell(&self, seed: u64, broken: &Violation) -> Violation {
        let mut seen = format!("{}\n\nSTORE_CONTRACT_SEED={seed}; the last steps were", broken.seen);
        for past in &self.past {
            let _ = write!(seen, "\n  {past}");
        }
        Violation { wants: broken.wants, seen }
    }
}

fn disagreement(before: Option<&Record>, machine: &Step<Answer>, found: Option<&Record>) -> Violation {
    let seen = format!(
        "the answer of the last step below\n  before: {before:?}\n  machine: {machine:?}\n  found after: {found:?}"
    );
    Violation { wants: "every verdict and every record is what the machine says", seen }
}
