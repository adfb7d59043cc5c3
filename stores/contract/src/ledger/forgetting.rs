//! What may go, and what may not.

use std::time::Duration;

use idempotency_core::{LedgerStore, Motion, Revision, Sheets};

use super::{LedgerCandidate, number, revision, write};
use crate::{Violation, violation::demand_eq};

pub(super) async fn nothing_unsettled_is_forgotten<C: LedgerCandidate>(
    candidate: &C,
) -> Result<(), Violation> {
    let store = candidate.open().await;
    let pending = || Revision { head: OPEN.to_owned(), sheets: [].into(), settled: false };
    store.transact("open", &[], |_, _| Motion::Write(pending(), ())).await?;
    write(&store, "closed", 1).await?;
    let forgotten = store.forget(Duration::ZERO, 100).await?;
    demand_eq!(number(&store.read("open", Sheets::All).await?.0), 5, "what is unsettled stays");
    if candidate.forgets() {
        demand_eq!(forgotten, 1, "what is settled and idle goes, and is counted");
        demand_eq!(store.read("closed", Sheets::All).await?.0.head, None, "what went is gone");
    }
    write(&store, "closed", 2).await?;
    demand_eq!(store.forget(Duration::from_secs(3_600), 100).await?, 0, "what was written lately stays");
    demand_eq!(number(&store.read("closed", Sheets::All).await?.0), 2, "what was written lately stands");
    Ok(())
}

/// A document of which one effect is unsettled: where documents are shared, their own text tells.
const OPEN: &str = r#"{"n": 5, "effects": {"e": {"status": "pending"}}}"#;

pub(super) async fn forgetting_keeps_to_its_bound<C: LedgerCandidate>(
    candidate: &C,
) -> Result<(), Violation> {
    let store = candidate.open().await;
    if !candidate.forgets() {
        return Ok(());
    }
    for scope in ["a", "b", "c"] {
        write(&store, scope, 1).await?;
    }
    demand_eq!(store.forget(Duration::ZERO, 2).await?, 2, "no more go than are asked for");
    demand_eq!(store.forget(Duration::ZERO, 2).await?, 1, "the rest goes with the next call");
    let sheets = [("sheet".to_owned(), Some("{}".to_owned()))].into();
    if store.layout() == idempotency_core::LedgerLayout::Split {
        let with_a_sheet = Revision { sheets, ..revision(1) };
        store.transact("d", &[], |_, _| Motion::Write(with_a_sheet.clone(), ())).await?;
        demand_eq!(store.forget(Duration::ZERO, 2).await?, 1, "a scope with sheets goes as one");
        write(&store, "d", 1).await?;
        demand_eq!(store.read("d", Sheets::All).await?.0.sheets.len(), 0, "its sheets went with it");
    }
    Ok(())
}
