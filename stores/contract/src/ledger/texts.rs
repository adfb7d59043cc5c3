//! What is written stands, and only that.

use idempotency_core::{Folio, LedgerLayout, LedgerStore, Motion, Revision, Sheets};

use super::{LedgerCandidate, head, number, revision, write};
use crate::{
    Violation,
    violation::{demand, demand_eq},
};

pub(super) async fn a_fresh_scope_is_blank<C: LedgerCandidate>(candidate: &C) -> Result<(), Violation> {
    let store = candidate.open().await;
    let (folio, _) = store.read("fresh", Sheets::All).await?;
    demand_eq!(folio, Folio::default(), "nothing stands where nobody wrote");
    let given = store.transact("fresh", &[], |folio, _| Motion::Keep(folio.clone())).await?;
    demand_eq!(given, Folio::default(), "a law is given nothing where nobody wrote");
    Ok(())
}

pub(super) async fn what_is_written_stands<C: LedgerCandidate>(candidate: &C) -> Result<(), Violation> {
    let store = candidate.open().await;
    demand_eq!(write(&store, "stands", 1).await?, 0, "the first finds nothing");
    demand_eq!(write(&store, "stands", 22).await?, 1, "the second finds what the first wrote");
    let (folio, _) = store.read("stands", Sheets::Named(&[])).await?;
    demand_eq!(folio.head, Some(head(22)), "a reader finds what was written last");
    Ok(())
}

pub(super) async fn a_law_that_keeps_writes_nothing<C: LedgerCandidate>(
    candidate: &C,
) -> Result<(), Violation> {
    let store = candidate.open().await;
    let answer = store.transact("kept", &[], |_, _| Motion::Keep("answer")).await?;
    demand_eq!(answer, "answer", "the law's answer is the call's");
    demand!(
        store.read("kept", Sheets::All).await?.0,
        Folio { head: None, .. },
        "a law that keeps makes no scope"
    );
    write(&store, "kept", 7).await?;
    store.transact("kept", &[], |_, _| Motion::Keep(())).await?;
    demand_eq!(number(&store.read("kept", Sheets::All).await?.0), 7, "a law that keeps changes nothing");
    Ok(())
}

pub(super) async fn scopes_are_independent<C: LedgerCandidate>(candidate: &C) -> Result<(), Violation> {
    let store = candidate.open().await;
    write(&store, "one", 1).await?;
    write(&store, "other", 2).await?;
    demand_eq!(number(&store.read("one", Sheets::All).await?.0), 1, "one scope's write is not another's");
    Ok(())
}

pub(super) async fn odd_names_are_names<C: LedgerCandidate>(candidate: &C) -> Result<(), Violation> {
    let store = candidate.open().await;
    let names = ["{tag}", "a'b\"c", "%_\\", " spaced ", "conv:é/1", "😀", "A", "a", &"😀".repeat(256)];
    for (number, name) in (1..).zip(names) {
        demand_eq!(write(&store, name, number).await?, 0, "no name is another's");
    }
    for (wanted, name) in (1..).zip(names) {
        demand_eq!(number(&store.read(name, Sheets::All).await?.0), wanted, "a name finds its scope");
    }
    Ok(())
}

pub(super) async fn sheets_are_read_and_written_one_by_one<C: LedgerCandidate>(
    candidate: &C,
) -> Result<(), Violation> {
    let store = candidate.open().await;
    if store.layout() == LedgerLayout::Whole {
        return Ok(());
    }
    let sheet = |name: &str, text: &str| (name.to_owned(), Some(text.to_owned()));
    let sheets = [sheet("a", "{\"of\": \"a\"}"), sheet("b", "{}"), sheet("é😀'", "{\"c\": 1}")].into();
    let first = Revision { sheets, ..revision(1) };
    store.transact("sheets", &[], |_, _| Motion::Write(first.clone(), ())).await?;
    let wanted = ["a".to_owned(), "é😀'".to_owned(), "none".to_owned()];
    let given = store.transact("sheets", &wanted, |folio, _| Motion::Keep(folio.clone())).await?;
    let texts: Vec<_> = given.sheets.into_iter().collect();
    let found =
        [("a".to_owned(), "{\"of\": \"a\"}".to_owned()), ("é😀'".to_owned(), "{\"c\": 1}".to_owned())];
    demand_eq!(texts, found, "the sheets named are given, and no others");
    let second = Revision { sheets: [("b".to_owned(), None), sheet("a", "{}")].into(), ..revision(2) };
    store.transact("sheets", &[], |_, _| Motion::Write(second.clone(), ())).await?;
    let (folio, _) = store.read("sheets", Sheets::All).await?;
    let names: Vec<_> = folio.sheets.keys().map(String::as_str).collect();
    demand_eq!(names, ["a", "é😀'"], "a sheet taken away is gone, and the others stand");
    demand_eq!(folio.sheets["a"].as_str(), "{}", "a sheet written again is the later one");
    Ok(())
}

pub(super) async fn a_law_may_ask_for_every_sheet<C: LedgerCandidate>(
    candidate: &C,
) -> Result<(), Violation> {
    let store = candidate.open().await;
    if store.layout() == LedgerLayout::Whole {
        return Ok(());
    }
    let sheets = (0..300).map(|sheet| (format!("sheet {sheet}"), Some(head(sheet)))).collect();
    let first = Revision { sheets, ..revision(1) };
    store.transact("all", &[], |_, _| Motion::Write(first.clone(), ())).await?;
    let mut calls = 0;
    let law = |folio: &Folio, _| {
        calls += 1;
        if calls == 1 { Motion::ReadAll } else { Motion::Write(revision(2), folio.sheets.len()) }
    };
    demand_eq!(store.transact("all", &[], law).await?, 300, "the second call is given every sheet");
    demand_eq!(calls, 2, "the law is called once more");
    let (folio, _) = store.read("all", Sheets::All).await?;
    demand_eq!((folio.sheets.len(), number(&folio)), (300, 2), "what the second call says is written");
    Ok(())
}
