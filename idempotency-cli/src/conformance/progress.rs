//! The line that says how far it is. Only on a terminal, and coloured only there, unless `NO_COLOR` is set.

use std::io::{self, IsTerminal, Write};

use idempotency_conformance::{Progress, Report};

const CLEAR: &str = "\r\x1b[2K";

#[derive(Debug)]
pub(crate) struct ProgressLine {
    is_shown: bool,
    is_coloured: bool,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        let is_shown = io::stderr().is_terminal();
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_shown, is_coloured: is_shown && !is_plain }
    }

    pub(crate) fn show(&mut self, Progress { id, done, all }: Progress<'_>) {
        if self.is_shown {
            let (on, off) = if self.is_coloured { ("\x1b[36m", "\x1b[0m") } else { ("", "") };
            // A line that cannot be shown is not missed.
            let _ = write!(io::stderr(), "{CLEAR}{on}{}/{all}{off} {id}", done + 1);
        }
    }

    pub(crate) fn end(&mut self, report: &Report) {
        if self.is_shown {
            let colour = if report.is_clean() { "\x1b[32m" } else { "\x1b[31m" };
            let (on, off) = if self.is_coloured { (colour, "\x1b[0m") } else { ("", "") };
            let _ = writeln!(io::stderr(), "{CLEAR}{on}{}{off}", report.totals.sentence());
        }
    }
}
