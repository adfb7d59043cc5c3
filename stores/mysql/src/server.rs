//! What a server can do, and whether the store can keep its promises there.

use std::collections::HashMap;

use sqlx::{Executor, MySqlConnection, Row};

use crate::{OpenError, Setting, error::is_syntax, statements::Statements};

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
        let rows = connection.fetch_all(include_str!("../sql/settings.sql")).await?;
        let settings: HashMap<String, String> = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, sqlx::Error>>()?;
        let is = |name: &str, value: &str| settings.get(name).is_some_and(|found| found == value);
        if !is("autocommit", "ON") {
            return Err(OpenError::Setting(Setting::AutocommitOff));
        }
        if is("log_bin", "ON") && is("binlog_format", "STATEMENT") {
            return Err(OpenError::Setting(Setting::StatementReplication));
        }
        let clock: i64 = connection.fetch_one(include_str!("../sql/clock.sql")).await?.try_get("goes_on")?;
        if clock == 0 {
            return Err(OpenError::Setting(Setting::SysdateIsNow));
        }
        let max_packet = settings.get("max_allowed_packet").and_then(|bytes| bytes.parse().ok());
        Ok(Self { max_packet: max_packet.unwrap_or(0) })
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
