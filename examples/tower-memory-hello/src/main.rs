//! Serves the guest book on port 3000:
//!
//! ```sh
//! curl -i http://127.0.0.1:3000/guests -H 'Idempotency-Key: ada-1' -d Ada
//! curl -i http://127.0.0.1:3000/guests -H 'Idempotency-Key: ada-1' -d Ada   # Idempotency-Replayed: true
//! ```

use std::error::Error;

use tokio::{net::TcpListener, signal};
use tower_memory_hello::{book::GuestBook, server::serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("the guest book lies at http://{}/guests", listener.local_addr()?);
    let left = serve(&GuestBook::open()?, listener, asked_to_stop()).await?;
    println!("closed; {left} still signing");
    Ok(())
}

/// Waits for ctrl-c or, on Unix, for SIGTERM.
async fn asked_to_stop() {
    #[cfg(unix)]
    let terminated = async {
        let mut sigterm = signal::unix::signal(signal::unix::SignalKind::terminate())
            .expect("the process can listen for SIGTERM");
        sigterm.recv().await;
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();

    tokio::select! {
        interrupted = signal::ctrl_c() => interrupted.expect("the process can listen for ctrl-c"),
        () = terminated => {}
    }
}
