//! The server the demo plays with: the same API in a process of its own, with a short lease and, if asked, a pause
//! around the handler in which it can be killed.
//!
//! It prints its port, and `paused` whenever a run pauses. Each line it reads lets one run go on; at the end of its
//! input it stops.

use std::{net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use axum_sqlite_orders::{app, orders::Orders};
use idempotency_axum::IdempotencyLayer;
use idempotency_store_sqlite::SqliteStore;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    sync::Semaphore,
};

use crate::Failure;

/// So short that the demo need not wait long for a dead server's lease to lapse. The default is 30 s.
pub(super) const LEASE: Duration = Duration::from_secs(1);

/// What a paused run prints.
pub(super) const PAUSED: &str = "paused";

#[derive(clap::Args)]
pub(crate) struct Stage {
    #[arg(long)]
    pub(super) db: PathBuf,
    #[arg(long)]
    pub(super) pause: Option<Pause>,
}

/// Where every run waits to be let on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Pause {
    /// The key is claimed, the order is not written.
    BeforeOrder,
    /// The order is written, the key is not completed.
    AfterOrder,
}

impl Stage {
    pub(crate) async fn serve(self) -> Result<(), Failure> {
        let store = SqliteStore::open(&self.db).await?;
        let orders = Orders::open(&self.db).await?;
        let idempotency = IdempotencyLayer::with_policy(store, app::policy().lease(LEASE).build()?);
        let go_on = Arc::new(Semaphore::new(0));
        let pausing = middleware::from_fn_with_state((self.pause, Arc::clone(&go_on)), pausing);
        let app = app::routes(orders).route_layer(pausing).route_layer(idempotency);

        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{}", listener.local_addr()?.port());
        axum::serve(listener, app).with_graceful_shutdown(obey(go_on)).await?;
        Ok(())
    }
}

/// Stands between the idempotency layer and the handler.
async fn pausing(
    State((pause, go_on)): State<(Option<Pause>, Arc<Semaphore>)>,
    request: Request,
    next: Next,
) -> Response {
    if pause == Some(Pause::BeforeOrder) {
        wait(&go_on).await;
    }
    let response = next.run(request).await;
    if pause == Some(Pause::AfterOrder) {
        wait(&go_on).await;
    }
    response
}

async fn wait(go_on: &Semaphore) {
    println!("{PAUSED}");
    if let Ok(word) = go_on.acquire().await {
        word.forget();
    }
}

/// Lets one run on for each line, and all of them at the end of the input.
async fn obey(go_on: Arc<Semaphore>) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(_)) = lines.next_line().await {
        go_on.add_permits(1);
    }
    go_on.close();
}
