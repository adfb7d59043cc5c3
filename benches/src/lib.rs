#![doc = include_str!("../README.md")]
//!
//! # How it is measured
//!
//! Every [`Candidate`] wraps the same axum router: `bare` in a layer that does nothing, `floor` in the least that could be
//! called a layer, the others in what is measured.
//! The same requests go through each of them, in turn and in one process, so that whatever else the machine does falls
//! on all alike; what counts are differences and ratios, not the numbers themselves.
//!
//! - [`latency`] takes time: rounds of small batches, one of each candidate in turn, medians of all;
//! - [`allocations`] counts what the allocator was asked for, in a binary of its own, since counting costs time;
//! - [`load`] drives servers over sockets and compares their throughput;
//! - [`frameworks`] takes time behind actix and tonic, each beside its own bare service;
//! - [`stores`] compares the networked stores with the least that their servers could be asked for;
//! - [`agent`] compares effects in a scope of many with those in a scope of few.

pub mod agent;
pub mod allocations;
pub mod app;
pub mod candidate;
mod floor;
pub mod frameworks;
mod key;
pub mod latency;
pub mod load;
pub mod route;
pub mod serve;
pub mod statistics;
pub mod stores;
pub mod table;

pub use candidate::Candidate;
pub use route::Route;
