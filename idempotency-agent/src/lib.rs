#![doc = include_str!("../README.md")]

mod instant;
pub mod json;
mod key;
pub mod ledger;

pub use instant::instant;
pub use key::{EffectKey, Intent, LedgerScope, NameError, ProviderKey};
pub use ledger::Compat;
