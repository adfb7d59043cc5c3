//! The words of a published contract: the draft asks a resource to publish how it treats keys (section 2.5.2), and
//! leaves the form open.
//!
//! A door writes the contract of its routes with these and serves it at [`WELL_KNOWN`], so that a client learns what a
//! key is worth without spending one.

use std::time::Duration;

use super::{Ending, OnServerError, ending_of};

/// The draft that the profile follows.
pub const DRAFT_NAME: &str = "draft-ietf-httpapi-idempotency-key-header";
/// Its version.
pub const DRAFT_VERSION: &str = "07";
/// Where that version is.
pub const DRAFT_URL: &str =
    "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07";
/// The path a contract is served at.
pub const WELL_KNOWN: &str = "/.well-known/idempotency";

/// What the status of an answer means for its key, unless the handler says it: statuses and ranges as OpenAPI writes
/// them, `4XX` for all from 400 to 499. A status that is listed by itself is not meant by its range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statuses {
    /// The answer is every duplicate's.
    pub kept: Vec<String>,
    /// The key is free, and a retry runs again.
    pub released: Vec<String>,
    /// Nothing runs under the key until somebody finds out how the run ended.
    pub in_doubt: Vec<String>,
}

impl Statuses {
    /// What [`ending_of`] says of every status from 100 to 599.
    pub fn of(on_server_error: OnServerError) -> Self {
        let mut statuses = Self::default();
        for class in 1..=5 {
            let ending = |status| ending_of(status, on_server_error);
            let range = ending(class * 100 + 99);
            statuses.list(range).push(format!("{class}XX"));
            for status in (class * 100..class * 100 + 99).filter(|status| ending(*status) != range) {
                statuses.list(ending(status)).push(status.to_string());
            }
        }
        statuses
    }

    fn list(&mut self, ending: Ending) -> &mut Vec<String> {
        match ending {
            Ending::Keep | Ending::KeepHead => &mut self.kept,
            Ending::NotExecuted => &mut self.released,
            Ending::Unknown => &mut self.in_doubt,
        }
    }
}

/// `duration` as ISO 8601 writes it, in days, hours, minutes and seconds: `P1DT12H`, `PT0.5S`. A day has 24 hours here.
pub fn iso_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let mut time = String::new();
    for (count, unit) in [(hours, 'H'), (minutes, 'M')] {
        if count > 0 {
            time += &format!("{count}{unit}");
        }
    }
    match (seconds % 60, duration.subsec_nanos()) {
        (0, 0) => {}
        (whole, 0) => time += &format!("{whole}S"),
        (whole, nanos) => time += &format!("{whole}.{}S", format!("{nanos:09}").trim_end_matches('0')),
    }
    match (days, time.as_str()) {
        (0, "") => "PT0S".to_owned(),
        (0, time) => format!("PT{time}"),
        (days, "") => format!("P{days}D"),
        (days, time) => format!("P{days}DT{time}"),
    }
}

#[cfg(test)]
mod tests;
