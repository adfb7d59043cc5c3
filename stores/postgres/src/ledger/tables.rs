//! The tables of ledgers, and the statements on them.

use idempotency_core::LedgerLayout;
use sqlx::{
    AssertSqlSafe, FromRow, PgPool, Postgres,
    postgres::{PgArguments, PgRow},
    query::{Query, QueryAs, QueryScalar},
};

use crate::OpenError;

/// PostgreSQL's bound, above which it would cut a name off.
const MOST_BYTES: usize = 63;

/// The names of a ledger's tables.
pub(super) struct Tables {
    /// As it was given: what programs that share it take their lock by.
    given: String,
    ledgers: String,
    sheets: String,
}

impl Tables {
    pub(super) fn named(given: &str) -> Result<Self, OpenError> {
        let parts: Vec<&str> = given.split('.').collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = |part: &&str| {
            (1..=MOST_BYTES).contains(&part.len())
                && part.chars().all(plain)
                && !part.starts_with(|c: char| c.is_ascii_digit())
        };
        if parts.len() > 2 || !parts.iter().all(is_name) {
            return Err(OpenError::Name);
        }
        let quoted =
            |name: &str| name.split('.').map(|part| format!("\"{part}\"")).collect::<Vec<_>>().join(".");
        let sheets = format!("{given}_sheets");
        if sheets.split('.').any(|part| part.len() > MOST_BYTES) {
            return Err(OpenError::Name);
        }
        Ok(Self { given: given.to_owned(), ledgers: quoted(given), sheets: quoted(&sheets) })
    }

    /// Makes the tables where they are absent.
    pub(super) async fn prepare(&self, pool: &PgPool, layout: LedgerLayout) -> Result<(), OpenError> {
        let mut transaction = pool.begin().await?;
        let lock = sqlx::query(include_str!("../../sql/ledger_migrate_lock.sql"));
        lock.bind(format!("replyonce:migrate:{}", self.given)).execute(&mut *transaction).await?;
        let schema = match layout {
            LedgerLayout::Whole => include_str!("../../sql/ledger_schema_whole.sql"),
            LedgerLayout::Split => include_str!("../../sql/ledger_schema_split.sql"),
        };
        sqlx::raw_sql(AssertSqlSafe(self.fit(schema))).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    fn fit(&self, text: &str) -> String {
        text.replace("{ledgers}", &self.ledgers).replace("{sheets}", &self.sheets)
    }
}

/// A statement whose names are filled in.
pub(super) struct Statement(String);

impl Statement {
    pub(super) fn query(&self) -> Query<'_, Postgres, PgArguments> {
        sqlx::query(AssertSqlSafe(self.0.clone()))
    }

    pub(super) fn query_as<T: for<'r> FromRow<'r, PgRow>>(&self) -> QueryAs<'_, Postgres, T, PgArguments> {
        sqlx::query_as(AssertSqlSafe(self.0.clone()))
    }

    pub(super) fn query_scalar<T>(&self) -> QueryScalar<'_, Postgres, T, PgArguments>
    where
        (T,): for<'r> FromRow<'r, PgRow>,
    {
        sqlx::query_scalar(AssertSqlSafe(self.0.clone()))
    }
}

pub(super) struct Statements {
    pub(super) lock: Statement,
    pub(super) head: Statement,
    pub(super) insert: Statement,
    pub(super) update: Statement,
    pub(super) sheets_named: Statement,
    pub(super) sheets_all: Statement,
    pub(super) sheets_put: Statement,
    pub(super) sheets_remove: Statement,
    pub(super) forget: Statement,
}

impl Statements {
    pub(super) fn on(tables: &Tables, layout: LedgerLayout) -> Self {
        let fit = |text: &str| Statement(tables.fit(text));
        let [lock, head, insert, update, forget] = match layout {
            LedgerLayout::Whole => [
                include_str!("../../sql/ledger_lock_whole.sql"),
                include_str!("../../sql/ledger_head_whole.sql"),
                include_str!("../../sql/ledger_insert_whole.sql"),
                include_str!("../../sql/ledger_update_whole.sql"),
                include_str!("../../sql/ledger_forget_whole.sql"),
            ],
            LedgerLayout::Split => [
                include_str!("../../sql/ledger_lock_split.sql"),
                include_str!("../../sql/ledger_head_split.sql"),
                include_str!("../../sql/ledger_insert_split.sql"),
                include_str!("../../sql/ledger_update_split.sql"),
                include_str!("../../sql/ledger_forget_split.sql"),
            ],
        };
        Self {
            lock: fit(lock),
            head: fit(head),
            insert: fit(insert),
            update: fit(update),
            forget: fit(forget),
            sheets_named: fit(include_str!("../../sql/ledger_sheets_named.sql")),
            sheets_all: fit(include_str!("../../sql/ledger_sheets_all.sql")),
            sheets_put: fit(include_str!("../../sql/ledger_sheets_put.sql")),
            sheets_remove: fit(include_str!("../../sql/ledger_sheets_remove.sql")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_be_read_as_more_than_a_name_is_refused() {
        let quoted = |name: &str| Tables::named(name).map(|tables| tables.ledgers).ok();
        assert_eq!(quoted("replyonce_scopes").as_deref(), Some("\"replyonce_scopes\""));
        assert_eq!(quoted("agents.Scopes").as_deref(), Some("\"agents\".\"Scopes\""));
        for name in ["", ".", "a.", "a.b.c", "a b", "a\"", "a;b", "a-b", "1a", "ä", "a\n", &"a".repeat(64)] {
            assert_eq!(quoted(name), None, "{name:?}");
        }
    }
}
