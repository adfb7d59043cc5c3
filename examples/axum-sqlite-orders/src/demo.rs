//! The story: six things that go wrong, over real sockets, on servers that really die. Every count is checked.

mod client;
mod report;
mod server;
mod stage;
mod steps;
mod table;

use std::{process::ExitCode, time::Duration};

use report::Report;
pub(crate) use stage::Stage;

use crate::Failure;

/// Far longer than the story takes: a step that hangs is a broken promise too.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tells the story. It succeeds if every promise was kept.
pub(crate) async fn tell() -> Result<ExitCode, Failure> {
    println!("Six things that go wrong, and how many orders each of them really writes.");
    println!("Each step has a server process and a SQLite file of its own. Its lease is {:?}.", stage::LEASE);
    let files = tempfile::tempdir()?;
    let mut report = Report::default();
    tokio::time::timeout(PATIENCE, steps::all(files.path(), &mut report)).await??;
    if report.broken() > 0 {
        println!("\n{} promises were broken.", report.broken());
        return Ok(ExitCode::FAILURE);
    }
    println!("\nEvery promise was kept.");
    Ok(ExitCode::SUCCESS)
}
