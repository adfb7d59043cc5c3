//! The port for operators: see records, and resolve those in doubt.

use std::future::Future;

use crate::{Address, Fence, Record, Resolution, Settled, StoreError};

/// Which records a listing shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Select {
    /// All of them.
    #[default]
    All,
    /// Those in doubt, the ones lapsed under [`OnLapse::Hold`](crate::OnLapse::Hold) among them.
    InDoubt,
}

/// A store whose records an operator can see and resolve.
pub trait Inspect: Send + Sync + 'static {
    /// The record at `address`, if there is one.
    fn find(&self, address: &Address) -> impl Future<Output = Result<Option<Record>, StoreError>> + Send;

    /// At most `at_most` records in the order of their addresses, beginning after `after`.
    fn list(
        &self,
        select: Select,
        after: Option<&Address>,
        at_most: u32,
    ) -> impl Future<Output = Result<Vec<(Address, Record)>, StoreError>> + Send;

    /// Says how the operation in doubt under `fence` ended: rows 16 and 17 of the law.
    fn resolve(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> impl Future<Output = Result<Settled, StoreError>> + Send;
}
