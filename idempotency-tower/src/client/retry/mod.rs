//! Tries that keep their key, and end when trying again cannot help.

mod after;
mod body;
mod decision;
mod future;
mod layer;
mod service;
mod terms;

pub use body::PeekedBody;
pub use decision::Decision;
pub use future::RetryFuture;
pub use layer::RetryLayer;
pub use service::RetryService;
pub use terms::RetryTerms;
