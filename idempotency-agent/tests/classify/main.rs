//! What clients' errors say about whether a call did something, with servers that refuse, reset, answer, and do not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod listener;
mod reqwest;
mod tonic;
