//! Removing what is over, a batch at a time.

use idempotency_core::StoreError;
use sqlx::Row;
use tokio::time::{Instant, sleep};

use crate::{MySqlStore, statements::Value};

/// How many records one statement removes: few enough that a claim hardly waits for it.
const BATCH: u32 = 100;

/// What one batch of a purge came to.
struct Purged {
    found: u32,
    removed: u32,
}

impl MySqlStore {
    pub(crate) async fn purge_in_batches(&self, at_most: u32) -> Result<u32, StoreError> {
        let mut removed = 0;
        // What another purge removed first, or this one before its answer was lost, is not the end of what is due.
        let mut was_in_vain = false;
        while removed < at_most {
            let batch = BATCH.min(at_most - removed);
            let begun = Instant::now();
            match self.purge_batch(batch).await {
                Ok(Purged { found, removed: count }) => {
                    removed += count;
                    let is_in_vain = count == 0;
                    if found < batch || (is_in_vain && was_in_vain) {
                        break;
                    }
                    was_in_vain = is_in_vain;
                    // Rests as long as it worked: the server's other half is for claims.
                    sleep(begun.elapsed()).await;
                }
                Err(error) if removed == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(removed)
    }

    /// Removes what is due, at most a batch.
    async fn purge_batch(&self, at_most: u32) -> Result<Purged, StoreError> {
        let deadline = self.lines.deadline();
        let due = || self.statements.due.with([Value::Integer(at_most.into())]);
        let due = self.lines.read(deadline, due).await?;
        let addresses: Vec<&[u8]> = due.rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
        let found = u32::try_from(addresses.len()).unwrap_or(at_most);
        if found == 0 {
            return Ok(Purged { found, removed: 0 });
        }
        let done = self.lines.ask(deadline, || self.statements.remove.listing(&addresses)).await?;
        Ok(Purged { found, removed: u32::try_from(done.matched).unwrap_or(at_most) })
    }
}
