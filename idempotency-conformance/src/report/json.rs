//! The report for programs.

use super::Report;

pub(super) fn render(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("a report has text keys only");
    text.push('\n');
    text
}
