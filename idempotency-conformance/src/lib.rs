#![doc = include_str!("../README.md")]

mod report;
mod run;
mod suite;
pub mod vector;
mod wire;

pub use report::{Graded, Outcome, Report, Totals};
pub use run::{Options, Progress, Spelling, grade};
pub use suite::{Suite, SuiteError};
pub use vector::{Capability, Kind, Tier};
pub use wire::{Target, TargetError};
