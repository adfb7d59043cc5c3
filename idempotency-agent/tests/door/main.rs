//! The agent door on a store in memory: what asking for an effect comes to, and what stands in the ledger then.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod advice;
mod cancelling;
mod effects;
mod faults;

mod jobs;
mod original;
mod reconciling;
mod runs;
mod scene;
mod tools;
