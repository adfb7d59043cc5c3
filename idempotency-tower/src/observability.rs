#![doc = include_str!("../docs/observability.md")]

pub(crate) use self::{log::Log, span::RequestSpan};
#[cfg(feature = "metrics")]
pub use metrics::Metrics;

pub(crate) mod log;
#[cfg(feature = "metrics")]
mod metrics;
mod span;
