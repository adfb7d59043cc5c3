//! Takes payments on port 3000:
//!
//! ```sh
//! pay() { curl -i http://127.0.0.1:3000/payments -H 'Authorization: Bearer ada-secret' -H "Idempotency-Key: $1" \
//!     -H 'Content-Type: application/json' -d "{\"cents\": $2}"; }
//! pay tea-1 450
//! pay tea-1 450   # Idempotency-Replayed: true
//! pay tea-1 950   # 422
//! ```

use std::{error::Error, path::Path, time::Duration};

use actix_sqlite_payments::{
    app::{guard, routes},
    payments::Payments,
};
use actix_web::{App, HttpServer, rt};
use idempotency_store_sqlite::SqliteStore;

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = Path::new("payments.db");
    let payments = Payments::open(file).await?;
    let guard = guard(SqliteStore::open(file).await?)?; // once, not in each worker
    let guarded = guard.clone();
    let app = move || App::new().configure(routes(payments.clone(), guarded.clone()));
    let server = HttpServer::new(app).disable_signals().bind(("127.0.0.1", 3000))?.run();
    let handle = server.handle();
    rt::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            handle.pause().await; // no more connections
            let drained = guard.drain(Duration::from_secs(30)).await; // while the workers live
            println!("{} payments unfinished", drained.left);
            handle.stop(true).await;
        }
    });
    Ok(server.await?)
}
