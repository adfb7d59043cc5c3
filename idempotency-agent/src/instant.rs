//! Points of time as the ledger writes them out for people and for hashes.

use idempotency_core::clock::Timestamp;

/// `at` in UTC to the millisecond, what is finer cut off: `2026-01-02T03:04:05.678Z`. What a point of time in a payload
/// has to be for other languages to hash it alike.
pub fn instant(at: Timestamp) -> String {
    let millis = at.as_micros() / 1_000;
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (days, seconds) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The date `days` after 1970-01-01. Years are counted from March, so that a leap day is a year's last.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // March is 0
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}
