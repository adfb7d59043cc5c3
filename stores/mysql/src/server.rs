//! What a server can do, and whether the store can keep its promises there.

use sqlx::{Executor, MySqlConnection, Row};

use crate::{
    OpenError, Setting,
    error::{is_syntax, is_unknown_variable},
    statements::Statements,
};

/// How a claim's record comes back with the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claims {
    /// The statement returns it: MariaDB from 10.5 on.
    Returning,
    /// A second statement in the same packet reads it: any server.
    ThenRead,
}

/// What the store needs to know of a server.
#[derive(Debug)]
pub(crate) struct Server {
    /// The most bytes a statement may have, and a row.
    pub(crate) max_packet: usize,
}

impl Server {
    /// Asks the server, and refuses settings under which the store would break its word.
    pub(crate) async fn probe(connection: &mut MySqlConnection) -> Result<Self, OpenError> {
        let settings = connection.fetch_one(include_str!("../sql/settings.sql")).await?;
        if settings.try_get::<i64, _>("autocommit")? == 0 {
            return Err(OpenError::Setting(Setting::AutocommitOff));
        }
        if settings.try_get::<i64, _>("clock_goes_on")? == 0 {
            return Err(OpenError::Setting(Setting::SysdateIsNow));
        }
        if replicates_by_statement(connection).await? {
            return Err(OpenError::Setting(Setting::StatementReplication));
        }
        let max_packet: i64 = settings.try_get("max_packet")?;
        Ok(Self { max_packet: usize::try_from(max_packet).unwrap_or(0) })
    }
}

async fn replicates_by_statement(connection: &mut MySqlConnection) -> Result<bool, sqlx::Error> {
    match connection.fetch_one(include_str!("../sql/replication.sql")).await {
        Ok(row) => Ok(row.try_get::<i64, _>("by_statement")? != 0),
        Err(error) if is_unknown_variable(&error) => Ok(false), // a server without a choice writes rows
        Err(error) => Err(error),
    }
}

impl Claims {
    /// The better way that this server knows.
    pub(crate) async fn best(
        connection: &mut MySqlConnection,
        statements: &Statements,
    ) -> Result<Self, OpenError> {
        match connection.prepare(statements.claim_returning.text()).await {
            Ok(_) => Ok(Self::Returning),
            Err(error) if is_syntax(&error) => Ok(Self::ThenRead),
            Err(error) => Err(error.into()),
        }
    }
}
