//! Claims among many records, and during a purge.

use std::{sync::Arc, time::Duration};

use idempotency_axum::Store;
use idempotency_core::Claim;
use tokio::{task::JoinSet, time::Instant};

use super::{BoxError, Ours, Pair, bid, fresh_address, operation};
use crate::{
    statistics::quantile,
    table::{Table, quotient},
};

const FEW: usize = 1_000;
const MANY: usize = 1_000_000;
const CALLERS: usize = 64;
const ROUNDS: usize = 9;
const CLAIMS: usize = 2_000;

/// What a purge removes in one call.
const PURGED_AT_ONCE: u32 = 10_000;

/// Prints the latency of claims among a thousand and among a million records, on stores of their own, and, where the
/// store purges, of claims while half of the million is purged. `few` and `many` are empty.
///
/// # Errors
/// A call failed.
pub async fn measure<S: Store + Clone>(few: S, many: S) -> Result<(), BoxError> {
    fill(&few, FEW, FEW / 2).await?;
    let begun = Instant::now();
    fill(&many, MANY, MANY / 2).await?;
    println!("{MANY} records in {:.0} s", begun.elapsed().as_secs_f64());
    let mut table = Table::new(&["claims", "median us", "p99 us", "of the first", "p99 of the first"]);
    let (mut among_few, mut among_many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        among_few.extend(claims_alone(&few, CLAIMS / 4).await?);
        among_many.extend(claims_alone(&many, CLAIMS / 4).await?);
    }
    row(&mut table, "one caller, a thousand records", &among_few, &among_few);
    row(&mut table, "one caller, a million records", &among_many, &among_few);
    let mut crowd = Vec::new();
    for _ in 0..ROUNDS {
        crowd.extend(claims_of_a_crowd(&many, CLAIMS).await?);
    }
    let (during, purged) = claims_during_a_purge(&many).await?;
    row(&mut table, "64 callers, no purge", &crowd, &crowd);
    if purged > 0 {
        row(&mut table, &format!("64 callers, while {purged} records go"), &during, &crowd);
    }
    println!("{table}");
    Ok(())
}

fn row(table: &mut Table, name: &str, claims: &[f64], first: &[f64]) {
    let [middle, late] = [0.5, 0.99].map(|at| quantile(claims, at));
    let [first_middle, first_late] = [0.5, 0.99].map(|at| quantile(first, at));
    table.push(vec![
        name.into(),
        format!("{middle:.0}"),
        format!("{late:.0}"),
        quotient(middle, first_middle),
        quotient(late, first_late),
    ]);
}

/// Puts `count` completed records there, `over` of which may be removed at once.
async fn fill<S: Store + Clone>(store: &S, count: usize, over: usize) -> Result<(), BoxError> {
    let mut tasks = JoinSet::new();
    for caller in 0..CALLERS {
        let store = store.clone();
        tasks.spawn(async move {
            for number in (caller..count).step_by(CALLERS) {
                while put(&store, number < over).await.is_err() {
                    tokio::task::yield_now().await; // loading may be more than a disk takes in at once
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done?;
    }
    Ok(())
}

async fn put<S: Store + Clone>(store: &S, is_over: bool) -> Result<(), BoxError> {
    if is_over { released(store).await } else { Ours(store.clone()).pair().await }
}

/// A record that is over at once: claimed for no retention, and given back.
async fn released(store: &impl Store) -> Result<(), BoxError> {
    let op = operation(fresh_address());
    let Claim::Granted(lease) = store.claim(&op, &bid(Duration::ZERO)).await? else {
        return Err("a fresh key was refused".into());
    };
    let _ = store.release(&lease, idempotency_core::Release::NotApplied).await?;
    Ok(())
}

/// How long each claim took, in microseconds.
async fn claims_alone(store: &impl Store, count: usize) -> Result<Vec<f64>, BoxError> {
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        let _ = store.claim(&operation(fresh_address()), &bid(super::DAY)).await?;
        took.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(took)
}

async fn claims_of_a_crowd<S: Store + Clone>(store: &S, count: usize) -> Result<Vec<f64>, BoxError> {
    let mut tasks = JoinSet::new();
    for _ in 0..CALLERS {
        let store = store.clone();
        tasks.spawn(async move { claims_alone(&store, count / CALLERS).await });
    }
    let mut took = Vec::with_capacity(count);
    while let Some(done) = tasks.join_next().await {
        took.extend(done??);
    }
    Ok(took)
}

/// Claims by a crowd for as long as a purge takes, and how many records it removed.
async fn claims_during_a_purge<S: Store + Clone>(store: &S) -> Result<(Vec<f64>, u32), BoxError> {
    let purging = Arc::new(store.clone());
    let mut purge = tokio::spawn(async move {
        let mut removed = 0;
        loop {
            match purging.purge(PURGED_AT_ONCE).await? {
                0 => return Ok::<_, BoxError>(removed),
                more => removed += more,
            }
        }
    });
    let mut took = Vec::new();
    loop {
        tokio::select! {
            biased;
            purged = &mut purge => return Ok((took, purged??)),
            claims = claims_of_a_crowd(store, CLAIMS) => took.extend(claims?),
        }
    }
}
