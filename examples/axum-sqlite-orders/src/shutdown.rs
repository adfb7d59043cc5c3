//! When to stop.

use std::io;

use tokio::signal;

/// Listens for ctrl-c and, on Unix, for SIGTERM from now on; the future ends with the first of them.
pub(crate) fn listen() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    #[cfg(unix)]
    let terminated = {
        let mut sigterm = signal::unix::signal(signal::unix::SignalKind::terminate())?;
        async move {
            sigterm.recv().await;
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();

    Ok(async {
        tokio::select! {
            interrupted = signal::ctrl_c() => interrupted.expect("the process can listen for ctrl-c"),
            () = terminated => {}
        }
    })
}
