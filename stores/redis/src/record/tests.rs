use idempotency_core::{Form, Holder, Media, OnLapse, Part, Phase};

use super::*;

const REPLAY: Duration = Duration::from_secs(3_600);

fn fingerprint() -> Fingerprint {
    Fingerprint::builder().part(Part::Body, b"100 EUR to Bob").build()
}

/// The words of a record, then a holder and, unless it is released, a fingerprint.
fn text(words: &str) -> Vec<u8> {
    let mut text = format!("{words} ").into_bytes();
    text.extend([7; HOLDER]);
    if !words.starts_with("1 3 ") {
        text.extend(fingerprint().to_bytes());
    }
    text
}

fn corrupt_column(text: Vec<u8>) -> &'static str {
    read(text).unwrap_err().column
}

const IN_FLIGHT: &str = "1 1 0 1700000000+5 30000000 - - - 1 1699999999+12 0 86400000000";
const COMPLETED: &str = "1 2 0 1700000000+5 3600000000 60000000 1 fFfF 2 1699999999+12 1 86400000000";
const RELEASED: &str = "1 3 0 1700000000+5 86400000000 - - - 1 1699999999+12 0 86400000000";
const IN_DOUBT: &str = "1 4 1 1700000000+5 - - - - 1 1699999999+12 1 86400000000";

#[test]
fn every_phase_is_read_as_it_is_written() {
    let began = Timestamp::from_micros(1_700_000_000_000_005);
    let record = read(text(IN_FLIGHT)).unwrap();
    assert_eq!(
        record,
        Record {
            phase: Phase::InFlight { fingerprint: fingerprint(), until: began.plus(Duration::from_secs(30)) },
            holder: Holder::from_bytes([7; HOLDER]),
            fence: Fence::from_u64(1_699_999_999_000_012),
            attempt: 1,
            on_lapse: OnLapse::TakeOver,
            retention: Duration::from_secs(86_400),
        }
    );
    let mut completed = text(COMPLETED);
    completed.extend(b"\0done\xff ");
    let Phase::Completed { outcome, until, gone, .. } = read(completed).unwrap().phase else { panic!() };
    assert_eq!(outcome, Outcome::tombstone(Media(u16::MAX), &b"\0done\xff "[..]));
    assert_eq!((until, gone), (began.plus(REPLAY), began.plus(REPLAY).plus(Duration::from_secs(60))));
    let released = read(text(RELEASED)).unwrap();
    assert_eq!(released.phase, Phase::Released { until: began.plus(Duration::from_secs(86_400)) });
    let doubt = read(text(IN_DOUBT)).unwrap();
    assert_eq!(doubt.phase, Phase::InDoubt { fingerprint: fingerprint() });
    assert_eq!(doubt.on_lapse, OnLapse::Hold);
}

#[test]
fn what_no_record_can_have_is_named() {
    let spoilt = [
        ("format", IN_FLIGHT.replacen('1', "2", 1)),
        ("format", IN_FLIGHT.replace(' ', "")),
        ("phase", IN_FLIGHT.replacen("1 1", "1 5", 1)),
        ("waited", IN_FLIGHT.replacen("1 1 0", "1 1 2", 1)),
        ("until", IN_FLIGHT.replace("1700000000+5", "1700000000")),
        ("until", IN_FLIGHT.replace("1700000000+5", "+5")),
        ("until", IN_FLIGHT.replace(" 30000000 ", " - ")),
        ("until", IN_FLIGHT.replace(" 30000000 ", " -3 ")),
        ("until", IN_DOUBT.replacen(" - ", " 5 ", 1)),
        ("gone", IN_FLIGHT.replacen(" - ", " 5 ", 1)),
        ("gone", COMPLETED.replace(" 60000000 ", " - ")),
        ("form", COMPLETED.replace(" 1 fFfF ", " 2 fFfF ")),
        ("media", COMPLETED.replace("fFfF", "10000")),
        ("media", COMPLETED.replace("fFfF", "+0ff")),
        ("attempt", IN_FLIGHT.replace(" 1 1699999999", "  1699999999")),
        ("fence", IN_FLIGHT.replace("1699999999+12", "1699999999+")),
        ("on_lapse", IN_FLIGHT.replace(" 0 86400000000", " 2 86400000000")),
        ("retention", IN_FLIGHT.replace("86400000000", "1e9")),
    ];
    for (column, words) in spoilt {
        assert_eq!(corrupt_column(text(&words)), column, "{words}");
    }
    let cut = |words: &str, bytes| {
        let mut text = text(words);
        text.truncate(text.len() - bytes);
        corrupt_column(text)
    };
    assert_eq!(cut(IN_FLIGHT, 1), "fingerprint");
    assert_eq!(cut(RELEASED, 1), "holder");
    assert_eq!(corrupt_column([text(IN_FLIGHT), vec![0]].concat()), "outcome");
    assert_eq!(corrupt_column([text(RELEASED), vec![0]].concat()), "outcome");
    let mut other = text(IN_FLIGHT);
    let format = other.len() - Fingerprint::BYTES;
    other[format] = 1;
    assert_eq!(corrupt_column(other), "fingerprint");
    assert_eq!(corrupt_column(Vec::new()), "format");
}

#[test]
fn numbers_beyond_all_bounds_are_the_greatest_there_are() {
    let endless = "9".repeat(40);
    let record = read(text(&IN_FLIGHT.replace(" 30000000 ", &format!(" {endless} ")))).unwrap();
    let Phase::InFlight { until, .. } = record.phase else { panic!("{record:?}") };
    assert_eq!(until, Timestamp::NEVER);
    let record = read(text(&IN_FLIGHT.replace(" 1 1699999999", &format!(" {endless} 1699999999")))).unwrap();
    assert_eq!(record.attempt, u32::MAX);
}

#[test]
fn what_lasts_longest_never_ends_and_what_is_over_lingers_a_second() {
    assert_eq!(word(Duration::MAX), NEVER);
    assert_eq!(word(Duration::from_nanos(1)), 1);
    assert_eq!(removable(Duration::MAX, Duration::MAX), NEVER);
    assert_eq!(expiry(NEVER), "");
    assert_eq!(expiry(removable(Duration::ZERO, Duration::from_nanos(1))), "1001");
    assert_eq!(expiry(removable(REPLAY, REPLAY)), "7201000");
    assert_eq!(read(text(&IN_FLIGHT.replace("86400000000", &NEVER.to_string()))).unwrap().retention, {
        Duration::from_micros(i64::MAX.unsigned_abs())
    });
}

#[test]
fn the_answer_to_a_claim_is_read() {
    assert_eq!(grant(b"3 1700000000+5"), Some((3, Fence::from_u64(1_700_000_000_000_005))));
    assert_eq!(grant(b"4294967296 0+1"), Some((u32::MAX, Fence::from_u64(1))));
    for strange in [&b""[..], b"3", b"3 ", b"3 5", b"x 1+1"] {
        assert_eq!(grant(strange), None, "{strange:?}");
    }
}

#[test]
fn words_are_what_the_scripts_expect() {
    let outcome = Outcome { form: Form::Tombstone, media: Media(10), bytes: Bytes::new() };
    let keep = Keep { replay: REPLAY, then_reject: Duration::ZERO };
    assert_eq!(words_of_an_outcome(&outcome, keep), " 3600000000 0 1 000a ");
}
