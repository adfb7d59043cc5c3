//! `Prefer: wait=N` (RFC 7240): how long a caller would wait for the first request's answer.

use std::time::Duration;

use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The wait a caller prefers, from the values of all lines of its `Prefer` header; `None` when it names none.
///
/// A preference is a wish, so what cannot be read is no preference and no error.
pub fn preferred_wait<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<Duration> {
    lines.into_iter().find_map(wait_of)
}

fn wait_of(line: &[u8]) -> Option<Duration> {
    let line = line.to_ascii_lowercase(); // names of preferences have no case
    let preferences: Dictionary = Parser::new(&line).parse().ok()?;
    let ListEntry::Item(item) = preferences.get("wait")? else { return None };
    let BareItem::Integer(seconds) = &item.bare_item else { return None };
    u64::try_from(i64::from(*seconds)).ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(lines: &[&'static str]) -> Option<u64> {
        preferred_wait(lines.iter().map(|line| line.as_bytes())).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_wait_is_read_among_other_preferences() {
        assert_eq!(wait(&["wait=10"]), Some(10));
        assert_eq!(wait(&["respond-async, WAIT=5"]), Some(5));
        assert_eq!(wait(&["respond-async", "wait=0"]), Some(0));
        assert_eq!(wait(&["wait=3;x=1, handling=lenient"]), Some(3));
    }

    #[test]
    fn what_cannot_be_read_is_no_preference() {
        for lines in
            [&[][..], &["wait"], &["wait=-1"], &["wait=1.5"], &["wait=\"3\""], &["wait=,"], &["waits=3"]]
        {
            assert_eq!(wait(lines), None, "{lines:?}");
        }
    }
}
