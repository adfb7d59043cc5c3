//! How a call ended, by its status.

use http::{HeaderMap, HeaderName};
use idempotency_tower::{Ending, OnServerError};
use tonic::{Code, Status, metadata::MetadataValue};

/// The layer's own word from a handler to itself; it is taken off every answer.
const ENDING: &str = "idempotency-ending";
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// What the status of a call means for its key, unless the handler says it.
///
/// UNAVAILABLE, INTERNAL, UNKNOWN, `DEADLINE_EXCEEDED` and CANCELLED are server errors here and follow the policy: released
/// by default. `RESOURCE_EXHAUSTED`, ABORTED and UNAUTHENTICATED say that nothing was done and free the key under any
/// policy. OK and the rest are kept. A handler that answers with one of the former after its effect happened must say
/// [`Ending::Keep`], by [`with_ending`].
pub const fn code_ending(code: Code, on_server_error: OnServerError) -> Ending {
    match code {
        Code::Unavailable | Code::Internal | Code::Unknown | Code::DeadlineExceeded | Code::Cancelled => {
            match on_server_error {
                OnServerError::Release => Ending::NotExecuted,
                OnServerError::Keep => Ending::Keep,
                OnServerError::Hold => Ending::Unknown,
            }
        }
        Code::ResourceExhausted | Code::Aborted | Code::Unauthenticated => Ending::NotExecuted,
        _ => Ending::Keep,
    }
}

/// The same status, with the handler's word on how its call ended. A response says it by an [`Ending`] among its
/// extensions, which a status does not have.
///
/// ```
/// use idempotency_tonic::{Ending, with_ending};
/// use tonic::Status;
///
/// // The card was charged before the ledger failed: nobody may run this again.
/// let status = with_ending(Status::internal("the ledger is away"), Ending::Unknown);
/// ```
///
/// It counts where the status is the whole answer, as it is in unary calls and in streams that end before their first
/// message.
#[must_use]
pub fn with_ending(mut status: Status, ending: Ending) -> Status {
    let word = match ending {
        Ending::Keep => "keep",
        Ending::KeepHead => "keep-head",
        Ending::NotExecuted => "not-executed",
        Ending::Unknown => "unknown",
    };
    status.metadata_mut().insert(ENDING, MetadataValue::from_static(word));
    status
}

/// The ending that an answer's head or trailers say, if they have a status.
pub(crate) fn ending_in(fields: &HeaderMap, on_server_error: OnServerError) -> Option<Ending> {
    match fields.get(ENDING).map(http::HeaderValue::as_bytes) {
        Some(b"keep") => return Some(Ending::Keep),
        Some(b"keep-head") => return Some(Ending::KeepHead),
        Some(b"not-executed") => return Some(Ending::NotExecuted),
        Some(b"unknown") => return Some(Ending::Unknown),
        _ => {}
    }
    let status = fields.get(GRPC_STATUS)?;
    Some(code_ending(Code::from_bytes(status.as_bytes()), on_server_error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_end_as_the_table_says() {
        let follow =
            [Code::Unavailable, Code::Internal, Code::Unknown, Code::DeadlineExceeded, Code::Cancelled];
        let free = [Code::ResourceExhausted, Code::Aborted, Code::Unauthenticated];
        for number in 0..=16 {
            let code = Code::from_i32(number);
            let endings = [OnServerError::Release, OnServerError::Keep, OnServerError::Hold]
                .map(|on_server_error| code_ending(code, on_server_error));
            let expected = if follow.contains(&code) {
                [Ending::NotExecuted, Ending::Keep, Ending::Unknown]
            } else if free.contains(&code) {
                [Ending::NotExecuted; 3]
            } else {
                [Ending::Keep; 3]
            };
            assert_eq!(endings, expected, "{code:?}");
        }
    }

    #[test]
    fn a_handlers_word_is_read_before_its_status() {
        for ending in [Ending::Keep, Ending::KeepHead, Ending::NotExecuted, Ending::Unknown] {
            let mut fields = HeaderMap::new();
            with_ending(Status::unavailable("later"), ending).add_header(&mut fields).unwrap();
            assert_eq!(ending_in(&fields, OnServerError::Release), Some(ending));
        }
        assert_eq!(ending_in(&HeaderMap::new(), OnServerError::Release), None);
    }
}
