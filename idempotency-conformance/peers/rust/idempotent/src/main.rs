//! idempotent before the pages, with its memory store.

use std::{io, time::Duration};

use conformance_peer_pages::{CALLER, inside, serve};
use idempotent::{memory::MemoryStore, middleware::IdempotencyLayer};

#[tokio::main]
async fn main() -> io::Result<()> {
    let store = MemoryStore::builder().try_build().map_err(io::Error::other)?;
    let layer =
        IdempotencyLayer::new(store).require_key(true).completed_ttl(Duration::from_secs(2)).scope(|parts| {
            let caller = parts.headers.get(CALLER).and_then(|caller| caller.to_str().ok());
            Some(caller.unwrap_or("nobody in particular").to_owned())
        });
    serve(
        inside().layer(layer),
        &[
            "require_key(true) (default false), since the contract requires a key",
            "completed_ttl of 2 s (default 24 h), so that expiry can be seen",
            "scope by the header X-Caller (default: one scope for all), so that callers can be told apart",
        ],
    )
    .await
}
