//! What goes wrong behind the door: its type, and what is logged of it.

use std::{any::Any, error::Error};

use idempotency_core::Address;

/// The error of a body whose own error type is hidden.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Logs that a handler, or the body it answered with, panicked.
pub(crate) fn report_panic(address: &Address, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    tracing::error!(operation = %address, panic = text, "a handler panicked");
}

/// Logs that a response body broke off.
pub(crate) fn report_broken(address: &Address, error: &BoxError) {
    let error: &(dyn Error + 'static) = &**error;
    tracing::warn!(operation = %address, error, "a response body broke off");
}
