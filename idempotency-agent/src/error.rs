//! What a ledger's call fails with.

use idempotency_core::StoreError;

use crate::{NameError, json::PayloadError, ledger::DocumentError};

/// Why a call came to no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The store did not do its part.
    #[error("the ledger's store failed")]
    Store(#[from] StoreError),
    /// What stands in the store cannot be worked with.
    #[error("the scope's document cannot be worked with")]
    Document(#[from] DocumentError),
    /// A scope, an intent, or an id of a job or an event that is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// An identity that identifies nothing.
    #[error(transparent)]
    Identity(#[from] PayloadError),
    /// The effect is done, and what it came to cannot be read as what was asked for. It was not done again.
    #[error("the effect is done, and its stored result cannot be read as what was asked for")]
    StoredResult(#[source] serde_json::Error),
    /// The effect is done, and what it came to was too long to be kept: see
    /// [`Policy::max_result_bytes`](crate::Policy::max_result_bytes). It was not done again.
    #[error("the effect is done, and its result of {bytes} bytes was not kept")]
    ResultNotKept {
        /// How long it was.
        bytes: u64,
    },
    /// Nothing stands under the key any more, although it was asked for again and again.
    #[error("the effect's entry changed with every look")]
    Restless,
    /// The runtime shut down before the call was over.
    #[error("the runtime shut down before the call was over")]
    ShutDown,
}
