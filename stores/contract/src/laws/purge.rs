//! What a purge removes.

use std::time::Duration;

use idempotency_core::{Bid, Inspect, Keep, OnLapse, Operation, Release, Store};

use crate::{
    Expiry, Violation,
    scene::{KEPT, LONG, Scene, operation, outcome},
    violation::demand_eq,
};

/// A purge removes completed records whose key is new again, released ones past their retention, and abandoned ones
/// past theirs; it keeps what still answers, refuses or may be taken over.
pub(crate) async fn purge_removes_what_is_over_and_keeps_the_rest<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let brief = scene.brief();
    let keeps = [
        (KEPT, "a completed record that answers stays"),
        (Keep { replay: brief, then_reject: LONG }, "a completed record that refuses stays"),
    ];
    let mut kept = Vec::new();
    for (keep, why) in keeps {
        kept.push((ended(&scene, Ending::Completed(keep)).await?, why));
    }
    kept.push((ended(&scene, Ending::Released(LONG)).await?, "a released record stays for its retention"));
    kept.push((ended(&scene, Ending::Abandoned(LONG)).await?, "an abandoned record stays for its retention"));
    let over = [
        ended(&scene, Ending::Completed(Keep { replay: brief / 2, then_reject: brief / 2 })).await?,
        ended(&scene, Ending::Released(brief)).await?,
        ended(&scene, Ending::Abandoned(Duration::ZERO)).await?,
    ];
    scene.pass_brief().await;
    let mut before = Vec::new();
    for (op, _) in &kept {
        before.push(scene.record(op).await?);
    }
    let removed = scene.store.purge(u32::MAX).await?;
    for ((op, why), before) in kept.iter().zip(before) {
        if scene.store.find(op.address()).await? != Some(before) {
            return Err(Violation::new(why, &scene.store.find(op.address()).await?));
        }
    }
    if scene.expiry == Expiry::Native {
        demand_eq!(removed, 0, "a backend that expires records by itself counts none");
        return Ok(());
    }
    for op in over {
        demand_eq!(scene.store.find(op.address()).await?, None, "what is over is removed");
    }
    demand_eq!(removed, 3, "each record removed is counted");
    Ok(())
}

enum Ending {
    Completed(Keep),
    /// Released, with this retention.
    Released(Duration),
    /// Lapsed after a brief lease, with this retention.
    Abandoned(Duration),
}

async fn ended<S: Store + Inspect>(scene: &Scene<S>, ending: Ending) -> Result<Operation, Violation> {
    let op = operation();
    match ending {
        Ending::Completed(keep) => {
            let lease = scene.granted(&op, &scene.bid()).await?;
            scene.completed(&lease, &outcome("done"), keep).await?;
        }
        Ending::Released(retention) => {
            let lease = scene.granted(&op, &Bid { retention, ..scene.bid() }).await?;
            scene.released(&lease, Release::NotApplied).await?;
        }
        Ending::Abandoned(retention) => {
            scene.granted(&op, &Bid { retention, ..scene.brief_bid(OnLapse::TakeOver) }).await?;
        }
    }
    Ok(op)
}

/// Nothing held or in doubt is ever removed, however short its retention.
pub(crate) async fn purge_spares_what_is_held_or_in_doubt<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let none = |bid: Bid| Bid { retention: Duration::ZERO, ..bid };
    let (running, held, in_doubt) = (operation(), operation(), operation());
    scene.granted(&running, &none(scene.bid())).await?;
    scene.granted(&held, &none(scene.brief_bid(OnLapse::Hold))).await?;
    let lease = scene.granted(&in_doubt, &none(scene.brief_bid(OnLapse::TakeOver))).await?;
    scene.released(&lease, Release::Unknown).await?;
    let ops = [running, held, in_doubt];
    let mut before = Vec::new();
    for op in &ops {
        before.push(scene.record(op).await?);
    }
    for _ in 0..3 {
        scene.pass_brief().await;
        demand_eq!(scene.store.purge(u32::MAX).await?, 0, "there is nothing to remove");
    }
    for (op, before) in ops.iter().zip(before) {
        demand_eq!(scene.store.find(op.address()).await?, Some(before), "what is held or in doubt stays");
    }
    Ok(())
}

/// A purge removes no more than it is asked to, and says how many it removed.
pub(crate) async fn purge_keeps_to_its_bound<S: Store + Inspect>(scene: Scene<S>) -> Result<(), Violation> {
    if scene.expiry == Expiry::Native {
        return Ok(()); // such a purge removes nothing
    }
    for _ in 0..5 {
        ended(&scene, Ending::Released(scene.brief())).await?;
    }
    scene.pass_brief().await;
    for (at_most, removed) in [(0, 0), (2, 2), (1, 1), (u32::MAX, 2), (u32::MAX, 0)] {
        demand_eq!(
            scene.store.purge(at_most).await?,
            removed,
            "the bound is kept and what is removed is counted"
        );
    }
    demand_eq!(
        scene.store.list(Default::default(), None, 10).await?,
        Vec::new(),
        "all that was over is removed"
    );
    Ok(())
}
