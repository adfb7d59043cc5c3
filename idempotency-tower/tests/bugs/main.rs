//! Defects that idempotency layers were reported with in public, each as a test that this one does not have it.
//!
//! A test is called `bug_NNN_what`, after its number in `tests/cases/bugs.txt`. There stand the others too: those that a
//! test elsewhere covers, and those that belong to a door or a store that is not here. `scripts/coverage` sees that none
//! is missing.
//!
//! Every case that concerns stores runs on each of them, on a clock that the test moves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bench;
mod callers;
mod claims;
mod keys;
mod layers;
mod lives;
mod payloads;
mod replays;
#[allow(dead_code, reason = "the tests of the door use the rest")]
#[path = "../door/setup.rs"]
mod setup;
