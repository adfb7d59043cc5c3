//! Allocations: our layer on each store against a bare router.

use std::alloc::System;

use idempotency_benches::{Candidate, allocations::count};
use idempotency_store_sqlite::SqliteStore;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let sqlite = SqliteStore::open(folder.path().join("records.sqlite")).await?;
    let candidates = vec![Candidate::memory(), Candidate::on("sqlite", sqlite)];
    Ok(tokio::spawn(count(ALLOCATOR, candidates, &[256, 16 << 10])).await?)
}
