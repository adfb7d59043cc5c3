//! What a demo came to, for people and for programs.

use std::collections::BTreeMap;

/// Both sides of a demo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) conversations: u32,
    pub(super) seed: u64,
    pub(super) without: Side,
    pub(super) with: Side,
}

/// What one agent came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) messages: usize,
    pub(super) replies: usize,
    /// Answers of a message beyond its first.
    pub(super) duplicates: usize,
    /// Messages without one.
    pub(super) unanswered: usize,
    pub(super) faults: BTreeMap<&'static str, u32>,
}

impl Side {
    /// Whether every message was answered once.
    pub(super) const fn is_clean(&self) -> bool {
        self.duplicates == 0 && self.unanswered == 0
    }

    fn json(&self) -> String {
        let Self { messages, replies, duplicates, unanswered, faults } = self;
        let faults: Vec<_> = faults.iter().map(|(fault, count)| format!("\"{fault}\":{count}")).collect();
        format!(
            "{{\"messages\":{messages},\"replies\":{replies},\"duplicates\":{duplicates},\"unanswered\":{unanswered},\
             \"faults\":{{{}}}}}",
            faults.join(",")
        )
    }

    fn faults(&self) -> String {
        let all: Vec<_> = self.faults.iter().map(|(fault, count)| format!("{fault}={count}")).collect();
        all.join(", ")
    }
}

impl Report {
    pub(super) const fn is_clean(&self) -> bool {
        self.with.is_clean()
    }

    pub(super) fn json(&self) -> String {
        let Self { conversations, seed, without, with } = self;
        format!(
            "{{\"conversations\":{conversations},\"seed\":{seed},\"clean\":{},\"without\":{},\"with\":{}}}",
            self.is_clean(),
            without.json(),
            with.json()
        )
    }

    pub(super) fn table(&self, colours: bool) -> String {
        let Self { conversations, seed, without, with } = self;
        let mut text = format!("{conversations} support conversations, seed {seed}\n");
        let mut line = |words: String| text.extend([words.as_str(), "\n"]);
        line(format!("  faults without a ledger: {}", without.faults()));
        line(format!("  faults with one:         {}\n", with.faults()));
        line(format!(
            "{:<20}{:>10}{:>10}{:>12}{:>12}",
            "", "messages", "replies", "duplicates", "unanswered"
        ));
        for (name, side) in [("without a ledger", without), ("with idempotency", with)] {
            let row = format!(
                "{name:<20}{:>10}{:>10}{:>12}{:>12}",
                side.messages, side.replies, side.duplicates, side.unanswered
            );
            line(match (colours, side.is_clean()) {
                (false, _) => row,
                (true, true) => format!("\u{1b}[32m{row}\u{1b}[0m"),
                (true, false) => format!("\u{1b}[31m{row}\u{1b}[0m"),
            });
        }
        text.push('\n');
        text.push_str(if self.is_clean() {
            "With idempotency every message was answered once."
        } else {
            "With idempotency a message was answered twice, or not at all."
        });
        text
    }
}
