//! The peer as a server to put under load.

use idempotency_bench_peers::idempotent;
use idempotency_benches::serve::serve;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    serve(idempotent()).await
}
