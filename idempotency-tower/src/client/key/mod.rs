//! One key for every logical request.

mod future;
mod layer;
mod rules;
mod service;

pub use future::KeyFuture;
pub use layer::KeyLayer;
pub(super) use rules::Keyed;
pub use service::KeyService;
