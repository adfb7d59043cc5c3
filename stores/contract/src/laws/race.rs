//! Many claims at one moment.

use std::sync::Arc;

use idempotency_core::{Bid, Claim, Inspect, Keep, Lease, OnLapse, Operation, Store, StoreError};
use tokio::{sync::Barrier, task::JoinSet};

use crate::{
    Violation,
    scene::{LONG, Scene, operation, outcome},
    violation::{demand, demand_eq},
};

const RACERS: usize = 50;

/// Of fifty claims on a fresh key exactly one is granted, many times in a row.
pub(crate) async fn one_of_fifty_wins_a_fresh_key<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let ops = scene.rounds().map(|_| operation()).collect::<Vec<_>>();
    one_wins_each(&scene, &ops).await
}

/// Of fifty claims on a lapsed lease exactly one takes it over.
pub(crate) async fn one_of_fifty_wins_a_lapsed_key<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let ops = scene.rounds().map(|_| operation()).collect::<Vec<_>>();
    for op in &ops {
        scene.granted(op, &scene.brief_bid(OnLapse::TakeOver)).await?;
    }
    scene.pass_brief().await;
    one_wins_each(&scene, &ops).await
}

/// Of fifty claims on a key whose record is over exactly one makes it new.
pub(crate) async fn one_of_fifty_wins_an_expired_key<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let ops = scene.rounds().map(|_| operation()).collect::<Vec<_>>();
    let keep = Keep { replay: scene.brief() / 2, then_reject: scene.brief() / 2 };
    for op in &ops {
        let lease = scene.granted(op, &scene.bid()).await?;
        scene.completed(&lease, &outcome("done"), keep).await?;
    }
    scene.pass_brief().await;
    one_wins_each(&scene, &ops).await
}

/// Copies of one claim that arrive together share one grant.
pub(crate) async fn copies_of_one_claim_share_one_grant<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    for _ in scene.rounds() {
        let (op, bid) = (operation(), scene.bid());
        let seen = race(&scene, &op, [bid; 8]).await?;
        let first = scene.granted(&op, &Bid { lease: LONG, ..bid }).await?;
        for claim in seen {
            demand_eq!(claim, Claim::Granted(first), "each copy of a claim gets the same grant");
        }
    }
    Ok(())
}

async fn one_wins_each<S: Store + Inspect>(scene: &Scene<S>, ops: &[Operation]) -> Result<(), Violation> {
    for op in ops {
        let bids = [(); RACERS].map(|()| scene.bid());
        let seen = race(scene, op, bids).await?;
        let granted = seen.iter().filter(|claim| matches!(claim, Claim::Granted(_))).count();
        demand_eq!(granted, 1, "exactly one of fifty claims is granted");
        for claim in seen {
            demand!(claim, Claim::Granted(_) | Claim::InFlight { .. }, "the others see it in flight");
        }
    }
    Ok(())
}

/// Sends one claim for each bid, all at once.
async fn race<S: Store + Inspect>(
    scene: &Scene<S>,
    op: &Operation,
    bids: impl IntoIterator<Item = Bid, IntoIter: ExactSizeIterator>,
) -> Result<Vec<Claim<Lease>>, Violation> {
    let bids = bids.into_iter();
    let start = Arc::new(Barrier::new(bids.len()));
    let mut racers = JoinSet::new();
    for bid in bids {
        let (store, op, start) = (scene.store.clone(), op.clone(), start.clone());
        racers.spawn(async move {
            start.wait().await;
            store.claim(&op, &bid).await
        });
    }
    let answers: Result<Vec<_>, StoreError> = racers.join_all().await.into_iter().collect();
    Ok(answers?)
}
