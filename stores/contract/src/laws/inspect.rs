//! What an operator sees.

use std::collections::BTreeMap;

use idempotency_core::{Address, Bid, Inspect, OnLapse, Phase, Release, Select, Store};

use crate::{
    Violation,
    scene::{KEPT, Scene, operation, outcome},
    violation::{demand, demand_eq},
};

/// An operator finds a record as it was claimed, and none where nothing was claimed.
pub(crate) async fn record_is_found_as_it_was_claimed<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    for on_lapse in [OnLapse::TakeOver, OnLapse::Hold] {
        let (op, bid) = (operation(), scene.brief_bid(on_lapse));
        demand_eq!(scene.store.find(op.address()).await?, None, "nothing is found before a claim");
        let lease = scene.granted(&op, &bid).await?;
        let record = scene.record(&op).await?;
        demand_eq!(record.holder, bid.holder, "the record bears its holder");
        demand_eq!(record.fence, lease.fence, "the record bears the fence of the grant");
        demand_eq!(record.attempt, 1, "the record counts the attempt");
        demand_eq!(record.on_lapse, on_lapse, "the record says what its lapse means");
        demand_eq!(record.retention, bid.retention, "the record says how long it is kept");
        demand!(
            record.phase,
            Phase::InFlight { fingerprint, .. } if fingerprint.to_bytes() == op.fingerprint().to_bytes(),
            "the record bears the fingerprint, parts and all"
        );
    }
    Ok(())
}

/// Pages of a listing follow the order of the addresses, and together show each record once.
pub(crate) async fn listing_pages_in_the_order_of_addresses<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let mut wanted = BTreeMap::new();
    for _ in 0..25 {
        let op = operation();
        scene.granted(&op, &scene.bid()).await?;
        wanted.insert(*op.address(), scene.record(&op).await?);
    }
    let mut seen = Vec::new();
    let mut after: Option<Address> = None;
    for size in [10, 10, 5, 0] {
        let page = scene.store.list(Select::All, after.as_ref(), 10).await?;
        demand_eq!(page.len(), size, "a page is full until the records end");
        after = page.last().map(|(address, _)| *address).or(after);
        seen.extend(page);
    }
    demand_eq!(seen, wanted.into_iter().collect::<Vec<_>>(), "a listing shows each record once, in order");
    Ok(())
}

/// A listing of what is in doubt shows that and nothing else, leases lapsed under `Hold` among it.
pub(crate) async fn listing_in_doubt_shows_doubt_alone<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let [in_doubt, held, lapsed, running, live, released, completed] = [(); 7].map(|()| operation());
    scene.granted(&held, &scene.brief_bid(OnLapse::Hold)).await?;
    scene.granted(&lapsed, &scene.brief_bid(OnLapse::TakeOver)).await?;
    scene.granted(&running, &scene.bid()).await?;
    scene.granted(&live, &Bid { on_lapse: OnLapse::Hold, ..scene.bid() }).await?;
    let lease = scene.granted(&in_doubt, &scene.bid()).await?;
    scene.released(&lease, Release::Unknown).await?;
    let lease = scene.granted(&released, &scene.bid()).await?;
    scene.released(&lease, Release::NotApplied).await?;
    let lease = scene.granted(&completed, &scene.bid()).await?;
    scene.completed(&lease, &outcome("done"), KEPT).await?;
    scene.pass_brief().await;
    let page = scene.store.list(Select::InDoubt, None, 10).await?;
    let seen: Vec<Address> = page.into_iter().map(|(address, _)| address).collect();
    let mut wanted = vec![*in_doubt.address(), *held.address()];
    wanted.sort_unstable();
    demand_eq!(seen, wanted.clone(), "what is in doubt is listed, and nothing else");
    let rest = scene.store.list(Select::InDoubt, wanted.first(), 10).await?;
    demand_eq!(rest.len(), 1, "a listing of doubt begins after the address given");
    Ok(())
}
