//! What goes wrong behind the door: its type, and what is logged of it.

use std::{
    any::Any,
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
};

use idempotency_core::{
    Address,
    profile::http::{Code, Refusal},
};

/// The error of a body whose own error type is hidden.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Logs that a handler, or the body it answered with, panicked.
pub(crate) fn report_panic(address: &Address, panic: &(dyn Any + Send)) {
    tracing::error!(operation = %address, panic = text_of(panic), "a handler panicked");
}

/// What a function of the policy makes of a request; if it panics, nothing is claimed and the request is refused.
pub(crate) fn caught<T>(function: &'static str, read: impl FnOnce() -> T) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic| {
        tracing::error!(function, panic = text_of(panic.as_ref()), "a function of the policy panicked");
        Refusal::new(Code::Internal, "the service failed to read the request; it was not run")
    })
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Logs that a response body broke off.
pub(crate) fn report_broken(address: &Address, error: &BoxError) {
    let error: &(dyn Error + 'static) = &**error;
    tracing::warn!(operation = %address, error, "a response body broke off");
}
