//! What fails. Failures are told apart by the server's error number, never by its text.

use std::{error::Error, fmt};

use idempotency_core::{Fate, StoreError, StoreErrorKind};
use sqlx::mysql::MySqlDatabaseError;

type Source = Box<dyn Error + Send + Sync>;

/// Why a [`MySqlStore`](crate::MySqlStore) was not opened. Nothing was changed but what [`Unavailable`](Self::Unavailable) may
/// have interrupted, which the next opening finishes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The name of the table is not of ASCII letters, digits and underscores, or is too long.
    #[error(
        "the table's name must be one to 64 ASCII letters, digits and underscores, and not idempotency_schema"
    )]
    Name,
    /// The server refuses the URL's user, password or database, or the user may not create or read the tables.
    #[error("the server refuses the user, the database, or what the store needs there")]
    Refused(#[source] Source),
    /// The server does not answer in time, or somebody else is creating the tables for longer than the store's patience.
    #[error("the server does not answer")]
    Unavailable(#[source] Source),
    /// A setting of the server or of the pool's connections makes what the store promises impossible.
    #[error("the store cannot keep its promises: {0}")]
    Setting(Setting),
    /// The tables are of another version of this store, or somebody else's.
    #[error("the database has {found}, this store needs version {needed}")]
    Schema {
        /// What the database has.
        found: SchemaFound,
        /// The version this store reads and writes.
        needed: i64,
    },
}

/// A setting under which the store would break its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// The server was started with `--sysdate-is-now`.
    SysdateIsNow,
    /// The pool's connections have `autocommit` off.
    AutocommitOff,
    /// The server writes its binary log by statements.
    StatementReplication,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SysdateIsNow => {
                "the server runs with --sysdate-is-now, so no statement can read the time after it waited for a lock"
            }
            Self::AutocommitOff => "autocommit is off, so nothing that the store answers would be committed",
            Self::StatementReplication => {
                "binlog_format is STATEMENT, so every replica would read a clock of its own; set it to ROW or MIXED"
            }
        })
    }
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
            OpenError::Name | OpenError::Refused(_) | OpenError::Setting(_) => StoreErrorKind::Refused,
            OpenError::Unavailable(_) => StoreErrorKind::Unavailable,
            OpenError::Schema { .. } => StoreErrorKind::Schema,
        };
        Self::new(kind, Fate::NotApplied).with_source(error)
    }
}

/// A failure to get a connection: nothing was sent.
pub(crate) fn not_sent(error: sqlx::Error) -> StoreError {
    StoreError::new(kind_of(&error), Fate::NotApplied).with_source(error)
}

/// A failure after a statement was sent. What the server refused was not applied, since each call is one statement that
/// commits by itself; where no refusal came nobody knows.
pub(crate) fn sent(error: sqlx::Error) -> StoreError {
    let fate = match number(&error) {
        Some(ERROR_DURING_COMMIT | SERVER_SHUTDOWN | CONNECTION_KILLED | CLIENTS_FIRST..=CLIENTS_LAST)
        | None => Fate::Unknown,
        Some(_) => Fate::NotApplied,
    };
    StoreError::new(kind_of(&error), fate).with_source(error)
}

/// Whether the statement lost against others that wanted the same rows, and can be sent again.
pub(crate) fn lost_a_conflict(error: &sqlx::Error) -> bool {
    matches!(
        number(error),
        Some(LOCK_WAIT_TIMEOUT | DEADLOCK | RECORD_CHANGED | NEEDS_PREPARING | ROLLED_BACK_DURING_COMMIT)
    )
}

/// Whether the connection can serve another call: the server answered, and not that it is going or takes no writes.
pub(crate) fn is_worth_keeping(error: &sqlx::Error) -> bool {
    !matches!(
        number(error),
        None | Some(
            SERVER_SHUTDOWN
                | CONNECTION_KILLED
                | PACKET_TOO_LARGE
                | READ_ONLY_OPTION
                | READ_ONLY_TRANSACTION
                | READ_ONLY_MODE
                | NOT_READY
                | UNKNOWN_STATEMENT
                | CLIENTS_FIRST..=CLIENTS_LAST
        )
    )
}

/// Whether there is no such table.
pub(crate) fn is_absent_table(error: &sqlx::Error) -> bool {
    number(error) == Some(NO_SUCH_TABLE)
}

/// Whether the server does not know the statement's words.
pub(crate) fn is_syntax(error: &sqlx::Error) -> bool {
    number(error) == Some(SYNTAX)
}

/// Whether the server has no such setting.
pub(crate) fn is_unknown_variable(error: &sqlx::Error) -> bool {
    number(error) == Some(UNKNOWN_VARIABLE)
}

/// Whether the statement does not fit the table it met.
pub(crate) fn is_schema_mismatch(error: &sqlx::Error) -> bool {
    kind_of(error) == StoreErrorKind::Schema
}

// https://mariadb.com/kb/en/mariadb-error-codes/ and https://dev.mysql.com/doc/mysql-errors/8.4/en/
const RECORD_CHANGED: u16 = 1020; // MariaDB's, under innodb_snapshot_isolation
const DISK_FULL: u16 = 1021;
const OUT_OF_MEMORY: u16 = 1037;
const OUT_OF_SORT_MEMORY: u16 = 1038;
const TOO_MANY_CONNECTIONS: u16 = 1040;
const OUT_OF_RESOURCES: u16 = 1041;
const NOT_READY: u16 = 1047; // of a node that left its cluster
const SERVER_SHUTDOWN: u16 = 1053;
const UNKNOWN_COLUMN: u16 = 1054;
const SYNTAX: u16 = 1064;
const TABLE_FULL: u16 = 1114;
const NO_SUCH_TABLE: u16 = 1146;
const PACKET_TOO_LARGE: u16 = 1153;
const ERROR_DURING_COMMIT: u16 = 1180;
const UNKNOWN_VARIABLE: u16 = 1193;
const TOO_MANY_OF_THIS_USER: u16 = 1203;
const LOCK_WAIT_TIMEOUT: u16 = 1205;
const DEADLOCK: u16 = 1213;
const USER_LIMIT: u16 = 1226;
const UNKNOWN_STATEMENT: u16 = 1243; // of a connection that was another server's when it was prepared
const READ_ONLY_OPTION: u16 = 1290;
const INTERRUPTED: u16 = 1317;
const NO_DEFAULT: u16 = 1364;
const TOO_LONG: u16 = 1406;
const TOO_MANY_STATEMENTS: u16 = 1461;
const NEEDS_PREPARING: u16 = 1615;
const READ_ONLY_TRANSACTION: u16 = 1792;
const READ_ONLY_MODE: u16 = 1836;
const CONNECTION_KILLED: u16 = 1927;
const STATEMENT_TIMEOUT: u16 = 1969;
// Errors of clients, which no server sends: a proxy that lost its server has met one.
const CLIENTS_FIRST: u16 = 2000;
const CLIENTS_LAST: u16 = 2999;
const QUERY_TIMEOUT: u16 = 3024;
const ROLLED_BACK_DURING_COMMIT: u16 = 3101; // by the others of a group
const CHECK_VIOLATED: u16 = 3819; // MySQL's
const CONSTRAINT_FAILED: u16 = 4025; // MariaDB's

fn answer(error: &sqlx::Error) -> Option<&MySqlDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

fn number(error: &sqlx::Error) -> Option<u16> {
    answer(error).map(MySqlDatabaseError::number)
}

fn kind_of(error: &sqlx::Error) -> StoreErrorKind {
    /// SQLSTATE's classes of broken connections and of transactions that were rolled back.
    const PASSING: [&str; 2] = ["08", "40"];
    match (answer(error), error) {
        (Some(answer), _) => match kind_of_number(answer.number()) {
            StoreErrorKind::Refused if PASSING.iter().any(|class| is_of(answer, class)) => {
                StoreErrorKind::Unavailable
            }
            kind => kind,
        },
        (
            None,
            sqlx::Error::Io(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed,
        ) => StoreErrorKind::Unavailable,
        (None, _) => StoreErrorKind::Refused,
    }
}

fn is_of(answer: &MySqlDatabaseError, class: &str) -> bool {
    answer.code().is_some_and(|state| state.starts_with(class))
}

const fn kind_of_number(number: u16) -> StoreErrorKind {
    match number {
        OUT_OF_MEMORY
        | OUT_OF_SORT_MEMORY
        | TOO_MANY_CONNECTIONS
        | OUT_OF_RESOURCES
        | NOT_READY
        | SERVER_SHUTDOWN
        | ERROR_DURING_COMMIT
        | TOO_MANY_OF_THIS_USER
        | LOCK_WAIT_TIMEOUT
        | DEADLOCK
        | USER_LIMIT
        | READ_ONLY_OPTION
        | INTERRUPTED
        | READ_ONLY_TRANSACTION
        | READ_ONLY_MODE
        | CONNECTION_KILLED
        | STATEMENT_TIMEOUT
        | RECORD_CHANGED
        | QUERY_TIMEOUT
        | UNKNOWN_STATEMENT
        | TOO_MANY_STATEMENTS
        | NEEDS_PREPARING
        | ROLLED_BACK_DURING_COMMIT
        | CLIENTS_FIRST..=CLIENTS_LAST => StoreErrorKind::Unavailable,
        DISK_FULL | TABLE_FULL => StoreErrorKind::Full,
        PACKET_TOO_LARGE | TOO_LONG => StoreErrorKind::TooLarge,
        NO_SUCH_TABLE | UNKNOWN_COLUMN | NO_DEFAULT => StoreErrorKind::Schema,
        // No statement writes what the table's check refuses: it was met.
        CHECK_VIOLATED | CONSTRAINT_FAILED => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Refused,
    }
}
