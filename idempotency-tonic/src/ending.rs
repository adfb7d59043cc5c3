//! How a call ended, by its status.

use std::{
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
};

use http::{HeaderMap, HeaderName};
use idempotency_tower::{Ending, OnServerError};
use tonic::{Code, Status, metadata::MetadataValue};

/// The word of a handler to the layers of its own process, which take it off every answer.
const ENDING: &str = "idempotency-ending";
const ENDINGS: [Ending; 4] = [Ending::Keep, Ending::KeepHead, Ending::NotExecuted, Ending::Unknown];
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Stands behind the word, so that no other service's is taken for it: a handler that hands on the status of a call it made
/// itself hands on its metadata too.
static TOKEN: LazyLock<String> = LazyLock::new(|| {
    let [high, low] = [(); 2].map(|()| RandomState::new().hash_one(()));
    format!("{high:016x}{low:016x}")
});

/// What the status of a call means for its key, unless the handler says it.
///
/// UNAVAILABLE, INTERNAL, UNKNOWN, `DEADLINE_EXCEEDED` and CANCELLED are server errors here and follow the policy: released
/// by default. UNAUTHENTICATED says that nothing was done and frees the key under any policy; so do `RESOURCE_EXHAUSTED` and
/// ABORTED, but under [`OnServerError::Hold`]: they are also what a handler hands on of a call it made that runs still, or
/// whose answer was too large. OK and the rest are kept. A handler that answers with one of the former after its effect happened must say
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
        Code::ResourceExhausted | Code::Aborted => match on_server_error {
            OnServerError::Hold => Ending::Unknown,
            OnServerError::Release | OnServerError::Keep => Ending::NotExecuted,
        },
        Code::Unauthenticated => Ending::NotExecuted,
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
/// It counts wherever the status stands: in an answer of its own, or behind the messages of a stream.
#[must_use]
pub fn with_ending(mut status: Status, ending: Ending) -> Status {
    let word = format!("{} {}", name(ending), *TOKEN);
    let word = MetadataValue::try_from(word).expect("a word and hexadecimal digits are ASCII");
    status.metadata_mut().insert(ENDING, word);
    status
}

const fn name(ending: Ending) -> &'static str {
    match ending {
        Ending::Keep => "keep",
        Ending::KeepHead => "keep-head",
        Ending::NotExecuted => "not-executed",
        Ending::Unknown => "unknown",
    }
}

/// Takes the handler's word off an answer that passed unguarded.
pub(crate) fn strip(fields: &mut HeaderMap) {
    fields.remove(ENDING);
}

/// The ending that an answer's head or trailers say, if they have a status.
pub(crate) fn ending_in(fields: &HeaderMap, on_server_error: OnServerError) -> Option<Ending> {
    let word = fields.get(ENDING).and_then(|word| word.to_str().ok()?.split_once(' '));
    if let Some((word, token)) = word
        && token == *TOKEN
        && let Some(ending) = ENDINGS.into_iter().find(|ending| name(*ending) == word)
    {
        return Some(ending);
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
        let free_unless_held = [Code::ResourceExhausted, Code::Aborted];
        for number in 0..=16 {
            let code = Code::from_i32(number);
            let endings = [OnServerError::Release, OnServerError::Keep, OnServerError::Hold]
                .map(|on_server_error| code_ending(code, on_server_error));
            let expected = if follow.contains(&code) {
                [Ending::NotExecuted, Ending::Keep, Ending::Unknown]
            } else if free_unless_held.contains(&code) {
                [Ending::NotExecuted, Ending::NotExecuted, Ending::Unknown]
            } else if code == Code::Unauthenticated {
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

    #[test]
    fn another_services_word_is_none() {
        for word in ["not-executed", "not-executed 0123456789abcdef0123456789abcdef", "not-executed "] {
            let mut fields = HeaderMap::new();
            Status::ok("charged").add_header(&mut fields).unwrap();
            fields.insert(ENDING, word.parse().unwrap());
            assert_eq!(ending_in(&fields, OnServerError::Release), Some(Ending::Keep), "{word}");
            strip(&mut fields);
            assert!(!fields.contains_key(ENDING));
        }
    }
}
