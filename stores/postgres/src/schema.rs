//! The tables, their version, and how a database gets them.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::time::timeout;

use crate::{
    OpenError, SchemaFound,
    error::{is_absent_table, is_schema_mismatch},
    names::Names,
    statements::Statement,
};

/// The version of `sql/schema_records.sql` and `sql/schema_claim.sql`.
pub(crate) const VERSION: i64 = 1;

/// How long to wait for others who make tables in the same schema. Twenty of them take turns in less than a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// What to do with a database that has no idempotency schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenAbsent {
    Create,
    Refuse,
}

/// What a database has for a store.
pub(crate) struct Prepared {
    pub(crate) names: Names,
    /// What endings are told on.
    pub(crate) channel: String,
}

/// Makes the database ready within one transaction. Safe from many processes at once; a schema of another version is left
/// as it is. `schema` is the first of the search path unless named.
pub(crate) async fn prepare(
    connection: &mut PgConnection,
    schema: Option<String>,
    records: String,
    when_absent: WhenAbsent,
) -> Result<Prepared, OpenError> {
    // Twice: others are waited for, and a server that does not answer even that is not waited for, for ever.
    let prepared = timeout(2 * PATIENCE, prepare_at_length(connection, schema, records, when_absent));
    prepared.await.unwrap_or_else(|late| Err(OpenError::Unavailable(late.into())))
}

async fn prepare_at_length(
    connection: &mut PgConnection,
    schema: Option<String>,
    records: String,
    when_absent: WhenAbsent,
) -> Result<Prepared, OpenError> {
    let patience = PATIENCE.as_millis();
    let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {patience}");
    let mut transaction = connection.begin_with(AssertSqlSafe(begin)).await?;
    let schema = match schema {
        Some(schema) => schema,
        None => current(&mut transaction).await?,
    };
    let names = &Names { schema, records };
    let mut state = found(&mut transaction, names).await?;
    if state == SchemaFound::Absent && when_absent == WhenAbsent::Create {
        let lock = Statement::fit(include_str!("../sql/schema_lock.sql"), names);
        lock.query().persistent(false).bind(&names.schema).execute(&mut *transaction).await?;
        state = match found(&mut transaction, names).await? {
            SchemaFound::Absent => create(&mut transaction, names).await?,
            found => found, // another process was faster
        };
    }
    if state != SchemaFound::Version(VERSION) {
        return Err(OpenError::Schema { found: state, needed: VERSION });
    }
    let channel = sqlx::query_scalar(Statement::fit(include_str!("../sql/channel.sql"), names).text());
    let channel = channel.persistent(false).bind(&names.schema).bind(&names.records);
    let channel: String = channel.fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(Prepared { names: names.clone(), channel })
}

async fn current(connection: &mut PgConnection) -> Result<String, OpenError> {
    let current = sqlx::query_scalar("SELECT current_schema()::text").persistent(false);
    let current: Option<String> = current.fetch_one(connection).await?;
    current.ok_or(OpenError::NoSchema)
}

async fn create(connection: &mut PgConnection, names: &Names) -> Result<SchemaFound, OpenError> {
    let parts = [
        "CREATE SCHEMA IF NOT EXISTS {schema}",
        include_str!("../sql/schema_versions.sql"),
        include_str!("../sql/schema_records.sql"),
        include_str!("../sql/schema_claim.sql"),
    ];
    let (schema_is_there, ..) = relations(connection, names).await?;
    // Who may make tables in a schema that is there may not be allowed to make schemas.
    for part in &parts[usize::from(schema_is_there)..] {
        sqlx::raw_sql(Statement::fit(part, names).text()).execute(&mut *connection).await?;
    }
    let done = Statement::fit(include_str!("../sql/schema_done.sql"), names);
    done.query().persistent(false).bind(&names.records).bind(VERSION).execute(connection).await?;
    Ok(SchemaFound::Version(VERSION))
}

async fn found(connection: &mut PgConnection, names: &Names) -> Result<SchemaFound, sqlx::Error> {
    let (_, records, versions) = relations(connection, names).await?;
    let version = if versions { version(connection, names).await? } else { Ok(None) };
    Ok(match (records, version) {
        (_, Err(NotOurs)) | (true, Ok(None)) => SchemaFound::Unversioned,
        (true, Ok(Some(version))) => SchemaFound::Version(version),
        (false, _) => SchemaFound::Absent,
    })
}

/// Whether the schema, the table of records and the table of versions are there.
async fn relations(connection: &mut PgConnection, names: &Names) -> Result<(bool, bool, bool), sqlx::Error> {
    let found = sqlx::query_as(Statement::fit(include_str!("../sql/schema_found.sql"), names).text());
    let found = found.persistent(false).bind(&names.schema).bind(&names.records).bind(Names::VERSIONS);
    found.fetch_one(connection).await
}

/// A table of versions that somebody else made.
struct NotOurs;

async fn version(
    connection: &mut PgConnection,
    names: &Names,
) -> Result<Result<Option<i64>, NotOurs>, sqlx::Error> {
    let version = sqlx::query_scalar(Statement::fit(include_str!("../sql/schema_version.sql"), names).text());
    // A statement that fails undoes its transaction: within one of its own, it undoes no more.
    let mut attempt = connection.begin().await?;
    match version.persistent(false).bind(&names.records).fetch_one(&mut *attempt).await {
        Ok(version) => Ok(Ok(version)),
        Err(error) if is_absent_table(&error) => Ok(Ok(None)), // dropped meanwhile
        Err(error) if is_schema_mismatch(&error) => Ok(Err(NotOurs)),
        Err(error) => Err(error),
    }
}
