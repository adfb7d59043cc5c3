//! Many at once, and the store's time.

use std::sync::Arc;

use idempotency_core::{LedgerStore, Motion, Sheets};
use tokio::task::JoinSet;

use super::{LedgerCandidate, number, revision, write};
use crate::{
    Violation,
    violation::{demand, demand_eq},
};

const WORKERS: u64 = 8;
const ROUNDS: u64 = 12;

pub(super) async fn no_write_is_lost<C: LedgerCandidate>(candidate: &C) -> Result<(), Violation> {
    let store = Arc::new(candidate.open().await);
    write(&*store, "counted", 0).await?;
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let store = Arc::clone(&store);
        workers.spawn(async move {
            for _ in 0..ROUNDS {
                let add = |folio: &_, _| Motion::Write(revision(number(folio) + 1), ());
                store.transact("counted", &[], add).await?;
            }
            Ok::<_, Violation>(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.expect("a worker does not panic")?;
    }
    let counted = number(&store.read("counted", Sheets::All).await?.0);
    demand_eq!(counted, WORKERS * ROUNDS, "each write builds on the one before");
    Ok(())
}

pub(super) async fn one_of_many_is_first<C: LedgerCandidate>(candidate: &C) -> Result<(), Violation> {
    let store = Arc::new(candidate.open().await);
    for round in 0..ROUNDS {
        let scope = format!("race {round}");
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            let (store, scope) = (Arc::clone(&store), scope.clone());
            workers.spawn(async move {
                let law = |folio: &idempotency_core::Folio, _| match &folio.head {
                    None => Motion::Write(revision(1), true),
                    Some(_) => Motion::Keep(false),
                };
                Ok::<_, Violation>(store.transact(&scope, &[], law).await?)
            });
        }
        let mut first = 0;
        while let Some(worker) = workers.join_next().await {
            first += u32::from(worker.expect("a worker does not panic")?);
        }
        demand_eq!(first, 1, "exactly one finds a scope blank");
    }
    Ok(())
}

pub(super) async fn time_goes_on<C: LedgerCandidate>(candidate: &C) -> Result<(), Violation> {
    let store = candidate.open().await;
    let first = store.transact("time", &[], |_, now| Motion::Write(revision(1), now)).await?;
    let second = store.transact("time", &[], |_, now| Motion::Keep(now)).await?;
    let (_, third) = store.read("time", Sheets::All).await?;
    demand!((first, second, third), (first, second, third) if first <= second && second <= third, "time does not go back");
    demand!(first, first if first.as_micros() > 1_000_000_000_000_000, "time is counted from the Unix epoch");
    Ok(())
}
