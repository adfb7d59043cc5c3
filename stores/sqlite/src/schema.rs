//! The tables, their version, and how a file gets them.

use sqlx::SqliteConnection;

use crate::{OpenError, SchemaFound, error::is_schema_mismatch, writer::Writer};

/// The version of `sql/schema.sql`.
pub(crate) const VERSION: i64 = 1;

/// What to do with a file, or a place for one, that has no idempotency schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenAbsent {
    Create,
    Refuse,
}

/// Makes the file ready. Safe from many processes at once; a schema of another version is left as it is.
pub(crate) async fn prepare(writer: &Writer, when_absent: WhenAbsent) -> Result<(), OpenError> {
    let found = writer.while_busy(|| found_in_pool(writer)).await?;
    match (found, when_absent) {
        (SchemaFound::Version(VERSION), _) | (SchemaFound::Absent, WhenAbsent::Create) => {}
        (found, _) => return Err(OpenError::Schema { found, needed: VERSION }),
    }
    use_wal(writer).await?;
    if found == SchemaFound::Absent { create(writer).await } else { Ok(()) }
}

async fn use_wal(writer: &Writer) -> Result<(), OpenError> {
    let switch = || sqlx::query_scalar("PRAGMA journal_mode = WAL").fetch_one(writer.pool());
    let mode: String = writer.while_busy(switch).await?;
    match mode.as_str() {
        "wal" | "memory" => Ok(()), // a database in memory has no journal to choose
        _ => Err(OpenError::JournalMode { found: mode }),
    }
}

async fn create(writer: &Writer) -> Result<(), OpenError> {
    let mut transition = writer.begin().await?;
    match found(transition.connection()).await? {
        SchemaFound::Absent => {
            let tables = sqlx::raw_sql(include_str!("../sql/schema.sql"));
            tables.execute(transition.connection()).await?;
            transition.commit().await.map_err(|error| OpenError::Unavailable(error.into()))
        }
        SchemaFound::Version(VERSION) => Ok(()), // another process was faster
        found => Err(OpenError::Schema { found, needed: VERSION }),
    }
}

async fn found_in_pool(writer: &Writer) -> Result<SchemaFound, sqlx::Error> {
    found(&mut *writer.pool().acquire().await?).await
}

async fn found(connection: &mut SqliteConnection) -> Result<SchemaFound, sqlx::Error> {
    let tables: i64 =
        sqlx::query_scalar(include_str!("../sql/schema_tables.sql")).fetch_one(&mut *connection).await?;
    if tables == 0 {
        return Ok(SchemaFound::Absent);
    }
    match sqlx::query_scalar(include_str!("../sql/schema_version.sql")).fetch_optional(connection).await {
        Ok(Some(version)) => Ok(SchemaFound::Version(version)),
        Ok(None) => Ok(SchemaFound::Unversioned),
        Err(error) if is_schema_mismatch(&error) => Ok(SchemaFound::Unversioned),
        Err(error) => Err(error),
    }
}
