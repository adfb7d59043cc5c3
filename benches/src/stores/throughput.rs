//! Claim and completion against the raw floor, in turn and in one run.

use std::sync::Arc;

use super::{BoxError, Pair, crowd_of};
use crate::{
    statistics::{median, quantile},
    table::{Table, quotient},
};

const ROUNDS: usize = 15;
const CALLERS: [usize; 3] = [1, 16, 128];

/// Pairs that one round makes in all: enough that a round takes a good part of a second.
const fn pairs_of(callers: usize) -> usize {
    match callers {
        1 => 400,
        _ => 3_200,
    }
}

/// Prints how many pairs `store` makes a second, and which share that is of what `floor` makes.
///
/// # Errors
/// A pair failed: then something else would be measured.
pub async fn compare(name: &str, floor: impl Pair, store: impl Pair) -> Result<(), BoxError> {
    let (floor, store) = (Arc::new(floor), Arc::new(store));
    let mut table = Table::new(&["callers", "pairs a second", name, "floor", "of the floor", "quartiles"]);
    for callers in CALLERS {
        let each = pairs_of(callers) / callers;
        crowd_of(&floor, callers, each).await?;
        crowd_of(&store, callers, each).await?;
        let (mut ours, mut theirs, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // Whoever goes second may meet what the first left to do: they take turns.
            let (first, second) = if round % 2 == 0 {
                let first = crowd_of(&floor, callers, each).await?;
                (first, crowd_of(&store, callers, each).await?)
            } else {
                let second = crowd_of(&store, callers, each).await?;
                (crowd_of(&floor, callers, each).await?, second)
            };
            let rate = |took: std::time::Duration| (each * callers) as f64 / took.as_secs_f64();
            theirs.push(rate(first));
            ours.push(rate(second));
            shares.push(rate(second) / rate(first));
        }
        table.push(vec![
            callers.to_string(),
            (each * callers).to_string(),
            format!("{:.0}", median(&ours)),
            format!("{:.0}", median(&theirs)),
            quotient(median(&shares), 1.0),
            format!("{:.2}..{:.2}", quantile(&shares, 0.25), quantile(&shares, 0.75)),
        ]);
    }
    println!("{table}");
    Ok(())
}
