#![doc = include_str!("../README.md")]

mod answer;
mod builder;
mod ears;
mod error;
mod inspect;
mod keys;
mod ledger;
mod link;
mod record;
mod script;
mod server;
mod store;
#[cfg(feature = "tls")]
mod tls;

pub use builder::RedisStoreBuilder;
pub use error::OpenError;
pub use ledger::RedisLedger;
pub use server::Eviction;
pub use store::RedisStore;
