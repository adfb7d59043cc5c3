#![doc = include_str!("../README.md")]

mod builder;
mod error;
mod fenced;
mod inspect;
mod ledger;
mod lines;
mod names;
mod relay;
mod row;
mod schema;
mod statements;
mod store;
mod waking;

pub use builder::PostgresStoreBuilder;
pub use error::{OpenError, SchemaFound};
pub use ledger::{PostgresLedger, PostgresLedgerBuilder};
pub use store::PostgresStore;
