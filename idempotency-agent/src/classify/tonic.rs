//! What errors of tonic say.

use std::error::Error;

use ::tonic::{Code, ConnectError, Status};

use super::{Applied, Classifier, find};

/// Reads off a gRPC status of tonic, or an error that wraps one, whether the call did something.
///
/// | status | says |
/// |---|---|
/// | any, of a connection that was never made | nothing happened |
/// | `InvalidArgument`, `Unauthenticated`, `PermissionDenied`, `NotFound` | nothing happened: the service declines to act |
/// | `AlreadyExists`, `FailedPrecondition`, `Aborted` | nobody knows: it may be this very call, sent twice, that is in the way of itself |
/// | `ResourceExhausted`, `OutOfRange`, `Unimplemented` | nobody knows: clients say these, too, of an answer they cannot read |
/// | any other: `Unavailable`, `DeadlineExceeded`, `Cancelled`, `Unknown`, `Internal`, ... | nobody knows |
#[derive(Debug, Clone, Copy, Default)]
pub struct TonicErrors;

impl Classifier for TonicErrors {
    fn classify(&self, error: &(dyn Error + 'static)) -> Applied {
        if find::<ConnectError>(error).is_some() {
            return Applied::No;
        }
        match find::<Status>(error).map(Status::code) {
            Some(Code::InvalidArgument | Code::Unauthenticated | Code::PermissionDenied | Code::NotFound) => {
                Applied::No
            }
            _ => Applied::Unknown,
        }
    }
}
