//! The orders table, looked at past the servers.

use std::path::Path;

use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

/// How many orders were really written.
pub(super) async fn count(db: &Path) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&mut connect(db).await?).await
}

/// Takes the guard off the table, to show what it guards from.
pub(super) async fn drop_unique_key(db: &Path) -> Result<(), sqlx::Error> {
    sqlx::query("DROP INDEX one_order_for_each_key").execute(&mut connect(db).await?).await?;
    Ok(())
}

async fn connect(db: &Path) -> Result<SqliteConnection, sqlx::Error> {
    SqliteConnectOptions::new().filename(db).connect().await
}
