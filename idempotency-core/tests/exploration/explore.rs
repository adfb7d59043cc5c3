//! The walk: breadth first, each world once.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use crate::{
    step::{Answer, Broken, Setting},
    world::{Event, World},
};

/// What a walk to the end saw.
pub(crate) struct Walk {
    pub(crate) states: usize,
    pub(crate) steps: usize,
    pub(crate) answers: Answers,
}

/// How often each input got each answer.
#[derive(Default)]
pub(crate) struct Answers(BTreeMap<Answer, usize>);

impl Answers {
    /// Checks that `input` got each of `verdicts` at least once.
    pub(crate) fn assert_seen(&self, input: &'static str, verdicts: &[&'static str]) {
        for verdict in verdicts {
            assert!(self.0.contains_key(&(input, *verdict)), "no {input} was ever answered \"{verdict}\"");
        }
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|((input, verdict), times)| writeln!(f, "  {input}: {verdict} x {times}"))
    }
}

/// The shortest history that breaks a promise.
pub(crate) struct Found {
    pub(crate) broken: Broken,
    history: Vec<Event>,
    world: World,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?} after", self.broken)?;
        self.history.iter().try_for_each(|event| writeln!(f, "  {event:?}"))?;
        write!(f, "the last of them from {:#?}", self.world)
    }
}

/// A world, where it was reached from and by what.
struct Reached {
    world: World,
    from: usize,
    by: Event,
}

/// Walks every world of `setting`.
pub(crate) fn walk(setting: &Setting) -> Result<Walk, Box<Found>> {
    let mut seen = HashSet::from([World::START]);
    let mut reached = vec![Reached { world: World::START, from: 0, by: Event::Tick }];
    let (mut steps, mut answers, mut events) = (0, Answers::default(), Vec::new());
    let mut next = 0;
    while next < reached.len() {
        let world = reached[next].world;
        world.events(&mut events);
        for event in events.drain(..) {
            steps += 1;
            let (after, answer) = setting.step(world, event).map_err(|broken| {
                Box::new(Found { broken, history: history(&reached, next, event), world })
            })?;
            if let Some(answer) = answer {
                *answers.0.entry(answer).or_default() += 1;
            }
            if seen.insert(after) {
                reached.push(Reached { world: after, from: next, by: event });
            }
        }
        next += 1;
    }
    Ok(Walk { states: seen.len(), steps, answers })
}

fn history(reached: &[Reached], mut at: usize, last: Event) -> Vec<Event> {
    let mut history = vec![last];
    while at != 0 {
        history.push(reached[at].by);
        at = reached[at].from;
    }
    history.reverse();
    history
}
