use aws_sdk_dynamodb::{error::ErrorMetadata, operation::update_item::UpdateItemError};

use super::*;

fn kind(code: &str, message: &str) -> StoreErrorKind {
    let meta = ErrorMetadata::builder().code(code).message(message).build();
    kind_of(&SdkError::service_error(UpdateItemError::generic(meta), ()))
}

#[test]
fn a_refusal_is_told_by_its_code() {
    for (code, wanted) in [
        ("ResourceNotFoundException", StoreErrorKind::Schema),
        ("ValidationException", StoreErrorKind::Schema),
        ("ThrottlingException", StoreErrorKind::Unavailable),
        ("ProvisionedThroughputExceededException", StoreErrorKind::Unavailable),
        ("TransactionConflictException", StoreErrorKind::Unavailable),
        ("InternalServerError", StoreErrorKind::Unavailable),
        ("AccessDeniedException", StoreErrorKind::Refused),
        ("UnrecognizedClientException", StoreErrorKind::Refused),
    ] {
        assert_eq!(kind(code, "said so"), wanted, "{code}");
    }
}

#[test]
fn an_item_beyond_the_limit_is_told_by_what_the_service_says_of_it() {
    let told = "Item size to update has exceeded the maximum allowed size";
    assert_eq!(kind("ValidationException", told), StoreErrorKind::TooLarge);
    let told = "Item size has exceeded the maximum allowed size";
    assert_eq!(kind("ValidationException", told), StoreErrorKind::TooLarge);
    assert_eq!(kind("AccessDeniedException", told), StoreErrorKind::Refused);
}

#[test]
fn what_was_not_refused_is_unavailable() {
    let timeout: SdkError<UpdateItemError, ()> = SdkError::timeout_error("late");
    assert_eq!(kind_of(&timeout), StoreErrorKind::Unavailable);
    let construction: SdkError<UpdateItemError, ()> = SdkError::construction_failure("no region");
    assert_eq!(kind_of(&construction), StoreErrorKind::Refused);
}

#[test]
fn an_opening_keeps_what_it_met() {
    let error = StoreError::from(OpenError::Refused("no permission".into()));
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Refused, Fate::NotApplied));
    let source = error.source().unwrap().source().unwrap();
    assert_eq!(source.to_string(), "no permission");
}
