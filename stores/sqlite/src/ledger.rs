//! Ledgers of agents: a head in one table, sheets in another, one transaction a call.

use std::{collections::BTreeMap, time::Duration};

use idempotency_core::{
    Fate, Folio, LedgerLayout, LedgerStore, Motion, Revision, Sheets, StoreError, StoreErrorKind,
    clock::{Timestamp, as_micros},
    columns::{integer, natural},
};
use sqlx::{SqliteConnection, SqlitePool};

use crate::{
    OpenError,
    error::not_applied,
    writer::{Transition, Writer},
};

/// How many scopes one forgetting transaction removes: few enough that an agent hardly waits for it.
const BATCH: u32 = 200;

/// Ledgers of agents in a SQLite file. Clones share its connections, and so does the
/// [`SqliteStore`](crate::SqliteStore) that made it.
#[derive(Debug, Clone)]
pub struct SqliteLedger {
    writer: Writer,
    readers: SqlitePool,
}

impl SqliteLedger {
    /// The longest head or sheet, in bytes: every other writer waits while one is synced to disk.
    pub const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

    pub(crate) async fn open(writer: Writer, readers: SqlitePool) -> Result<Self, OpenError> {
        let mut transition = writer.begin().await?;
        sqlx::raw_sql(include_str!("../sql/ledger_schema.sql")).execute(transition.connection()).await?;
        transition.commit().await.map_err(|error| OpenError::Unavailable(error.into()))?;
        Ok(Self { writer, readers })
    }

    async fn write(mut transition: Transition, scope: &str, revision: &Revision) -> Result<(), StoreError> {
        let now = integer(transition.now().as_micros());
        let texts = std::iter::once(&revision.head).chain(revision.sheets.values().flatten());
        if texts.map(String::len).any(|length| length > Self::MAX_TEXT_BYTES) {
            return Err(StoreError::new(StoreErrorKind::TooLarge, Fate::NotApplied));
        }
        let write = sqlx::query(include_str!("../sql/ledger_write.sql"));
        let write = write.bind(scope).bind(&revision.head).bind(i64::from(revision.settled)).bind(now);
        write.execute(transition.connection()).await.map_err(not_applied)?;
        for (name, sheet) in &revision.sheets {
            let change = match sheet {
                Some(text) => sqlx::query(include_str!("../sql/ledger_sheet_write.sql"))
                    .bind(scope)
                    .bind(name)
                    .bind(text),
                None => sqlx::query(include_str!("../sql/ledger_sheet_remove.sql")).bind(scope).bind(name),
            };
            change.execute(transition.connection()).await.map_err(not_applied)?;
        }
        transition.commit().await
    }

    async fn forget_batch(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        let mut transition = self.writer.begin().await.map_err(not_applied)?;
        let idle_since = transition.now().as_micros().saturating_sub(as_micros(idle));
        let going: Vec<String> = sqlx::query_scalar(include_str!("../sql/ledger_idle.sql"))
            .bind(integer(idle_since))
            .bind(at_most)
            .fetch_all(transition.connection())
            .await
            .map_err(not_applied)?;
        for scope in &going {
            for statement in
                [include_str!("../sql/ledger_sheets_forget.sql"), include_str!("../sql/ledger_forget.sql")]
            {
                sqlx::query(statement)
                    .bind(scope)
                    .execute(transition.connection())
                    .await
                    .map_err(not_applied)?;
            }
        }
        transition.commit().await?;
        Ok(u32::try_from(going.len()).unwrap_or(at_most))
    }
}

async fn folio(
    connection: &mut SqliteConnection,
    scope: &str,
    sheets: Sheets<'_>,
) -> Result<Folio, sqlx::Error> {
    let head = sqlx::query_scalar(include_str!("../sql/ledger_head.sql")).bind(scope);
    let Some(head) = head.fetch_optional(&mut *connection).await? else { return Ok(Folio::default()) };
    let sheets: BTreeMap<String, String> = match sheets {
        Sheets::All => {
            let all = sqlx::query_as(include_str!("../sql/ledger_sheets.sql")).bind(scope);
            all.fetch_all(connection).await?.into_iter().collect()
        }
        Sheets::Named(names) => {
            let mut found = BTreeMap::new();
            for name in names {
                let one = sqlx::query_scalar(include_str!("../sql/ledger_sheet.sql")).bind(scope).bind(name);
                if let Some(sheet) = one.fetch_optional(&mut *connection).await? {
                    found.insert(name.clone(), sheet);
                }
            }
            found
        }
    };
    Ok(Folio { head, sheets })
}

impl LedgerStore for SqliteLedger {
    fn layout(&self) -> LedgerLayout {
        LedgerLayout::Split
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        mut law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        let mut transition = self.writer.begin().await.map_err(not_applied)?;
        let now = transition.now();
        let mut asked = Sheets::Named(sheets);
        loop {
            let found = folio(transition.connection(), scope, asked).await.map_err(not_applied)?;
            match law(&found, now) {
                Motion::Keep(verdict) => return Ok(verdict),
                Motion::Write(revision, verdict) => {
                    Self::write(transition, scope, &revision).await?;
                    return Ok(verdict);
                }
                Motion::ReadAll => asked = Sheets::All,
            }
        }
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        let mut transaction = self.readers.begin().await.map_err(not_applied)?;
        let found = folio(&mut transaction, scope, sheets).await.map_err(not_applied)?;
        let now = match self.writer.clock_now() {
            Some(now) => now,
            None => {
                let clock = sqlx::query_scalar(include_str!("../sql/clock.sql"));
                Timestamp::from_micros(natural(
                    clock.fetch_one(&mut *transaction).await.map_err(not_applied)?,
                ))
            }
        };
        Ok((found, now))
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        let mut removed = 0;
        while removed < at_most {
            let batch = BATCH.min(at_most - removed);
            let gone = self.forget_batch(idle, batch).await?;
            removed += gone;
            if gone < batch {
                break;
            }
        }
        Ok(removed)
    }
}
