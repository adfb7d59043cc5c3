//! What a failed call says of its write is true, and sent again it gets the first one's answer.
//!
//! Each law strikes every exchange of every kind of write in turn: once, so that a driver or a store may try again by
//! itself, and lastingly, so that it may not succeed.

use std::ops::{Bound, RangeBounds};

use idempotency_core::{Fate, Inspect, Store, StoreError};
use tokio::time::timeout;

use crate::{
    Violation,
    wire::{
        Fault,
        deed::{Act, Deed, Told},
        line::Line,
    },
};

/// More exchanges than any write takes, connecting anew included.
const MOST: usize = 60;
/// How often a write is struck from its first exchange on, if need be.
const PASSES: usize = 4;

/// A request that never reaches the server writes nothing, and a store that says so lies about nothing else.
pub(crate) async fn request_that_never_arrived_wrote_nothing<S: Store + Inspect>(
    line: Line<S>,
) -> Result<(), Violation> {
    for deed in Deed::ALL {
        let struck = |seen: &Seen| seen.struck > 0;
        strike_each(&line, deed, Fault::CutBefore, Spell::Once, struck).await?;
        // A server that is out of reach grants and settles nothing.
        let failed = |seen: &Seen| seen.failed > 0;
        strike_each(&line, deed, Fault::CutBefore, Spell::Lasting, failed).await?;
    }
    Ok(())
}

/// A write whose reply is lost has an unknown fate, unless the store found out itself; its sender adopts it.
pub(crate) async fn lost_reply_leaves_the_fate_unknown<S: Store + Inspect>(
    line: Line<S>,
) -> Result<(), Violation> {
    for deed in Deed::ALL {
        for spell in [Spell::Once, Spell::Lasting] {
            strike_each(&line, deed, Fault::CutAfter, spell, written).await?;
        }
    }
    Ok(())
}

/// A reply that ends in its midst, or just before its end, is no answer, or else the right one.
pub(crate) async fn reply_cut_short_is_no_answer<S: Store + Inspect>(line: Line<S>) -> Result<(), Violation> {
    for deed in Deed::ALL {
        for fault in [Fault::CutWithin, Fault::CutAtEnd] {
            strike_each(&line, deed, fault, Spell::Once, written).await?;
        }
    }
    Ok(())
}

/// A request that arrives after its sender gave it up is done: nobody says before that it was not.
pub(crate) async fn late_request_is_not_called_unwritten<S: Store + Inspect>(
    line: Line<S>,
) -> Result<(), Violation> {
    for deed in Deed::ALL {
        strike_each(&line, deed, Fault::Late, Spell::Once, written).await?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Spell {
    Once,
    Lasting,
}

/// What came of the strikes at one kind of write.
#[derive(Debug, Default)]
struct Seen {
    struck: usize,
    failed: usize,
    /// How often the write was done though an exchange of it was struck.
    written: usize,
}

fn written(seen: &Seen) -> bool {
    seen.written > 0
}

/// Strikes the first exchange of a write, then the second of another, until one has no exchange left to strike. All of
/// it again until something was hit that the law is about: which exchange a statement is in depends on whether its
/// connection knows the statement already, so with each pass more of them were sent before.
async fn strike_each<S: Store + Inspect>(
    line: &Line<S>,
    deed: Deed,
    fault: Fault,
    spell: Spell,
    hit: impl Fn(&Seen) -> bool,
) -> Result<(), Violation> {
    let mut seen = Seen::default();
    for pass in 0..PASSES {
        for nth in 1..=MOST {
            for _ in 0..pass * 2 {
                let earlier = deed.stage(line).await?;
                line.tried(|| earlier.send(&*line.far)).await?;
                line.proxy.quiet().await;
            }
            line.rests().await?;
            let act = deed.stage(line).await?;
            let last = match spell {
                Spell::Once => Bound::Included(nth),
                Spell::Lasting => Bound::Unbounded,
            };
            let missed = strike(line, &act, fault, (Bound::Included(nth), last), &mut seen).await;
            let place = || format!("{deed:?}, exchange {nth} {fault:?} {spell:?}");
            if missed.map_err(|violation| violation.at(&place()))? {
                break;
            }
        }
        if hit(&seen) {
            return Ok(());
        }
    }
    let missed = Violation::new("the strikes hit what the law is about", &seen);
    Err(missed.at(&format!("{deed:?}, {fault:?} {spell:?}")))
}

/// Sends a write while the fault strikes, and again when it is healed. True if nothing was struck.
async fn strike<S: Store + Inspect>(
    line: &Line<S>,
    act: &Act,
    fault: Fault,
    which: impl RangeBounds<usize>,
    seen: &mut Seen,
) -> Result<bool, Violation> {
    line.proxy.strike(fault, which);
    // A store that gives up later than it may is dropped, as an engine would.
    let told = timeout(line.time_limit * 4, act.send(&*line.far)).await.ok();
    let struck = line.proxy.heal();
    line.proxy.settled().await;
    let written = act.is_done(line).await?;
    check_first_answer(line, act, told, written, seen).await?;
    seen.struck += struck;
    seen.written += usize::from(struck > 0 && written);
    let again = line.tried(|| act.send(&*line.far)).await?;
    act.check(line, &again).await?;
    Ok(struck == 0)
}

async fn check_first_answer<S: Store + Inspect>(
    line: &Line<S>,
    act: &Act,
    told: Option<Result<Told, StoreError>>,
    written: bool,
    seen: &mut Seen,
) -> Result<(), Violation> {
    match told {
        Some(Ok(told)) => act.check(line, &told).await,
        Some(Err(error)) if error.fate == Fate::NotApplied && written => {
            Err(Violation::new("a write that was done is not called undone", &error))
        }
        Some(Err(_)) | None => {
            seen.failed += 1;
            Ok(())
        }
    }
}
