//! A record as it stands in a string: words, then bytes. `lua/record.lua` says which, in which order.
//!
//! What a script takes for a record is one here too, so that none that cannot be read is ever changed.

use std::time::Duration;

use bytes::Bytes;
use idempotency_core::{
    Bid, CorruptRecord, Fence, Fingerprint, Keep, Operation, Outcome, PhaseName, Record,
    clock::{Timestamp, as_micros},
    columns::{Columns, form_code, integer, on_lapse_code, phase_code},
};

/// What lasts this many microseconds or more does not end: 285 years, within what the scripts' numbers count exactly.
const NEVER: u64 = 9_000_000_000_000_000;

/// How many milliseconds a server keeps a record that is over.
const GRACE: u64 = 1_000;

const WORDS: usize = 12;
const HOLDER: usize = 16;

/// A duration as a word of a record: whole microseconds.
pub(crate) fn word(duration: Duration) -> u64 {
    as_micros(duration).min(NEVER)
}

/// The microseconds after which a record that lasts for one duration and then for another may be removed.
pub(crate) fn removable(first: Duration, then: Duration) -> u64 {
    word(first).saturating_add(word(then)).min(NEVER)
}

/// The milliseconds after which a server may remove it, as an argument: empty if it never may.
pub(crate) fn expiry(removable: u64) -> String {
    if removable < NEVER { (removable.div_ceil(1_000) + GRACE).to_string() } else { String::new() }
}

/// The words of a grant before its attempt: ` TERM THEN FORM MEDIA `.
pub(crate) fn words_of_a_lease(bid: &Bid) -> String {
    format!(" {} - - - ", word(bid.lease))
}

/// A grant after its fence: ` ON_LAPSE RETENTION HOLDER FINGERPRINT`.
pub(crate) fn rest_of_a_grant(op: &Operation, bid: &Bid) -> Vec<u8> {
    let words = format!(" {} {} ", on_lapse_code(bid.on_lapse), word(bid.retention));
    [words.as_bytes(), bid.holder.as_bytes(), &op.fingerprint().to_bytes()].concat()
}

/// The words of a completed record before its attempt: ` TERM THEN FORM MEDIA `.
pub(crate) fn words_of_an_outcome(outcome: &Outcome, keep: Keep) -> String {
    let (replay, reject) = (word(keep.replay), word(keep.then_reject));
    format!(" {replay} {reject} {} {:04x} ", form_code(outcome.form), outcome.media.0)
}

/// The time that the words `SECONDS+MICROSECONDS` say.
pub(crate) fn time(word: &[u8]) -> Option<Timestamp> {
    micros(word).map(Timestamp::from_micros)
}

/// What a script says of a grant: `ATTEMPT FENCE`.
pub(crate) fn grant(words: &[u8]) -> Option<(u32, Fence)> {
    let (attempt, fence) = split(words)?;
    Some((count(attempt)?, Fence::from_u64(micros(fence)?)))
}

/// Reads a record, or says what no record can have.
pub(crate) fn read(text: Vec<u8>) -> Result<Record, CorruptRecord> {
    let text = Bytes::from(text);
    let mut rest = &text[..];
    let mut words = [&[][..]; WORDS];
    for word in &mut words {
        (*word, rest) = split(rest).ok_or(CorruptRecord::at_column("format"))?;
    }
    columns(words, text.slice(text.len() - rest.len()..))?.read()
}

fn columns(words: [&[u8]; WORDS], bytes: Bytes) -> Result<Columns, CorruptRecord> {
    let [format, phase, waited, at, term, then, form, media, attempt, fence, on_lapse, retention] = words;
    if format != b"1" {
        return Err(CorruptRecord::at_column("format"));
    }
    let phase = readable("phase", digit(phase))?;
    let is = |name| phase == phase_code(name);
    readable("waited", digit(waited).filter(|waited| *waited < 2))?;
    let at = readable("until", time(at))?;
    let until = word_unless(is(PhaseName::InDoubt), "until", term, duration)?.map(|term| at.plus(term));
    let unless_completed = !is(PhaseName::Completed);
    let then = word_unless(unless_completed, "gone", then, duration)?;
    let (holder, fingerprint, outcome) = bytes_of(is(PhaseName::Released), bytes)?;
    if unless_completed && !outcome.is_empty() {
        return Err(CorruptRecord::at_column("outcome"));
    }
    Ok(Columns {
        phase,
        holder,
        fence: integer(readable("fence", micros(fence))?),
        attempt: readable("attempt", count(attempt))?.into(),
        on_lapse: readable("on_lapse", digit(on_lapse))?,
        retention: integer(as_micros(readable("retention", duration(retention))?)),
        fingerprint,
        until: until.map(|until| integer(until.as_micros())),
        gone: until.zip(then).map(|(until, then)| integer(until.plus(then).as_micros())),
        form: word_unless(unless_completed, "form", form, digit)?,
        media: word_unless(unless_completed, "media", media, hexadecimal)?,
        outcome: (!unless_completed).then_some(outcome),
    })
}

/// Holder, fingerprint and what follows.
fn bytes_of(is_released: bool, mut bytes: Bytes) -> Result<(Bytes, Option<Bytes>, Bytes), CorruptRecord> {
    let mut cut = |column, length| match bytes.len() < length {
        true => Err(CorruptRecord::at_column(column)),
        false => Ok(bytes.split_to(length)),
    };
    let holder = cut("holder", HOLDER)?;
    let fingerprint = if is_released { None } else { Some(cut("fingerprint", Fingerprint::BYTES)?) };
    Ok((holder, fingerprint, bytes))
}

/// The value of a word that a phase has, or none where it has none.
fn word_unless<T>(
    is_absent: bool,
    column: &'static str,
    word: &[u8],
    read: impl FnOnce(&[u8]) -> Option<T>,
) -> Result<Option<T>, CorruptRecord> {
    match (is_absent, word) {
        (true, b"-") => Ok(None),
        (true, _) => Err(CorruptRecord::at_column(column)),
        (false, word) => readable(column, read(word)).map(Some),
    }
}

fn readable<T>(column: &'static str, value: Option<T>) -> Result<T, CorruptRecord> {
    value.ok_or(CorruptRecord::at_column(column))
}

/// What stands before the first space, and after it.
fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = text.iter().position(|byte| *byte == b' ')?;
    Some((&text[..space], &text[space + 1..]))
}

/// A number, or the greatest there is in the place of a greater one.
fn number(word: &[u8]) -> Option<u64> {
    let digits = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    digits.then(|| word.iter().fold(0, add))
}

fn count(word: &[u8]) -> Option<u32> {
    number(word).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn digit(word: &[u8]) -> Option<i64> {
    match word {
        [digit @ b'0'..=b'9'] => Some(i64::from(digit - b'0')),
        _ => None,
    }
}

fn hexadecimal(word: &[u8]) -> Option<i64> {
    let digits = word.len() == 4 && word.iter().all(u8::is_ascii_hexdigit);
    digits.then(|| i64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()).flatten()
}

/// `SECONDS+MICROSECONDS`.
fn micros(word: &[u8]) -> Option<u64> {
    let plus = word.iter().position(|byte| *byte == b'+')?;
    let (seconds, micros) = (number(&word[..plus])?, number(&word[plus + 1..])?);
    Some(seconds.saturating_mul(1_000_000).saturating_add(micros))
}

fn duration(word: &[u8]) -> Option<Duration> {
    let micros = number(word)?;
    Some(Duration::from_micros(if micros < NEVER { micros } else { u64::MAX }))
}

#[cfg(test)]
mod tests;
