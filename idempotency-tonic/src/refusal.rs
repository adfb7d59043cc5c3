//! Refusals as gRPC statuses, with details that programs can read.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use http::Response;
use idempotency_tower::{Code, Refusal};
use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt};

/// The `domain` of the [`ErrorInfo`](tonic_types::ErrorInfo) of every refusal.
pub const DOMAIN: &str = "idempotency";

/// A refusal as a status, with `google.rpc.ErrorInfo`, and `google.rpc.RetryInfo` where trying again helps.
///
/// The reason is the refusal's code in upper case, `FINGERPRINT_MISMATCH` for `fingerprint-mismatch`. Of a mismatch the
/// metadata names the parts that differ (`mismatch`). Of an answer that was not kept it names no status: what is recorded is
/// HTTP's, 200 for every call.
pub fn refusal_status(refusal: &Refusal) -> Status {
    let mut metadata = HashMap::new();
    let differing: Vec<_> = refusal.differing.iter().map(idempotency_tower::Part::name).collect();
    if !differing.is_empty() {
        metadata.insert("mismatch".to_owned(), differing.join(","));
    }
    let reason = refusal.code.name().replace('-', "_").to_ascii_uppercase();
    let mut details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
    if let Some(seconds) = refusal.retry_after {
        details.set_retry_info(Some(Duration::from_secs(seconds)));
    }
    Status::with_error_details(code_of(refusal.code), refusal.detail.as_ref(), details)
}

/// The refusal as the whole of an answer.
pub(crate) fn refusal_response(refusal: &Refusal) -> Response<Bytes> {
    let mut response = refusal_status(refusal).into_http();
    // Whoever stands outside sees a verdict, and no status of a service.
    response.extensions_mut().remove::<Status>();
    response
}

/// A mismatch is `FAILED_PRECONDITION` and not `INVALID_ARGUMENT`: the same call is good under another key, so it is what
/// the service remembers that stands against it, and no retry policy tries again on either.
const fn code_of(code: Code) -> tonic::Code {
    match code {
        Code::MissingKey | Code::InvalidKey | Code::UnreadableBody => tonic::Code::InvalidArgument,
        Code::MissingPrincipal | Code::SignatureInvalid => tonic::Code::Unauthenticated,
        Code::PayloadTooLarge | Code::Overloaded => tonic::Code::ResourceExhausted,
        Code::Conflict => tonic::Code::Aborted,
        Code::FingerprintMismatch | Code::CredentialsMismatch | Code::OutcomeUnknown | Code::KeyExpired => {
            tonic::Code::FailedPrecondition
        }
        Code::ResultNotReplayable => tonic::Code::AlreadyExists,
        Code::StoreUnavailable => tonic::Code::Unavailable,
        _ => tonic::Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_says_when_to_try_again() {
        let status =
            refusal_status(&Refusal::conflict(Duration::from_millis(1_200), Duration::from_secs(30)));
        assert_eq!(status.code(), tonic::Code::Aborted);
        let info = status.get_details_error_info().unwrap();
        assert_eq!((&*info.reason, &*info.domain), ("CONFLICT", DOMAIN));
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(2)));
    }

    #[test]
    fn an_answer_that_was_not_kept_is_not_called_a_success() {
        let mut refusal = Refusal::new(Code::ResultNotReplayable, "done");
        refusal.original_status = Some(200);
        assert_eq!(refusal_status(&refusal).get_details_error_info().unwrap().metadata, HashMap::new());
    }

    #[test]
    fn what_cannot_be_mended_by_waiting_says_no_delay() {
        let status = refusal_status(&Refusal::missing_key("idempotency-key"));
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        assert_eq!(status.get_details_error_info().unwrap().reason, "MISSING_KEY");
        assert!(status.get_details_retry_info().is_none());
    }

    #[test]
    fn every_code_has_a_status_that_is_no_success() {
        for code in Code::ALL {
            let status = refusal_status(&Refusal::new(code, "no"));
            assert_ne!(status.code(), tonic::Code::Ok, "{code}");
            let response = refusal_response(&Refusal::new(code, "no"));
            assert_eq!(response.headers()["content-type"], "application/grpc");
            assert!(response.body().is_empty() && response.headers().contains_key("grpc-status"));
        }
    }
}
