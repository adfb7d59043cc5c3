//! The bounds of a store, checked before it opens.

use std::{num::NonZeroUsize, sync::Arc};

use idempotency_core::clock::{Clock, SteadyClock};

use crate::{MemoryStore, RECORD_BYTES};

/// Sets the bounds of a [`MemoryStore`].
#[derive(Clone)]
pub struct Builder {
    pub(crate) max_records: usize,
    pub(crate) max_bytes: usize,
    pub(crate) shards: usize,
    pub(crate) completed: Completed,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What becomes of completed records that still answer when the store is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completed {
    Stays,
    IsEvicted,
}

impl Default for Builder {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            max_records: 100_000,
            max_bytes: 256 << 20,
            shards: 4 * cores,
            completed: Completed::Stays,
            clock: Arc::new(SteadyClock::new()),
        }
    }
}

impl Builder {
    /// How many records the store holds. The default is 100,000: a day of one new key a second, with room.
    #[must_use]
    pub fn max_records(self, max_records: usize) -> Self {
        Self { max_records, ..self }
    }

    /// How many bytes the records take, outcomes included. The default is 256 MiB.
    #[must_use]
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Into how many parts, each with a lock of its own, the records are divided; rounded up to a power of two, at
    /// most 1024. The default is four for each core, so that two calls rarely meet at one lock.
    #[must_use]
    pub fn shards(self, shards: usize) -> Self {
        Self { shards, ..self }
    }

    /// Lets a full store drop completed records that still answer, the one claimed longest ago first. A copy that
    /// comes after that runs again, so the default is to refuse new claims instead.
    #[must_use]
    pub fn evict_completed(self) -> Self {
        Self { completed: Completed::IsEvicted, ..self }
    }

    /// Where the store reads the time. The default begins with the host's clock and
    /// is not moved when that is set.
    #[must_use]
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Opens an empty store.
    ///
    /// # Errors
    /// [`BoundsError`] when the store could not hold one record.
    pub fn build(self) -> Result<MemoryStore, BoundsError> {
        if self.max_records == 0 {
            return Err(BoundsError::NoRecords);
        }
        if self.max_bytes < RECORD_BYTES {
            return Err(BoundsError::TooFewBytes);
        }
        if !(1..=1024).contains(&self.shards) {
            return Err(BoundsError::Shards);
        }
        Ok(MemoryStore::open(self))
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("max_records", &self.max_records)
            .field("max_bytes", &self.max_bytes)
            .field("shards", &self.shards)
            .field("completed", &self.completed)
            .finish_non_exhaustive()
    }
}

/// Bounds no store can keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BoundsError {
    /// A store holds at least one record.
    #[error("max_records is 0: the store could hold nothing")]
    NoRecords,
    /// A store has room for at least one record: [`RECORD_BYTES`].
    #[error("max_bytes is less than the {RECORD_BYTES} bytes one record takes")]
    TooFewBytes,
    /// A store is divided into 1 to 1024 parts.
    #[error("shards is not between 1 and 1024")]
    Shards,
}
