use super::*;
use crate::{Fate, KeyError};

const PAGE: &str = include_str!("../../../../docs/problems.md");

#[test]
fn codes_have_the_names_and_statuses_that_were_promised() {
    let promised = [
        ("missing-key", 400),
        ("invalid-key", 400),
        ("missing-principal", 403),
        ("payload-too-large", 413),
        ("unreadable-body", 400),
        ("conflict", 409),
        ("fingerprint-mismatch", 422),
        ("credentials-mismatch", 422),
        ("outcome-unknown", 409),
        ("result-not-replayable", 409),
        ("key-expired", 410),
        ("store-unavailable", 503),
        ("overloaded", 503),
        ("signature-invalid", 401),
        ("configuration-error", 500),
        ("internal", 500),
    ];
    assert_eq!(Code::ALL.map(|code| (code.name(), code.status())), promised);
    assert_eq!(Code::Conflict.to_string(), "conflict");
}

#[test]
fn the_page_of_problems_has_one_section_a_code_with_its_status() {
    let sections: Vec<_> = PAGE.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), Code::ALL.len());
    for (section, code) in sections.iter().zip(Code::ALL) {
        assert_eq!(section.lines().next(), Some(code.name()));
        assert!(section.contains(&format!("Status {}", code.status())), "{code}");
    }
}

#[test]
fn a_conflict_says_when_to_retry() {
    let cap = RETRY_AFTER_CAP;
    let cases = [
        (Duration::ZERO, cap, 1),
        (Duration::from_nanos(1), cap, 1),
        (Duration::from_secs(1), cap, 1),
        (Duration::from_millis(1_001), cap, 2),
        (Duration::from_millis(29_001), cap, 30),
        (Duration::from_secs(31), cap, 30),
        (Duration::MAX, cap, 30),
        (Duration::from_secs(31), Duration::from_secs(5), 5),
        (Duration::from_secs(31), Duration::from_millis(200), 1),
        (Duration::from_secs(31), Duration::ZERO, 1),
    ];
    for (left, cap, seconds) in cases {
        let refusal = Refusal::conflict(left, cap);
        assert_eq!((refusal.code, refusal.retry_after), (Code::Conflict, Some(seconds)), "{left:?} {cap:?}");
    }
}

#[test]
fn a_mismatch_names_the_parts_that_differ() {
    let parts = Parts::from_iter([Part::Body, Part::Method, Part::ContentType]);
    let refusal = Refusal::mismatch(parts);
    assert_eq!((refusal.code, refusal.differing), (Code::FingerprintMismatch, parts));
    assert!(refusal.detail.ends_with("differs in method, content-type, body"), "{}", refusal.detail);
    let unnamed = Refusal::mismatch(Parts::default());
    assert_eq!(unnamed.code, Code::FingerprintMismatch);
    assert!(!unnamed.detail.contains("differs"), "{}", unnamed.detail);
}

#[test]
fn other_credentials_name_nothing_else_and_say_that_renewed_ones_count() {
    let refusal = Refusal::mismatch(Parts::from_iter([Part::Credentials, Part::Body]));
    assert_eq!(refusal.code, Code::CredentialsMismatch);
    assert_eq!(refusal.differing.iter().collect::<Vec<_>>(), [Part::Credentials]);
    assert!(refusal.detail.contains("refreshed token") && refusal.detail.contains("renewed cookie"));
    assert!(!refusal.detail.contains("body"), "{}", refusal.detail);
}

#[test]
fn under_an_unknown_secret_the_detail_claims_no_difference() {
    let refusal = Refusal::mismatch(Parts::from_iter([Part::Secret]));
    assert_eq!(refusal.code, Code::FingerprintMismatch);
    assert!(refusal.detail.contains("cannot be told") && !refusal.detail.contains("differs"));
}

#[test]
fn a_store_that_fails_is_told_by_kind() {
    let cases = [
        (StoreErrorKind::Unavailable, Code::StoreUnavailable, Some(1)),
        (StoreErrorKind::Schema, Code::StoreUnavailable, Some(1)),
        (StoreErrorKind::Refused, Code::StoreUnavailable, Some(1)),
        (StoreErrorKind::Full, Code::Overloaded, Some(1)),
        (StoreErrorKind::Corrupt, Code::Internal, None),
        (StoreErrorKind::TooLarge, Code::Internal, None),
    ];
    for (kind, code, retry_after) in cases {
        let error = StoreError::new(kind, Fate::Unknown).with_source("password=secret");
        let refusal = Refusal::store(&error);
        assert_eq!((refusal.code, refusal.retry_after), (code, retry_after), "{kind:?}");
        assert!(!refusal.detail.contains("secret"), "{}", refusal.detail);
    }
}

#[test]
fn a_tombstone_says_what_was_answered_and_where() {
    let location = Some(Bytes::from_static(b"/orders/1"));
    let refusal = Refusal::result_not_replayable(Tombstone { status: 201, location: location.clone() });
    assert_eq!(refusal.code, Code::ResultNotReplayable);
    assert_eq!((refusal.original_status, refusal.location), (Some(201), location));
    assert_eq!(refusal.retry_after, None);
}

#[test]
fn bounds_are_named() {
    let too_large = Refusal::payload_too_large(1_048_576);
    assert_eq!(too_large.code, Code::PayloadTooLarge);
    assert!(too_large.detail.contains("1048576 bytes"), "{}", too_large.detail);
    let overloaded = Refusal::overloaded(10_000);
    assert_eq!((overloaded.code, overloaded.retry_after), (Code::Overloaded, Some(1)));
    assert!(overloaded.detail.contains("10000"), "{}", overloaded.detail);
    assert!(Refusal::missing_key("X-Request-Key").detail.contains("X-Request-Key"));
}

#[test]
fn an_invalid_key_is_told_by_its_rule() {
    for rule in [KeyRule::Repeated, KeyRule::Unterminated, KeyRule::Key(KeyError::TooLong)] {
        let refusal = Refusal::invalid_key(rule);
        assert_eq!((refusal.code, refusal.detail.as_ref()), (Code::InvalidKey, &*rule.to_string()));
    }
}

#[test]
fn every_other_situation_has_its_code() {
    for (refusal, code) in [
        (Refusal::missing_key("Idempotency-Key"), Code::MissingKey),
        (Refusal::missing_principal(), Code::MissingPrincipal),
        (Refusal::unreadable_body(), Code::UnreadableBody),
        (Refusal::outcome_unknown(), Code::OutcomeUnknown),
        (Refusal::key_expired(), Code::KeyExpired),
        (Refusal::unreadable_record(), Code::Internal),
        (Refusal::panicked(), Code::Internal),
    ] {
        assert_eq!(refusal, Refusal::new(code, refusal.detail.clone()));
    }
}
