//! The business table. Its unique key takes one order for each customer and idempotency key, whatever else happens.

use std::path::Path;

use idempotency_axum::Key;
use serde::{Deserialize, Serialize};
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};

use crate::customer::Customer;

const CREATE: &str = "
    CREATE TABLE IF NOT EXISTS orders (
        id              INTEGER PRIMARY KEY,
        customer        TEXT    NOT NULL,
        idempotency_key TEXT    NOT NULL,
        item            TEXT    NOT NULL,
        quantity        INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX IF NOT EXISTS one_order_for_each_key ON orders (customer, idempotency_key);
";

const INSERT: &str = "
    INSERT INTO orders (customer, idempotency_key, item, quantity) VALUES (?, ?, ?, ?)
    ON CONFLICT DO NOTHING
    RETURNING id, item, quantity
";

const FIND: &str = "SELECT id, item, quantity FROM orders WHERE customer = ? AND idempotency_key = ?";

/// What a customer asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewOrder {
    /// What.
    pub item: String,
    /// How many.
    pub quantity: u32,
}

/// An order that was placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Order {
    /// Its number.
    pub id: i64,
    /// What was asked for.
    #[serde(flatten)]
    pub new: NewOrder,
}

/// The orders in a SQLite file, which may be the idempotency store's file too.
#[derive(Debug, Clone)]
pub struct Orders(SqlitePool);

impl Orders {
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

    /// Places the one order of `key`. If it was placed before, by a run that did not live to say so, it is that order.
    ///
    /// # Errors
    /// [`PlaceError`] when the key placed another order, or the database fails.
    pub async fn place(&self, customer: &Customer, key: &Key, new: NewOrder) -> Result<Order, PlaceError> {
        let insert =
            sqlx::query_as(INSERT).bind(&customer.0).bind(key.as_str()).bind(&new.item).bind(new.quantity);
        if let Some((id, item, quantity)) = insert.fetch_optional(&self.0).await? {
            return Ok(Order { id, new: NewOrder { item, quantity } });
        }
        let find = sqlx::query_as(FIND).bind(&customer.0).bind(key.as_str());
        let (id, item, quantity) = find.fetch_one(&self.0).await?;
        let placed = Order { id, new: NewOrder { item, quantity } };
        if placed.new == new { Ok(placed) } else { Err(PlaceError::KeyTaken) }
    }
}

/// Why no order was placed.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The key is older than its idempotency record and belongs to an order for something else.
    #[error("this key has placed another order; a new order needs a new key")]
    KeyTaken,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}
