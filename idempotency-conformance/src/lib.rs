#![doc = include_str!("../README.md")]

mod suite;
pub mod vector;

pub use suite::{Suite, SuiteError};
pub use vector::{Capability, Kind, Tier};
