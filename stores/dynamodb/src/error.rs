//! What fails. Failures are told apart by the service's error code.

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use idempotency_core::{Fate, StoreError, StoreErrorKind};

type Source = Box<dyn Error + Send + Sync>;

/// Why a [`DynamoDbStore`](crate::DynamoDbStore) was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no table of this name.
    #[error("there is no table {table:?}: create it, or let the builder ensure it")]
    Absent {
        /// The name that was looked for.
        table: String,
    },
    /// There is such a table, but it is not one for this store.
    #[error("the table {table:?} cannot hold idempotency records: {why}")]
    Unfit {
        /// Its name.
        table: String,
        /// What does not fit.
        why: Unfit,
    },
    /// The service did not answer.
    #[error("DynamoDB does not answer")]
    Unavailable(#[source] Source),
    /// The service refused: no permission, no such region, a name that no table can have.
    #[error("DynamoDB refused the call")]
    Refused(#[source] Source),
}

/// Why a table cannot hold idempotency records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// Its key is another one.
    #[error("its key has to be the binary partition key \"address\", and nothing else")]
    Key,
    /// It expires items by another attribute.
    #[error("it expires items by {attribute:?} instead of \"expires_at\"")]
    Expiry {
        /// The attribute it expires items by.
        attribute: String,
    },
    /// It is being deleted, is not ready in time, or cannot be used.
    #[error("its state is {state}")]
    State {
        /// The state, in the service's word.
        state: String,
    },
}

/// An answer that does not say when it was given, or that took too long for it to matter.
#[derive(Debug, thiserror::Error)]
#[error("no answer of the service told the time: it takes one with a Date header that arrives within 0.8 s")]
pub(crate) struct NoDate;

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::Absent { .. } | OpenError::Unfit { .. } => StoreErrorKind::Schema,
            OpenError::Unavailable(_) => StoreErrorKind::Unavailable,
            OpenError::Refused(_) => StoreErrorKind::Refused,
        };
        Self::new(kind, Fate::NotApplied).with_source(error)
    }
}

/// The failure of a call. Its fate is the witness's to say.
pub(crate) fn failed<E, R>(error: SdkError<E, R>) -> StoreError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    StoreError::new(kind_of(&error), Fate::Unknown).with_source(error)
}

/// The failure of a call that opens a store.
pub(crate) fn not_opened<E, R>(error: SdkError<E, R>) -> OpenError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    match kind_of(&error) {
        StoreErrorKind::Unavailable => OpenError::Unavailable(error.into()),
        _ => OpenError::Refused(error.into()),
    }
}

fn kind_of<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> StoreErrorKind {
    match error {
        SdkError::ServiceError(refusal) => kind_of_refusal(refusal.err()),
        SdkError::ConstructionFailure(_) => StoreErrorKind::Refused,
        _ => StoreErrorKind::Unavailable,
    }
}

fn kind_of_refusal(refusal: &impl ProvideErrorMetadata) -> StoreErrorKind {
    match refusal.code() {
        Some("ResourceNotFoundException") => StoreErrorKind::Schema,
        // The service has no code of its own for an item that would grow beyond its limit.
        Some("ValidationException") if refusal.message().is_some_and(|text| text.contains("Item size")) => {
            StoreErrorKind::TooLarge
        }
        // The expressions are always the same: what they do not fit is the table.
        Some("ValidationException") => StoreErrorKind::Schema,
        Some(
            "InternalServerError"
            | "ServiceUnavailable"
            | "ProvisionedThroughputExceededException"
            | "ThrottlingException"
            | "RequestLimitExceeded"
            | "LimitExceededException"
            | "TransactionConflictException"
            | "ReplicatedWriteConflictException"
            | "RequestTimeout",
        ) => StoreErrorKind::Unavailable,
        // A failure without a code that we know is not always the caller's.
        None => StoreErrorKind::Unavailable,
        Some(_) => StoreErrorKind::Refused,
    }
}

#[cfg(test)]
mod tests;
