//! A server to put under load: `serve bare` or `serve memory`.

use idempotency_benches::{Candidate, serve::serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let candidate = match std::env::args().nth(1).as_deref() {
        Some("bare") => Candidate::bare(),
        Some("memory") => Candidate::memory(),
        _ => return Err("serve bare | serve memory".into()),
    };
    Ok(serve(candidate).await?)
}
