//! Keys for requests.

use std::sync::atomic::{AtomicU64, Ordering};

/// A key as long as a UUID that this process has not used before.
pub(crate) fn fresh_key() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("5f3a1c0e-8b1d-4c52-9a6f-{:012x}", LAST.fetch_add(1, Ordering::Relaxed))
}
