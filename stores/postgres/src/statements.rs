//! The statements of `sql/`, fitted to one table when a store is opened.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, Postgres, postgres::PgArguments, query::Query};

use crate::names::Names;

/// A statement with its values.
pub(crate) type Bound<'v> = Query<'v, Postgres, PgArguments>;

/// The parts that statements have in common, each before those that it is made of.
const PARTS: [(&str, &str); 9] = [
    ("{law}", include_str!("../sql/law.sql")),
    ("{record_row}", include_str!("../sql/record_row.sql")),
    ("{removable_at}", include_str!("../sql/removable_at.sql")),
    ("{same_payload}", include_str!("../sql/same_payload.sql")),
    ("{readable}", include_str!("../sql/readable.sql")),
    ("{held}", include_str!("../sql/held.sql")),
    ("{in_doubt}", include_str!("../sql/in_doubt.sql")),
    ("{never}", include_str!("../sql/never.sql")),
    ("{now}", include_str!("../sql/now.sql")),
];

/// What stands for an outcome that is not read: whether there is one.
const OUTCOME_UNREAD: &str = "CASE WHEN r.outcome IS NOT NULL THEN ''::bytea END";

/// A statement with a table's name in it.
#[derive(Clone)]
pub(crate) struct Statement(Arc<str>);

impl Statement {
    /// Fits a file of `sql/` to the tables of `names`.
    pub(crate) fn fit(file: &str, names: &Names) -> Self {
        Self::reading(file, names, "r.outcome")
    }

    fn reading(file: &str, names: &Names, outcome: &str) -> Self {
        let mut text = words(file);
        for (name, part) in PARTS {
            text = text.replace(name, &words(part));
        }
        Self(names.fit(&text.replace("{outcome}", outcome)).into())
    }

    /// The statement, for its values to be bound. Each connection prepares it once.
    pub(crate) fn query<'v>(&self) -> Bound<'v> {
        sqlx::query(self.text())
    }

    /// The same for one that is planned anew each time, since it reads as much of the table as there is.
    pub(crate) fn planned_anew<'v>(&self) -> Bound<'v> {
        self.query().persistent(false)
    }

    pub(crate) fn text(&self) -> AssertSqlSafe<Arc<str>> {
        AssertSqlSafe(Arc::clone(&self.0))
    }
}

/// The text without comments and line breaks: drivers find a prepared statement by it, at every call.
fn words(file: &str) -> String {
    let code = file.lines().map(|line| line.split("--").next().unwrap_or_default());
    code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// Every statement on a table of records.
pub(crate) struct Statements {
    pub(crate) claim: Statement,
    pub(crate) record: Statement,
    pub(crate) standing: Statement,
    pub(crate) renew: Statement,
    pub(crate) complete: Statement,
    pub(crate) release_not_applied: Statement,
    pub(crate) release_unknown: Statement,
    pub(crate) resolve_applied: Statement,
    pub(crate) resolve_not_applied: Statement,
    pub(crate) purge: Statement,
    pub(crate) list: Statement,
    pub(crate) list_in_doubt: Statement,
    pub(crate) wait: Statement,
    pub(crate) notify: Statement,
    pub(crate) fence: Statement,
}

impl Statements {
    pub(crate) fn on(names: &Names) -> Self {
        let fit = |file| Statement::fit(file, names);
        Self {
            claim: fit(include_str!("../sql/claim.sql")),
            record: fit(include_str!("../sql/record.sql")),
            standing: Statement::reading(include_str!("../sql/standing.sql"), names, OUTCOME_UNREAD),
            renew: fit(include_str!("../sql/renew.sql")),
            complete: fit(include_str!("../sql/complete.sql")),
            release_not_applied: fit(include_str!("../sql/release_not_applied.sql")),
            release_unknown: fit(include_str!("../sql/release_unknown.sql")),
            resolve_applied: fit(include_str!("../sql/resolve_applied.sql")),
            resolve_not_applied: fit(include_str!("../sql/resolve_not_applied.sql")),
            purge: fit(include_str!("../sql/purge.sql")),
            list: fit(include_str!("../sql/list.sql")),
            list_in_doubt: fit(include_str!("../sql/list_in_doubt.sql")),
            wait: fit(include_str!("../sql/wait.sql")),
            notify: fit(include_str!("../sql/notify.sql")),
            fence: fit(include_str!("../sql/fence.sql")),
        }
    }
}

#[cfg(test)]
mod tests;
