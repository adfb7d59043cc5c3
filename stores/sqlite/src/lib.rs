//! Idempotency records in a SQLite file.
//!
//! For a service on one host, with one process or several: the file may be one of its own or the one that holds your
//! business tables. The store adds the tables `idempotency_records` and `idempotency_schema` and touches nothing else,
//! `PRAGMA user_version` included.
//!
//! ```
//! use std::time::Duration;
//! use idempotency_core::{
//!     Address, Bid, Claim, Door, Fingerprint, Holder, Keep, Key, Media, OnLapse, Operation, Outcome, Part, Scope, Store,
//! };
//! use idempotency_store_sqlite::SqliteStore;
//!
//! # async fn example(directory: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! let store = SqliteStore::open(directory.join("shop.db")).await?;
//!
//! let address = Address::new(Door::Http, &Scope::principal("alice"), &Key::new("order-1")?);
//! let asked = Fingerprint::builder().part(Part::Body, b"one book").build();
//! let bid = Bid {
//!     holder: Holder::draw(),
//!     lease: Duration::from_secs(30),
//!     retention: Duration::from_secs(86_400),
//!     on_lapse: OnLapse::TakeOver,
//! };
//! let keep = Keep { replay: Duration::from_secs(86_400), then_reject: Duration::ZERO };
//!
//! match store.claim(&Operation::new(address, asked), &bid).await? {
//!     Claim::Granted(lease) => {
//!         let answer = Outcome::whole(Media(1), "shipped");
//!         let _ = store.complete(&lease, &answer, keep).await?;
//!     }
//!     Claim::Completed(outcome) => println!("done before: {:?}", outcome.bytes),
//!     verdict => println!("not now: {verdict:?}"),
//! }
//! # Ok(())
//! # }
//! # let directory = tempfile::tempdir().unwrap();
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(example(directory.path())).unwrap();
//! ```
//!
//! # How a transition is decided
//! Each is one `BEGIN IMMEDIATE` transaction. The write lock is awaited first, then the database's clock is read, once,
//! so that every statement of the transition sees the same now; then one statement, whose condition is a row of the
//! law, decides. Where it changes nothing, what stands there is read in the same transaction and [`machine`] says why.
//! Nothing is ever read first and written later.
//!
//! [`machine`]: idempotency_core::machine
//!
//! # Waiting
//! SQLite has one writer. The calls of one process take turns in the order they came, on one connection; those of
//! several processes contend for the file's lock. SQLite's own busy handler would sleep up to 100 ms between two looks
//! and keep the connection waiting for a caller that has gone, so the store asks again itself, every millisecond. A
//! call that cannot begin within its [patience](SqliteStoreBuilder::patience), 1.5 s unless set, fails as
//! [`Unavailable`](idempotency_core::StoreErrorKind::Unavailable) with nothing applied: that is below the 2 s an engine
//! gives a store call, so the engine hears a certain answer instead of cutting the call short.
//!
//! A call that is dropped halfway leaves nothing behind: its transaction rolls back, unless the commit had begun.
//!
//! # Ledgers
//! [`SqliteStore::ledger`] makes two tables more, `idempotency_ledgers` and `idempotency_ledger_sheets`, and keeps the
//! ledgers of agents in them.
//!
//! # Durability
//! The file is put in WAL mode, which lasts, and every commit is synced (`synchronous = FULL`): a grant or an outcome
//! that was answered survives a power cut. WAL needs a local file system; on one that cannot do it, opening fails.
//!
//! # Limits
//! - Times have the millisecond steps of SQLite's clock.
//! - An outcome has at most [16 MiB](SqliteStore::MAX_OUTCOME_BYTES).
//! - A record that cannot be read is neither granted, changed, answered nor removed: every call that meets it fails as
//!   [`Corrupt`](idempotency_core::StoreErrorKind::Corrupt) with a [`CorruptRecord`](idempotency_core::CorruptRecord) as its source. So does a listing,
//!   which would otherwise hide it; the error's address says where to go on.
//! - Nothing is removed but by [`purge`](idempotency_core::Store::purge): call it from time to time.

mod builder;
mod error;
mod ledger;
mod row;
mod schema;
mod store;
mod writer;

pub use builder::SqliteStoreBuilder;
pub use error::{OpenError, SchemaFound};
pub use ledger::SqliteLedger;
pub use store::SqliteStore;
