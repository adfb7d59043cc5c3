//! Idempotency records in the memory of one process.
//!
//! For tests, demos, and services that run as one process and may forget their records when it ends. Copies of one
//! operation that reach two processes are not recognised: use a database there.
//!
//! ```
//! use idempotency_core::{Bid, Claim, Keep, Store};
//! # use std::time::Duration;
//! # use idempotency_core::{Address, Fingerprint, Holder, Media, OnLapse, Operation, Outcome};
//! use idempotency_store_memory::MemoryStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::builder().max_records(10_000).max_bytes(64 << 20).build()?;
//! # let op = Operation::new(Address::from_bytes([7; 32]), Fingerprint::builder().build());
//! # let day = Duration::from_secs(24 * 3600);
//! # let bid = |lease| Bid { holder: Holder::draw(), lease, retention: day, on_lapse: OnLapse::TakeOver };
//! # let (bid, retry) = (bid(day), bid(day));
//! # let keep = Keep { replay: day, then_reject: day };
//! # let outcome = Outcome::whole(Media(1), "paid");
//!
//! let Claim::Granted(lease) = store.claim(&op, &bid).await? else { panic!("nobody else claims it") };
//! let _ = store.complete(&lease, &outcome, keep).await?;
//! assert_eq!(store.claim(&op, &retry).await?, Claim::Completed(outcome));
//! # Ok(())
//! # }
//! ```
//!
//! # Bounds
//!
//! A store holds at most [`max_records`](Builder::max_records) records and [`max_bytes`](Builder::max_bytes) bytes:
//! the outcomes, and [`RECORD_BYTES`] for each record, a short outcome's room among them. An outcome may take a sixteenth of the bytes, so that one
//! route with large answers cannot push out the records of all others.
//!
//! When a bound is reached, the store first lets go of what a purge would remove, and of released records, whose keys
//! are free already. With [`evict_completed`](Builder::evict_completed) the completed record claimed longest ago goes
//! next: its key is then new, and a late copy runs again. A record in flight or in doubt never goes. If nothing can
//! go, a new claim or a completion fails with [`StoreErrorKind::Full`] and [`Fate::NotApplied`]; its run still holds
//! the lease and may complete with something shorter. Each call looks at a bounded number of records, so a nearly full
//! store may refuse a few calls before it comes to the one record that can go; [`purge`] finds all of them at once.
//!
//! # Time
//!
//! The store reads a clock of its own under its lock: it begins with the host's and goes on steadily, so that setting
//! the host's clock makes no lease lapse early or late.
//!
//! # Ledgers
//!
//! [`MemoryLedger`] keeps the ledgers of agents, within bounds of its own: a full one refuses new scopes, and drops nothing
//! that is pending, in doubt or remembered.
//!
//! [`purge`]: idempotency_core::Store::purge
//! [`StoreErrorKind::Full`]: idempotency_core::StoreErrorKind::Full
//! [`Fate::NotApplied`]: idempotency_core::Fate::NotApplied

mod budget;
mod builder;
mod ledger;
mod shard;
mod store;

pub use budget::RECORD_BYTES;
pub use builder::{BoundsError, Builder};
pub use ledger::MemoryLedger;
pub use store::MemoryStore;
