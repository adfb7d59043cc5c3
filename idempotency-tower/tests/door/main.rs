//! The door as its callers see it: requests in, responses out, over a store that fails on command.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answers;
mod bodies;
mod bounds;
mod callers;
mod endings;
mod fingerprints;
mod nested;
mod observability;
mod outages;
mod policies;
mod protocol;
mod setup;
mod streams;
mod waiting;
