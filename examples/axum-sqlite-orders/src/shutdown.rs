//! When to stop.

use tokio::signal;

/// Waits for ctrl-c or, on Unix, for SIGTERM.
pub(crate) async fn asked_to_stop() {
    let interrupted = async { signal::ctrl_c().await.expect("the process can listen for ctrl-c") };

    #[cfg(unix)]
    let terminated = async {
        let mut sigterm = signal::unix::signal(signal::unix::SignalKind::terminate())
            .expect("the process can listen for SIGTERM");
        sigterm.recv().await;
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();

    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}
