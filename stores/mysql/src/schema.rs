//! The tables, their version, and how a database gets them.
//!
//! MySQL commits each statement that makes a table by itself, so a process may end between two of them. The version is
//! written first as 0 and last as what it is: who finds 0 goes on from there.

use std::time::Duration;

use sqlx::{Executor, MySqlConnection};

use crate::{
    OpenError, SchemaFound,
    error::{is_absent_table, is_schema_mismatch},
    statements::{Statement, Value},
    table::Table,
};

/// The version of `sql/records.sql`.
pub(crate) const VERSION: i64 = 1;
const UNFINISHED: i64 = 0;

/// What to do with a database that has no idempotency schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenAbsent {
    Create,
    Refuse,
}

/// Makes the database ready. Safe from many processes at once; a schema of another version is left as it is. After a
/// failure the connection may hold a lock and has to be closed.
pub(crate) async fn prepare(
    connection: &mut MySqlConnection,
    table: &Table,
    when_absent: WhenAbsent,
    patience: Duration,
) -> Result<(), OpenError> {
    match (found(connection, table).await?, when_absent) {
        (SchemaFound::Version(VERSION), _) => Ok(()),
        (SchemaFound::Absent, WhenAbsent::Create) => {
            lock(connection, patience).await?;
            create(connection, table).await?;
            unlock(connection).await
        }
        (found, _) => Err(OpenError::Schema { found, needed: VERSION }),
    }
}

async fn create(connection: &mut MySqlConnection, table: &Table) -> Result<(), OpenError> {
    let fit = |file| Statement::fit(file, table);
    let name = Value::Bytes(table.name().as_bytes());
    connection.execute(fit(include_str!("../sql/schema_table.sql")).spelt([])).await?;
    match found(connection, table).await? {
        SchemaFound::Version(VERSION) => return Ok(()), // another process was faster
        SchemaFound::Absent => {}
        found => return Err(OpenError::Schema { found, needed: VERSION }),
    }
    connection.execute(fit(include_str!("../sql/schema_begin.sql")).with([name])).await?;
    connection.execute(fit(include_str!("../sql/records.sql")).spelt([])).await?;
    let done = fit(include_str!("../sql/schema_done.sql")).with([Value::Integer(VERSION), name]);
    connection.execute(done).await?;
    Ok(())
}

/// The table is asked for first: where it is one in the making, its version was there before it.
async fn found(connection: &mut MySqlConnection, table: &Table) -> Result<SchemaFound, sqlx::Error> {
    let records = Statement::fit(include_str!("../sql/schema_records.sql"), table);
    match connection.execute(records.with([])).await {
        Ok(_) => {}
        Err(error) if is_absent_table(&error) => return Ok(SchemaFound::Absent),
        Err(error) => return Err(error),
    }
    let version = sqlx::query_scalar(include_str!("../sql/schema_version.sql")).bind(table.name().as_bytes());
    match version.fetch_optional(connection).await {
        Ok(Some(UNFINISHED)) => Ok(SchemaFound::Absent),
        Ok(Some(version)) => Ok(SchemaFound::Version(version)),
        Ok(None) => Ok(SchemaFound::Unversioned),
        Err(error) if is_schema_mismatch(&error) => Ok(SchemaFound::Unversioned), // no versions, or somebody else's
        Err(error) => Err(error),
    }
}

/// Waits until nobody else makes tables in this database.
async fn lock(connection: &mut MySqlConnection, patience: Duration) -> Result<(), OpenError> {
    let seconds = patience.as_secs().max(1);
    let locked = sqlx::query_scalar(include_str!("../sql/schema_lock.sql")).bind(seconds);
    match locked.fetch_one(connection).await? {
        Some(1_i64) => Ok(()),
        _ => Err(OpenError::Unavailable(sqlx::Error::PoolTimedOut.into())),
    }
}

async fn unlock(connection: &mut MySqlConnection) -> Result<(), OpenError> {
    connection.execute(include_str!("../sql/schema_unlock.sql")).await?;
    Ok(())
}
