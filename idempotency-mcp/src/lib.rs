#![doc = include_str!("../README.md")]

mod answer;
mod call;
mod detaching;
mod error;
mod guard;
mod kept;
mod meta;
mod route;
mod tool;

pub use call::Call;
pub use error::GuardError;
pub use guard::{Guard, guard};
pub use idempotency_agent::{Applied, EffectContext, ProviderKey};
pub use meta::{KEY, OUTCOME, REPLAYED};
pub use tool::{Guarded, OnToolError};
