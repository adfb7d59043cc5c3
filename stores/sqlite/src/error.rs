//! What fails. Failures are told apart by SQLite's result code.

use std::{error::Error, fmt};

use idempotency_core::{Fate, StoreError, StoreErrorKind};

type Source = Box<dyn Error + Send + Sync>;

/// Why a [`SqliteStore`](crate::SqliteStore) was not opened. Unless it says otherwise, the file was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no database that can be opened, and none can be made.
    #[error(
        "the path opens no SQLite database: it must name a database or nothing yet, in a directory that exists and \
         is writable, since SQLite keeps files beside it"
    )]
    Unopenable(#[source] Source),
    /// Others held the file locked for longer than the store's patience.
    #[error("the database stayed locked by others for longer than the store's patience")]
    Unavailable(#[source] Source),
    /// The file cannot be put in WAL mode.
    #[error("the database stays in journal mode {found:?} instead of WAL: it must be on a local file system")]
    JournalMode {
        /// The mode it stays in.
        found: String,
    },
    /// The tables are of another version of this store, or somebody else's.
    #[error("the database has {found}, this store needs version {needed}")]
    Schema {
        /// What the file has.
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
    /// Tables of these names that carry no version.
    Unversioned,
    /// This version.
    Version(i64),
}

impl fmt::Display for SchemaFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("no idempotency schema"),
            Self::Unversioned => f.write_str("idempotency tables without a version"),
            Self::Version(version) => write!(f, "idempotency schema version {version}"),
        }
    }
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        match kind_of(&error) {
            StoreErrorKind::Unavailable if primary_code(&error) != Some(CANNOT_OPEN) => {
                Self::Unavailable(error.into())
            }
            _ => Self::Unopenable(error.into()),
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::Unopenable(_) | OpenError::JournalMode { .. } => StoreErrorKind::Refused,
            OpenError::Unavailable(_) => StoreErrorKind::Unavailable,
            OpenError::Schema { .. } => StoreErrorKind::Schema,
        };
        Self::new(kind, Fate::NotApplied).with_source(error)
    }
}

/// A failure before the commit was sent: nothing was applied.
pub(crate) fn not_applied(error: sqlx::Error) -> StoreError {
    StoreError::new(kind_of(&error), Fate::NotApplied).with_source(error)
}

/// A failure of the commit itself.
pub(crate) fn unknown(error: sqlx::Error) -> StoreError {
    StoreError::new(kind_of(&error), Fate::Unknown).with_source(error)
}

/// Whether somebody else holds the lock.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(BUSY | LOCKED))
}

/// Whether a constant statement does not fit the tables it met.
pub(crate) fn is_schema_mismatch(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(ERROR)
}

// https://www.sqlite.org/rescode.html, without the extension in the upper bytes.
const ERROR: i32 = 1;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NO_MEMORY: i32 = 7;
const INTERRUPTED: i32 = 9;
const IO: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANNOT_OPEN: i32 = 14;
const TOO_BIG: i32 = 18;
const NOT_A_DATABASE: i32 = 26;

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

fn kind_of(error: &sqlx::Error) -> StoreErrorKind {
    match primary_code(error) {
        Some(BUSY | LOCKED | NO_MEMORY | INTERRUPTED | IO | CANNOT_OPEN) => StoreErrorKind::Unavailable,
        Some(FULL) => StoreErrorKind::Full,
        Some(TOO_BIG) => StoreErrorKind::TooLarge,
        Some(CORRUPT | NOT_A_DATABASE) => StoreErrorKind::Corrupt,
        Some(ERROR) => StoreErrorKind::Schema,
        Some(_) => StoreErrorKind::Refused,
        None => match error {
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
                StoreErrorKind::Unavailable
            }
            _ => StoreErrorKind::Refused,
        },
    }
}
