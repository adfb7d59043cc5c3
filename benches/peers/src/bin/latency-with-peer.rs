//! Time: our layer, the least of layers and the peer in one run, against one baseline.

use idempotency_bench_peers::idempotent;
use idempotency_benches::{
    Candidate,
    latency::{Effort, compare},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let candidates = vec![Candidate::floor(), Candidate::memory(), idempotent()];
    Ok(tokio::spawn(compare(candidates, &[256, 16 << 10], Effort::QUICK)).await?)
}
