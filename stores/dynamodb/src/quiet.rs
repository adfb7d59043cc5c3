//! Keeps the SDK's events in.
//!
//! At the level of a trace the SDK writes out whole requests and answers, and so items, and so outcomes: none of that may
//! enter a log. What an operator needs to know of a call is in its error.

use std::{future::Future, sync::LazyLock};

use tracing::{Dispatch, instrument::WithSubscriber, subscriber::NoSubscriber};

/// Not [`Dispatch::none`]: that is registered nowhere, and an event that is first met under it would be switched off for
/// the application's own subscriber, too.
static NOWHERE: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// The same future, whose events nobody hears.
pub(crate) fn quietly<F: Future>(future: F) -> impl Future<Output = F::Output> {
    future.with_subscriber(NOWHERE.clone())
}
