//! The report for people.

use super::{Graded, Report};

const DRAFT: &str =
    "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07#section-";

pub(super) fn render(report: &Report) -> String {
    let mut text =
        format!("# Conformance report\n\nTarget: {}\n\nSuite: {}\n\n", report.target, report.suite);
    text.push_str(&report.totals.sentence());
    text.push_str(".\n\n| vector | kind | section | outcome | reason |\n|---|---|---|---|---|\n");
    for graded in &report.results {
        text.push_str(&line(graded));
    }
    text
}

fn line(graded: &Graded) -> String {
    let section = graded.section.as_ref().map(|section| format!("[{section}]({DRAFT}{section})"));
    let cells = [
        graded.id.as_str(),
        graded.kind,
        section.as_deref().unwrap_or("–"),
        &graded.outcome.as_str().replace('_', " "),
        &graded.reason.as_deref().unwrap_or_default().replace('|', "\\|").replace(['\n', '\r'], " "),
    ];
    format!("| {} |\n", cells.join(" | "))
}
