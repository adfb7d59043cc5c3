//! The laws of an idempotency store, as a suite any implementation of [`Store`](idempotency_core::Store) can be graded with.
//!
//! A store is small to write and easy to get wrong: a fence that restarts, a boundary off by one, a purge that
//! removes a claim somebody holds. Each law here is one test with a name that says what it wants; the last ones
//! replay long random histories and compare every verdict and every record with
//! [`machine`](idempotency_core::machine), the exact form of the law.
//!
//! # Grade your store
//!
//! Say how a fresh store is opened, and name the suite in a test file. Every law becomes a `#[test]` of its own:
//!
//! ```
//! use std::sync::Arc;
//!
//! use idempotency_core::clock::{ManualClock, Timestamp};
//! use idempotency_store_contract::{Bench, Candidate, Time, store_contract};
//! use idempotency_store_memory::MemoryStore; // or yours
//!
//! struct Mine;
//!
//! impl Candidate for Mine {
//!     type Store = MemoryStore;
//!
//!     async fn open(&self) -> Bench<MemoryStore> {
//!         let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
//!         let store = MemoryStore::builder().clock(clock.clone()).build().expect("the default bounds hold");
//!         Bench { store: Arc::new(store), time: Time::Manual(clock) }
//!     }
//! }
//!
//! store_contract!(Mine);
//! # fn main() {
//! #     for grade in idempotency_store_contract::grade_laws(&Mine, |law| law.starts_with("first_")) {
//! #         grade.result.unwrap();
//! #     }
//! # }
//! ```
//!
//! A backend that has a clock of its own answers [`Time::Real`]: steps of time are then slept, and leases are
//! 300 ms long. [`grade`] runs the suite without a test harness.
//!
//! A store whose server is on a network is held to more by [`wire`]: the line between the two is broken in every
//! place, and what the store says of a call that failed has to be true.
//!
//! A store that several processes share is raced by as many: [`processes`].
//!
//! [`ledger`] grades stores for ledgers of agents, which is another port.
//!
//! # Bounds
//!
//! The history that is compared with the machine takes 100,000 steps, the one of many holders at once a tenth of that.
//! [`Candidate::steps`] lowers both for a slow backend, and the
//! environment variable `STORE_CONTRACT_STEPS` for one run. `STORE_CONTRACT_SEED` replays the seed a failure names.

pub mod faults;
pub mod ledger;
pub mod processes;
pub mod wire;

mod candidate;
mod history;
mod laws;
mod scene;
mod suite;
mod violation;

pub use candidate::{Bench, Candidate, Expiry, Time};
pub use suite::{Grade, Law, grade, grade_laws, prove};
pub use violation::Violation;
