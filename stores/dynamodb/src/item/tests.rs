use idempotency_core::{Fence, Fingerprint, Holder, Media, Outcome};

use super::*;

const ADDRESS_BYTES: [u8; 32] = [7; 32];

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn record(phase: Phase, on_lapse: OnLapse) -> Record {
    Record {
        phase,
        holder: Holder::draw(),
        fence: Fence::from_u64(1_700_000_000_000_000),
        attempt: u32::MAX,
        on_lapse,
        retention: Duration::from_micros(1),
    }
}

fn every_phase() -> Vec<Phase> {
    let fingerprint = Fingerprint::builder().build();
    let outcome = Outcome::tombstone(Media(u16::MAX), vec![0, 255]);
    vec![
        Phase::InFlight { fingerprint, until: at(1_700_000_001_000_001) },
        Phase::InFlight { fingerprint, until: Timestamp::NEVER },
        Phase::Completed { fingerprint, outcome, until: at(5), gone: at(2_000_001) },
        Phase::Released { until: at(3_000_000) },
        Phase::InDoubt { fingerprint },
    ]
}

fn item_of(record: &Record) -> Item {
    let attributes = attributes(record).into_iter();
    let mut item: Item = attributes.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    item.insert(ADDRESS.to_owned(), b(&ADDRESS_BYTES));
    item
}

#[test]
fn a_record_is_read_as_it_was_written() {
    for phase in every_phase() {
        for on_lapse in [OnLapse::TakeOver, OnLapse::Hold] {
            let record = record(phase.clone(), on_lapse);
            let read = super::record(&item_of(&record)).unwrap();
            assert_eq!(read, (Address::from_bytes(ADDRESS_BYTES), record));
        }
    }
}

#[test]
fn a_number_that_is_not_whole_is_named_with_its_cause() {
    for name in ["phase", "fence", "attempt", "on_lapse", "retention", "until"] {
        let mut item = item_of(&record(every_phase().remove(0), OnLapse::Hold));
        item.insert(name.to_owned(), AttributeValue::N("1.5".to_owned()));
        let error = super::record(&item).unwrap_err();
        assert_eq!(error.column, name);
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[test]
fn an_address_of_another_length_is_nobody_s() {
    let mut item = item_of(&record(every_phase().remove(0), OnLapse::Hold));
    item.insert(ADDRESS.to_owned(), b(&[7; 31]));
    let error = super::record(&item).unwrap_err();
    assert_eq!((error.column, error.address), (ADDRESS, None));
}

#[test]
fn only_what_the_law_lets_go_expires_and_no_earlier() {
    let hour_after_the_grant = 1_700_000_000 + 3_600 + 1;
    let wanted = [
        (Some(hour_after_the_grant), None),
        (Some(9_223_372_036_855), None),
        (Some(3), Some(3)),
        (Some(3), Some(3)),
        (None, None),
    ];
    for (phase, (open, held)) in every_phase().into_iter().zip(wanted) {
        assert_eq!(expires_at(&record(phase.clone(), OnLapse::TakeOver)), open, "{phase:?}");
        assert_eq!(expires_at(&record(phase.clone(), OnLapse::Hold)), held, "{phase:?}");
    }
}
