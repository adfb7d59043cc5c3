#![doc = include_str!("../README.md")]

// The tests beside the store set the same scene as those in `tests`, which know the crate by its name.
#[cfg(test)]
extern crate self as idempotency_store_dynamodb;

mod builder;
mod clock;
mod error;
mod expressions;
mod inspect;
mod item;
mod quiet;
mod schema;
mod store;
mod table;
mod witness;
mod write;

pub use builder::DynamoDbStoreBuilder;
pub use error::{OpenError, Unfit};
pub use store::DynamoDbStore;
