//! `cargo run -p axum-sqlite-orders` serves the orders API; `-- demo` tells what it is good for.

mod demo;
mod shutdown;

use std::{
    error::Error,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use axum_sqlite_orders::{
    app::{app, policy},
    orders::Orders,
};
use clap::{Parser, Subcommand};
use idempotency_axum::{IdempotencyLayer, Store};
use idempotency_store_sqlite::SqliteStore;
use tokio::net::TcpListener;

type Failure = Box<dyn Error + Send + Sync>;

/// An orders API whose retries are safe.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The port to listen on
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// The SQLite file for the orders and the idempotency records
    #[arg(long, default_value = "orders.db")]
    db: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Shows what happens when clients repeat themselves and servers die
    Demo,
    /// The server the demo plays with
    #[command(hide = true)]
    Stage(demo::Stage),
}

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let arguments = Arguments::parse();
    match arguments.command {
        None => serve(arguments.port, &arguments.db).await?,
        Some(Command::Demo) => return demo::tell().await,
        Some(Command::Stage(stage)) => stage.serve().await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve(port: u16, db: &Path) -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let store = SqliteStore::open(db).await?;
    let orders = Orders::open(db).await?;
    let idempotency = IdempotencyLayer::with_policy(store.clone(), policy().build()?);
    tokio::spawn(purge(store));

    let stop = shutdown::listen()?; // before anybody can know that the server is there
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    greet(listener.local_addr()?, db);
    axum::serve(listener, app(orders, idempotency.clone())).with_graceful_shutdown(stop).await?;

    // The connections are closed. A run whose client hung up may still be at work: let it end.
    let drained = idempotency.drain(Duration::from_secs(30)).await;
    println!("stopped, {} runs unfinished", drained.left);
    Ok(())
}

/// Removes records that answer no more, once an hour.
async fn purge(store: SqliteStore) {
    let mut hourly = tokio::time::interval(Duration::from_secs(60 * 60));
    loop {
        hourly.tick().await;
        if let Err(error) = store.purge(10_000).await {
            tracing::warn!(%error, "old idempotency records stay for another hour");
        }
    }
}

fn greet(address: SocketAddr, db: &Path) {
    let order = |quantity: u32| {
        format!(
            "curl -i http://{address}/orders -H 'Authorization: Bearer alice' -H 'Idempotency-Key: order-1' \
             --json '{{\"item\":\"tea\",\"quantity\":{quantity}}}'"
        )
    };
    println!("listening on http://{address}, orders and keys are kept in {}\n", db.display());
    println!("an order:\n  {}", order(2));
    println!("the same again, answered without a second order:\n  {}", order(2));
    println!("another order under the same key, refused:\n  {}\n", order(3));
}
