#![doc = include_str!("../README.md")]

mod builder;
mod ending;
mod error;
mod fenced;
mod inspect;
mod lines;
mod purge;
mod row;
mod schema;
mod server;
mod statements;
mod store;
mod table;

pub use builder::MySqlStoreBuilder;
pub use error::{OpenError, SchemaFound, Setting};
pub use store::MySqlStore;
