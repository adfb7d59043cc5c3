//! The table of payments. It takes one payment for each operation, whatever else happens.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};

const CREATE: &str = "
    CREATE TABLE IF NOT EXISTS payments (
        id        INTEGER PRIMARY KEY,
        operation TEXT    NOT NULL UNIQUE,
        customer  TEXT    NOT NULL,
        cents     INTEGER NOT NULL CHECK (cents > 0)
    ) STRICT
";

const INSERT: &str = "
    INSERT INTO payments (operation, customer, cents) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET operation = excluded.operation
    RETURNING id, cents
";

/// What a customer wants to pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct NewPayment {
    /// How much.
    pub cents: u32,
}

/// A payment that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Payment {
    /// Its number.
    pub id: i64,
    /// How much.
    pub cents: u32,
}

/// The payments in a SQLite file, which may be the idempotency store's file too.
#[derive(Debug, Clone)]
pub struct Payments(SqlitePool);

impl Payments {
    /// Opens the file at `path`; file and table are created where they are absent.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn open(path: &Path) -> Result<Self, sqlx::Error> {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await?;
        sqlx::raw_sql(CREATE).execute(&pool).await?;
        Ok(Self(pool))
    }

    /// Makes the one payment of `operation`. If it was made before, by a run that did not live to say so, it is that one.
    ///
    /// # Errors
    /// [`PayError`] when it is declined, or the database fails.
    pub async fn pay(
        &self,
        customer: &str,
        operation: &str,
        payment: NewPayment,
    ) -> Result<Payment, PayError> {
        if payment.cents == 0 {
            return Err(PayError::Declined);
        }
        let insert = sqlx::query_as(INSERT).bind(operation).bind(customer).bind(payment.cents);
        let (id, cents) = insert.fetch_one(&self.0).await?;
        Ok(Payment { id, cents })
    }

    /// How many payments were made.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn count(&self) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar("SELECT count(*) FROM payments").fetch_one(&self.0).await
    }

    /// Takes no more payments.
    pub async fn close(&self) {
        self.0.close().await;
    }
}

/// Why nothing was paid.
#[derive(Debug, thiserror::Error)]
pub enum PayError {
    /// Nobody pays nothing.
    #[error("a payment of nothing is none")]
    Declined,
    /// The database failed: nobody knows whether it was paid.
    #[error("the payment failed")]
    Database(#[from] sqlx::Error),
}
