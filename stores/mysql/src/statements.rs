//! The statements of `sql/`, fitted to one table when a store is opened.

use std::{
    fmt::{self, Write as _},
    sync::Arc,
};

use sqlx::{AssertSqlSafe, MySql, RawSql, SqlSafeStr, SqlStr, mysql::MySqlArguments, query::Query};

use crate::table::Table;

/// What a `?` stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'v> {
    Bytes(&'v [u8]),
    Integer(i64),
}

/// A statement with a table's name in it.
#[derive(Debug, Clone)]
pub(crate) struct Statement(Arc<str>);

impl Statement {
    /// Fits a file of `sql/` to `table`.
    pub(crate) fn fit(file: &str, table: &Table) -> Self {
        let mut text = without_comments(file);
        for (name, part) in [
            ("{same_payload}", include_str!("../sql/same_payload.sql")),
            ("{record_columns}", include_str!("../sql/record_columns.sql")),
            ("{now}", include_str!("../sql/now.sql")),
        ] {
            text = text.replace(name, &without_comments(part));
        }
        Self(text.replace("{records}", &table.quoted()).into())
    }

    pub(crate) fn text(&self) -> SqlStr {
        AssertSqlSafe(Arc::clone(&self.0)).into_sql_str()
    }

    /// Both statements, to be sent together.
    pub(crate) fn then(&self, next: &Self) -> Self {
        Self(format!("{};\n{}", self.0, next.0).into())
    }

    /// The statement, prepared once on each connection.
    pub(crate) fn with<'v>(
        &self,
        values: impl IntoIterator<Item = Value<'v>>,
    ) -> Query<'v, MySql, MySqlArguments> {
        let query = sqlx::query(self.text());
        values.into_iter().fold(query, |query, value| match value {
            Value::Bytes(bytes) => query.bind(bytes),
            Value::Integer(number) => query.bind(number),
        })
    }

    /// The statements with their values spelt out, since no more than one at a time can be prepared.
    pub(crate) fn spelt<'v>(&self, values: impl IntoIterator<Item = Value<'v>>) -> RawSql {
        let mut values = values.into_iter();
        let mut text = String::with_capacity(2 * self.0.len());
        for (place, part) in self.0.split('?').enumerate() {
            if place > 0 {
                // Writing to a string cannot fail; a statement that lacks a value is one that the server refuses.
                let _ = values.next().map(|value| write!(text, "{value}"));
            }
            text.push_str(part);
        }
        sqlx::raw_sql(AssertSqlSafe(text))
    }

    /// The statement with these addresses spelt out where its list of them is.
    pub(crate) fn listing(&self, addresses: &[&[u8]]) -> RawSql {
        let addresses: Vec<_> = addresses.iter().map(|address| Value::Bytes(address).to_string()).collect();
        sqlx::raw_sql(AssertSqlSafe(self.0.replace("{addresses}", &addresses.join(", "))))
    }
}

/// As SQL spells it. Bytes are spelt in hexadecimal digits, so that no value can be read as anything else.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Bytes(bytes) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
        }
    }
}

fn without_comments(file: &str) -> String {
    let lines = file.lines().map(|line| line.split("--").next().unwrap_or_default().trim_end());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Every statement on a table of records.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) claim_returning: Statement,
    pub(crate) claim_then_record: Statement,
    pub(crate) record: Statement,
    pub(crate) record_locked: Statement,
    pub(crate) renew: Statement,
    pub(crate) complete: Statement,
    pub(crate) release_not_applied: Statement,
    pub(crate) release_unknown: Statement,
    pub(crate) resolve_applied: Statement,
    pub(crate) resolve_not_applied: Statement,
    pub(crate) due: Statement,
    pub(crate) remove: Statement,
    pub(crate) list: Statement,
    pub(crate) list_in_doubt: Statement,
}

impl Statements {
    pub(crate) fn on(table: &Table) -> Self {
        let fit = |file| Statement::fit(file, table);
        let (claim, record) = (fit(include_str!("../sql/claim.sql")), fit(include_str!("../sql/record.sql")));
        let returning = fit(include_str!("../sql/claim_returning.sql"));
        Self {
            claim_returning: Statement(format!("{}\n{}", claim.0, returning.0).into()),
            claim_then_record: claim.then(&record),
            record_locked: Statement(format!("{} FOR UPDATE", record.0).into()),
            record,
            renew: fit(include_str!("../sql/renew.sql")),
            complete: fit(include_str!("../sql/complete.sql")),
            release_not_applied: fit(include_str!("../sql/release_not_applied.sql")),
            release_unknown: fit(include_str!("../sql/release_unknown.sql")),
            resolve_applied: fit(include_str!("../sql/resolve_applied.sql")),
            resolve_not_applied: fit(include_str!("../sql/resolve_not_applied.sql")),
            due: fit(include_str!("../sql/due.sql")),
            remove: fit(include_str!("../sql/remove.sql")),
            list: fit(include_str!("../sql/list.sql")),
            list_in_doubt: fit(include_str!("../sql/list_in_doubt.sql")),
        }
    }
}
