use idempotency_core::{Address, Holder, Media, Outcome, clock::Timestamp};

use std::time::Duration;

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

fn every_write() -> Vec<Write> {
    let op = Operation::new(Address::from_bytes([7; 32]), Fingerprint::builder().build());
    let bid = |on_lapse| Bid {
        holder: Holder::draw(),
        lease: Duration::from_secs(30),
        retention: Duration::MAX,
        on_lapse,
    };
    let (holder, fence) = (Holder::draw(), Fence::from_u64(u64::MAX));
    let outcome = Outcome::whole(Media(1), "done");
    let keep = Keep { replay: Duration::ZERO, then_reject: Duration::ZERO };
    vec![
        Write::grant(&op, &bid(OnLapse::TakeOver), NOW),
        Write::grant(&op.with_previous(Fingerprint::builder().build()), &bid(OnLapse::Hold), NOW),
        Write::renew(&holder, NOW),
        Write::complete(&holder, &outcome, keep, NOW),
        Write::release(&holder, NOW),
        Write::doubt(&holder),
        Write::resolve_applied(fence, &outcome, keep, NOW),
        Write::resolve_not_applied(fence, NOW),
    ]
}

#[test]
fn every_value_that_an_expression_names_is_bound() {
    for write in every_write() {
        let bound = write.values();
        for name in placeholders(&[&write.condition, &write.update], ':') {
            assert!(bound.contains_key(name), "{name} in {write:?}");
        }
    }
}

#[test]
fn no_value_is_bound_that_its_expressions_do_not_name() {
    for write in every_write() {
        for name in write.values.0.keys() {
            assert!(write.values().contains_key(&**name), "{name} in {write:?}");
        }
    }
}

#[test]
fn expressions_keep_to_the_service_s_limits() {
    const BYTES: usize = 4_096;
    const OPERATORS: usize = 300;
    for write in every_write() {
        assert!(write.condition.len() <= BYTES, "{} bytes", write.condition.len());
        assert!(write.update.len() <= BYTES, "{} bytes", write.update.len());
        let operators = write.condition.split([' ', '(']).count();
        assert!(operators <= OPERATORS, "at most {operators} operators and functions");
    }
}

#[test]
fn placeholders_end_where_their_names_do() {
    let found: Vec<_> = placeholders(&["size(#a_b) = :c1 AND #d<:e, :f"], ':').collect();
    assert_eq!(found, [":c1", ":e", ":f"]);
    let found: Vec<_> = placeholders(&["size(#a_b) = :c1 AND #d<:e, :f"], '#').collect();
    assert_eq!(found, ["#a_b", "#d"]);
}

#[test]
fn a_replacement_names_the_version_it_replaces() {
    let record = Record {
        phase: Phase::InDoubt { fingerprint: Fingerprint::builder().build() },
        holder: Holder::draw(),
        fence: Fence::from_u64(1),
        attempt: 1,
        on_lapse: OnLapse::Hold,
        retention: Duration::ZERO,
    };
    let write = Write::replace(Some(&record), &record);
    let wanted = "#phase = :old_phase AND #holder = :old_holder AND #fence = :old_fence \
                  AND attribute_not_exists(#until)";
    assert_eq!(write.condition, wanted);
    assert_eq!(Write::replace(None, &record).condition, "attribute_not_exists(#address)");
}

#[test]
fn the_format_is_that_of_fingerprints() {
    assert_eq!(Fingerprint::builder().build().to_bytes()[0], FORMAT);
}
