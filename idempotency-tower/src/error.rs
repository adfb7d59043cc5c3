//! What goes wrong behind the door: its type, and what becomes of a panic in a policy.

use std::{
    any::Any,
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
};

use idempotency_core::profile::http::{Code, Refusal};

use crate::observability::log;

/// The error of a body whose own error type is hidden.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What a panic leaves.
pub(crate) type Panic = Box<dyn Any + Send>;

/// The error of a request body that a layer outside this one reads along with: the request is refused with this, and not
/// with `unreadable-body`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the body is refused: {}", .0.code)]
pub struct BodyRefused(pub Refusal);

/// What a function of the policy makes of a request; if it panics, nothing is claimed and the request is refused.
pub(crate) fn caught<T>(function: &'static str, read: impl FnOnce() -> T) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| {
        log::policy_panicked(function);
        Refusal::new(Code::Internal, "the service failed to read the request; it was not run")
    })
}
