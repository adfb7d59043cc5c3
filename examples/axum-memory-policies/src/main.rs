//! `cargo run -p axum-memory-policies` serves three routes under three policies.

use std::{error::Error, net::Ipv4Addr, time::Duration};

use axum_memory_policies::{
    app::{Books, app},
    policies::Layers,
};
use idempotency_store_memory::MemoryStore;
use tokio::{net::TcpListener, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let layers = Layers::on(MemoryStore::new())?;
    let app = app(Books::default(), &layers)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 3000)).await?;
    println!("http://{0}/.well-known/idempotency\nhttp://{0}/openapi.json", listener.local_addr()?);
    axum::serve(listener, app).with_graceful_shutdown(asked_to_stop()).await?;

    // One engine, one drain: a run whose client hung up may still be at work.
    let drained = layers.comments.drain(Duration::from_secs(30)).await;
    println!("stopped, {} runs unfinished", drained.left);
    Ok(())
}

async fn asked_to_stop() {
    signal::ctrl_c().await.expect("the process can listen for ctrl-c");
}
