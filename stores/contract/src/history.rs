//! Random histories, compared with the machine.
//!
//! The laws by name show that a store knows the cases somebody thought of. A history shows the ones nobody did: a
//! long run of random inputs over a few keys, many of them sent twice, with time passing in between.

mod concurrent;
mod input;
mod model;
mod sequential;

use std::env;

pub(crate) use concurrent::concurrent_history_grants_one_at_a_time;
pub(crate) use sequential::sequential_history_agrees_with_the_machine;

use crate::scene::Scene;

/// The seed of a history: the same each time, unless `STORE_CONTRACT_SEED` names another.
fn seed() -> u64 {
    number("STORE_CONTRACT_SEED").unwrap_or(0x1d_e4b0_7e17)
}

/// How many steps a history takes: what the candidate says, unless `STORE_CONTRACT_STEPS` does, within its bound.
fn steps<S>(scene: &Scene<S>) -> u32 {
    let asked = number("STORE_CONTRACT_STEPS").and_then(|steps| u32::try_from(steps).ok());
    asked.unwrap_or(scene.steps).min(scene.most_steps)
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}
