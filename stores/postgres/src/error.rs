//! What fails. Failures are told apart by SQLSTATE, never by a message.

use std::{error::Error, fmt};

use idempotency_core::{Fate, StoreError, StoreErrorKind};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

type Source = Box<dyn Error + Send + Sync>;

/// Why a [`PostgresStore`](crate::PostgresStore) was not opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The name of the schema or the table is not of ASCII letters, digits and underscores, or is too long.
    #[error(
        "the schema's name must be one to 63 ASCII letters, digits and underscores, the table's one to 48 and not \
         idempotency_schema"
    )]
    Name,
    /// No schema was named, and the `search_path` of the connections has none that exists.
    #[error("no schema was named, and the search_path of the connections names none that exists")]
    NoSchema,
    /// The server refuses the URL, its user, password or database, or the user may not create or read the tables.
    #[error("the server refuses the user, the database, or what the store needs there")]
    Refused(#[source] Source),
    /// The server does not answer in time, or somebody else is creating the tables for too long.
    #[error("the server does not answer")]
    Unavailable(#[source] Source),
    /// The tables are of another version of this store, or somebody else's.
    #[error("the database has {found}, this store needs version {needed}")]
    Schema {
        /// What the database has.
        found: SchemaFound,
        /// The version this store reads and writes.
        needed: i64,
    },
}

/// Which idempotency schema a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaFound {
    /// None.
    Absent,
    /// A table of this name that carries no version.
    Unversioned,
    /// This version.
    Version(i64),
}

impl fmt::Display for SchemaFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("no idempotency schema"),
            Self::Unversioned => f.write_str("a table of that name without a version"),
            Self::Version(version) => write!(f, "idempotency schema version {version}"),
        }
    }
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        match kind_of(&error) {
            StoreErrorKind::Unavailable => Self::Unavailable(error.into()),
            _ => Self::Refused(error.into()),
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::Name | OpenError::NoSchema | OpenError::Refused(_) => StoreErrorKind::Refused,
            OpenError::Unavailable(_) => StoreErrorKind::Unavailable,
            OpenError::Schema { .. } => StoreErrorKind::Schema,
        };
        Self::new(kind, Fate::NotApplied).with_source(error)
    }
}

/// A failure before anything was sent that could be applied.
pub(crate) fn not_applied(error: sqlx::Error) -> StoreError {
    StoreError::new(kind_of(&error), Fate::NotApplied).with_source(error)
}

/// A failure, and what it left behind if the server did not say: what it refused it rolled back, unless it said that it
/// goes away.
pub(crate) fn failed(error: sqlx::Error, unanswered: Fate) -> StoreError {
    let fate = if is_answer(&error) { Fate::NotApplied } else { unanswered };
    StoreError::new(kind_of(&error), fate).with_source(error)
}

/// Whether the statement lost against others that wanted the same record, and can be sent again.
pub(crate) fn lost_a_conflict(error: &sqlx::Error) -> bool {
    matches!(state(error), Some(SERIALIZATION_FAILURE | DEADLOCK_DETECTED))
}

/// Whether the connection can serve another call: the server answered, and neither that it takes no writes any more, as
/// one does that another took the place of, nor that somebody left a failed transaction there.
pub(crate) fn is_worth_keeping(error: &sqlx::Error) -> bool {
    is_answer(error) && !matches!(state(error), Some(READ_ONLY | IN_FAILED_TRANSACTION))
}

/// Whether there is no such table.
pub(crate) fn is_absent_table(error: &sqlx::Error) -> bool {
    state(error) == Some(UNDEFINED_TABLE)
}

/// Whether a constant statement does not fit the tables it met.
pub(crate) fn is_schema_mismatch(error: &sqlx::Error) -> bool {
    matches!(state(error), Some(UNDEFINED_COLUMN | UNDEFINED_FUNCTION | DATATYPE_MISMATCH))
}

// https://www.postgresql.org/docs/current/errcodes-appendix.html
const SERIALIZATION_FAILURE: &str = "40001";
const STATEMENT_COMPLETION_UNKNOWN: &str = "40003";
const DEADLOCK_DETECTED: &str = "40P01";
const READ_ONLY: &str = "25006";
const IN_FAILED_TRANSACTION: &str = "25P02";
const UNDEFINED_TABLE: &str = "42P01";
const UNDEFINED_COLUMN: &str = "42703";
const UNDEFINED_FUNCTION: &str = "42883";
const DATATYPE_MISMATCH: &str = "42804";
const INVALID_SCHEMA: &str = "3F000";
const DISK_FULL: &str = "53100";
const LOCK_NOT_AVAILABLE: &str = "55P03";
const QUERY_CANCELED: &str = "57014";
const CANNOT_CONNECT_NOW: &str = "57P03";
const IO_ERROR: &str = "58030";
const DATA_CORRUPTED: &str = "XX001";
const INDEX_CORRUPTED: &str = "XX002";

// Its classes are a code's first two characters.
const CONNECTION_EXCEPTION: &str = "08";
const TRANSACTION_ROLLBACK: &str = "40";
const INSUFFICIENT_RESOURCES: &str = "53";
const LIMIT_EXCEEDED: &str = "54";

/// Whether the server, having said this, is still there and undid the statement. A pooler that lost its server says a
/// connection exception.
fn is_answer(error: &sqlx::Error) -> bool {
    let Some(said) = said(error) else { return false };
    let goes_away = matches!(said.severity(), PgSeverity::Fatal | PgSeverity::Panic)
        || said.code().starts_with(CONNECTION_EXCEPTION)
        || said.code() == STATEMENT_COMPLETION_UNKNOWN;
    !goes_away
}

fn said(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

fn state(error: &sqlx::Error) -> Option<&str> {
    said(error).map(PgDatabaseError::code)
}

fn kind_of(error: &sqlx::Error) -> StoreErrorKind {
    let Some(state) = state(error) else {
        return match error {
            sqlx::Error::Io(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => StoreErrorKind::Unavailable,
            _ => StoreErrorKind::Refused,
        };
    };
    match state {
        DISK_FULL => StoreErrorKind::Full,
        DATA_CORRUPTED | INDEX_CORRUPTED => StoreErrorKind::Corrupt,
        UNDEFINED_TABLE | UNDEFINED_COLUMN | UNDEFINED_FUNCTION | DATATYPE_MISMATCH | INVALID_SCHEMA => {
            StoreErrorKind::Schema
        }
        READ_ONLY
        | IN_FAILED_TRANSACTION
        | LOCK_NOT_AVAILABLE
        | QUERY_CANCELED
        | CANNOT_CONNECT_NOW
        | IO_ERROR => StoreErrorKind::Unavailable,
        _ if [CONNECTION_EXCEPTION, TRANSACTION_ROLLBACK, INSUFFICIENT_RESOURCES]
            .iter()
            .any(|class| state.starts_with(class)) =>
        {
            StoreErrorKind::Unavailable
        }
        _ if state.starts_with("57P") => StoreErrorKind::Unavailable, // it goes away
        _ if state.starts_with(LIMIT_EXCEEDED) => StoreErrorKind::TooLarge,
        _ => StoreErrorKind::Refused,
    }
}
