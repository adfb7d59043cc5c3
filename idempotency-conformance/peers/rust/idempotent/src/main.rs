//! idempotent before the pages, with its memory store.

use std::{io, sync::Arc, time::Duration};

use conformance_peer_pages::{CALLER, inside, serve};
use idempotent::{memory::MemoryStore, middleware::IdempotencyLayer};

#[tokio::main]
async fn main() -> io::Result<()> {
    let store = MemoryStore::builder().try_build().map_err(io::Error::other)?;
    let layer = IdempotencyLayer::new(store)
        .require_key(true)
        .completed_ttl(Duration::from_secs(2))
        .processing_ttl(Duration::from_secs(1))
        .scope(|parts| Some(parts.headers.get(CALLER)?.to_str().ok()?.to_owned()));
    serve(
        Arc::default(),
        inside().layer(layer),
        &[
            "require_key(true) (default false), since the contract requires a key",
            "completed_ttl of 2 s (default 24 h), so that expiry can be seen",
            "processing_ttl of 1 s (default 60 s), so that a lapsed claim can be seen; it is renewed, as is its default",
            "scope by the header X-Caller (default: one scope for all), so that callers can be told apart; keys then have \
             222 bytes at most instead of 255",
        ],
    )
    .await
}
