//! Time: our layer on each store against a bare router.

use idempotency_benches::{
    Candidate,
    latency::{Effort, compare},
};
use idempotency_store_sqlite::SqliteStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let sqlite = SqliteStore::open(folder.path().join("records.sqlite")).await?;
    let measured = tokio::spawn(async move {
        let bodies = [256, 16 << 10];
        compare(vec![Candidate::memory()], &bodies, Effort::QUICK).await;
        println!();
        compare(vec![Candidate::on("sqlite", sqlite)], &bodies, Effort::SLOW).await;
    });
    Ok(measured.await?)
}
