//! Allocations: our layer and the peer, against one baseline.

use std::alloc::System;

use idempotency_bench_peers::idempotent;
use idempotency_benches::{Candidate, allocations::count};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let candidates = vec![Candidate::memory(), idempotent()];
    Ok(tokio::spawn(count(ALLOCATOR, candidates, &[256, 16 << 10])).await?)
}
