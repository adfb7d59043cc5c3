//! What the demo prints: steps, facts, and promises that are checked.

use std::fmt::Display;

#[derive(Debug, Default)]
pub(super) struct Report {
    broken: usize,
}

impl Report {
    pub(super) fn step(&self, number: u32, title: &str) {
        println!("\n{number}. {title}");
    }

    /// Something seen that may differ from run to run.
    pub(super) fn fact(&self, what: &str, seen: impl Display) {
        println!("   {what:<45} {seen}");
    }

    /// Something seen that was promised.
    pub(super) fn promise(&mut self, what: &str, seen: impl Display, promised: impl Display) {
        let (seen, promised) = (seen.to_string(), promised.to_string());
        if seen == promised {
            println!("   {what:<45} {seen:<40} ok");
        } else {
            self.broken += 1;
            println!("   {what:<45} {seen:<40} BROKEN, promised: {promised}");
        }
    }

    pub(super) fn note(&self, lines: &[&str]) {
        for line in lines {
            println!("{}", format!("   {line}").trim_end());
        }
    }

    /// How many promises were broken.
    pub(super) const fn broken(&self) -> usize {
        self.broken
    }
}
