//! Ledgers of agents: one row locked, decided on, and written, in one transaction.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotency_core::{
    Fate, Folio, LedgerLayout, LedgerStore, Motion, Revision, Sheets, StoreError, StoreErrorKind,
    clock::{Timestamp, as_micros},
    columns::{integer, natural},
};
use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use tokio::time::timeout;

use crate::{
    OpenError,
    error::{failed, lost_a_conflict, not_applied},
};

mod tables;

use tables::{Statements, Tables};

/// How often a transaction is begun anew whose row others made, removed, or fought over.
const TIMES: u32 = 20;

/// Below what an agent waits for, and far above what a transaction takes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ledgers of agents in PostgreSQL. Clones share its connections.
///
/// Time is the server's `clock_timestamp()`, read once the scope's row is locked.
#[derive(Clone)]
pub struct PostgresLedger {
    pool: PgPool,
    statements: Arc<Statements>,
    layout: LedgerLayout,
    patience: Duration,
}

/// What may be chosen before a [`PostgresLedger`] is opened.
#[derive(Debug, Clone)]
#[must_use]
pub struct PostgresLedgerBuilder {
    table: String,
    layout: LedgerLayout,
    patience: Duration,
}

impl PostgresLedger {
    /// Starts from the defaults: the tables `idempotency_ledgers` and `idempotency_ledgers_sheets` in the schema that
    /// connections use, made where they are absent, and 5 s of patience.
    pub fn builder() -> PostgresLedgerBuilder {
        PostgresLedgerBuilder {
            table: "idempotency_ledgers".to_owned(),
            layout: LedgerLayout::Split,
            patience: PATIENCE,
        }
    }

    async fn decide<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        law: &mut (impl FnMut(&Folio, Timestamp) -> Motion<V> + Send),
        committing: &AtomicBool,
    ) -> Result<V, StoreError> {
        for _ in 0..TIMES {
            match self.decide_once(scope, sheets, law, committing).await {
                Ok(Some(verdict)) => return Ok(verdict),
                Ok(None) => {}
                Err(error) if lost_a_conflict(&error) => committing.store(false, Ordering::SeqCst),
                Err(error) if committing.load(Ordering::SeqCst) => return Err(failed(error, Fate::Unknown)),
                Err(error) => return Err(not_applied(error)),
            }
        }
        Err(StoreError::new(StoreErrorKind::Unavailable, Fate::NotApplied))
    }

    /// One transaction. Nothing, if others changed what it was about to write to.
    async fn decide_once<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        law: &mut (impl FnMut(&Folio, Timestamp) -> Motion<V> + Send),
        committing: &AtomicBool,
    ) -> Result<Option<V>, sqlx::Error> {
        let mut transaction = self.pool.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        let head = self.statements.lock.query_scalar().bind(scope).fetch_optional(&mut *transaction).await?;
        let now = self.now(&mut transaction).await?;
        let mut asked = Sheets::Named(sheets);
        let (revision, verdict) = loop {
            let folio = self.folio(&mut transaction, scope, head.clone(), asked).await?;
            match law(&folio, now) {
                Motion::Keep(verdict) => {
                    transaction.rollback().await?; // at once: others wait for the row
                    return Ok(Some(verdict));
                }
                Motion::Write(revision, verdict) => break (revision, verdict),
                Motion::ReadAll => asked = Sheets::All,
            }
        };
        if !self.write(&mut transaction, scope, head.is_some(), &revision).await? {
            transaction.rollback().await?;
            return Ok(None);
        }
        committing.store(true, Ordering::SeqCst);
        transaction.commit().await?;
        Ok(Some(verdict))
    }

    async fn now(&self, connection: &mut PgConnection) -> Result<Timestamp, sqlx::Error> {
        let micros = sqlx::query_scalar(include_str!("../sql/ledger_now.sql")).fetch_one(connection).await?;
        Ok(Timestamp::from_micros(natural(micros)))
    }

    async fn folio(
        &self,
        connection: &mut PgConnection,
        scope: &str,
        head: Option<String>,
        sheets: Sheets<'_>,
    ) -> Result<Folio, sqlx::Error> {
        let nothing = matches!(sheets, Sheets::Named([])) || head.is_none();
        if nothing || self.layout == LedgerLayout::Whole {
            return Ok(Folio { head, sheets: BTreeMap::new() });
        }
        let found: Vec<(String, String)> = match sheets {
            Sheets::Named(names) => {
                self.statements.sheets_named.query_as().bind(scope).bind(names).fetch_all(connection).await?
            }
            Sheets::All => self.statements.sheets_all.query_as().bind(scope).fetch_all(connection).await?,
        };
        Ok(Folio { head, sheets: found.into_iter().collect() })
    }

    /// Writes, and says whether what was read still stood there.
    async fn write(
        &self,
        transaction: &mut Transaction<'_, Postgres>,
        scope: &str,
        stands: bool,
        revision: &Revision,
    ) -> Result<bool, sqlx::Error> {
        let statement = if stands { &self.statements.update } else { &self.statements.insert };
        let write = statement.query().bind(scope).bind(&revision.head);
        let write = match self.layout {
            LedgerLayout::Whole => write,
            LedgerLayout::Split => write.bind(revision.settled),
        };
        // A row that was removed since, or made since, is one that the law has not seen.
        if write.execute(&mut **transaction).await?.rows_affected() == 0 {
            return Ok(false);
        }
        let (kept, gone): (Vec<_>, Vec<_>) = revision.sheets.iter().partition(|(_, sheet)| sheet.is_some());
        if !kept.is_empty() {
            let (names, texts): (Vec<&String>, Vec<&String>) =
                kept.into_iter().filter_map(|(name, sheet)| Some((name, sheet.as_ref()?))).unzip();
            let put = self.statements.sheets_put.query().bind(scope).bind(names).bind(texts);
            put.execute(&mut **transaction).await?;
        }
        if !gone.is_empty() {
            let names: Vec<&String> = gone.into_iter().map(|(name, _)| name).collect();
            self.statements.sheets_remove.query().bind(scope).bind(names).execute(&mut **transaction).await?;
        }
        Ok(true)
    }

    async fn look(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), sqlx::Error> {
        // Of one moment: a sheet may be put away while it is looked for.
        let mut transaction = self.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let head = self.statements.head.query_scalar().bind(scope).fetch_optional(&mut *transaction).await?;
        let folio = self.folio(&mut transaction, scope, head, sheets).await?;
        let now = self.now(&mut transaction).await?;
        transaction.rollback().await?;
        Ok((folio, now))
    }
}

impl PostgresLedgerBuilder {
    /// The name of the table, with a schema before a point if you like: each part up to 63 letters, digits and underscores.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = table.into();
        self
    }

    /// Shares the table `replyonce_scopes` with workers of replyonce 0.1.3, in the form that they read and write. Call
    /// [`table`](Self::table) after this if yours has another name.
    pub fn replyonce_compatible(mut self) -> Self {
        self.layout = LedgerLayout::Whole;
        self.table("replyonce_scopes")
    }

    /// How long a call takes at most, waiting for others included: 5 s unless set.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Opens the ledger on a pool of yours.
    ///
    /// # Errors
    /// [`OpenError`] when the name is none, or the server does not answer or refuses.
    pub async fn open(self, pool: PgPool) -> Result<PostgresLedger, OpenError> {
        let tables = Tables::named(&self.table)?;
        tables.prepare(&pool, self.layout).await?;
        let statements = Arc::new(Statements::on(&tables, self.layout));
        Ok(PostgresLedger { pool, statements, layout: self.layout, patience: self.patience })
    }
}

impl fmt::Debug for PostgresLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLedger").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl LedgerStore for PostgresLedger {
    fn layout(&self) -> LedgerLayout {
        self.layout
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        mut law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        let committing = AtomicBool::new(false);
        let decided = timeout(self.patience, self.decide(scope, sheets, &mut law, &committing)).await;
        decided.unwrap_or_else(|late| {
            let fate = if committing.load(Ordering::SeqCst) { Fate::Unknown } else { Fate::NotApplied };
            Err(StoreError::new(StoreErrorKind::Unavailable, fate).with_source(late))
        })
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        let looked = timeout(self.patience, self.look(scope, sheets)).await;
        let late =
            |late| Err(StoreError::new(StoreErrorKind::Unavailable, Fate::NotApplied).with_source(late));
        looked.map_or_else(late, |looked| looked.map_err(not_applied))
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        let forget = self.statements.forget.query().bind(integer(as_micros(idle))).bind(i64::from(at_most));
        let forgotten = forget.execute(&self.pool).await.map_err(|error| failed(error, Fate::Unknown))?;
        Ok(u32::try_from(forgotten.rows_affected()).unwrap_or(at_most))
    }
}
