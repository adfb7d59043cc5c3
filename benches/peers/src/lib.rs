//! The peers that are measured beside our layer.

use http::StatusCode;
use idempotency_benches::Candidate;
use idempotent::{memory::MemoryStore, middleware::IdempotencyLayer};

/// `idempotent` 2.0.0 with its defaults, on a memory store of its own.
pub fn idempotent() -> Candidate {
    Candidate::new("idempotent", |router| {
        let store = MemoryStore::builder().try_build().expect("a runtime is there");
        router.layer(IdempotencyLayer::new(store))
    })
    .with_mismatch(StatusCode::BAD_REQUEST)
}
