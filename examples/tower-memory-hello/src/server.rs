//! Takes connections, and ends in order: no new ones, the open exchanges to their end, then the runs without a client.

use std::{io, time::Duration};

use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, time::timeout};

use crate::book::GuestBook;

/// How long the end waits for open connections, and then for live runs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves the book until `asked_to_stop`, and says how many runs were still live at the end.
///
/// # Errors
/// The listener no longer gives connections.
pub async fn serve(
    book: &GuestBook,
    listener: TcpListener,
    asked_to_stop: impl Future<Output = ()>,
) -> io::Result<usize> {
    let connections = GracefulShutdown::new();
    let mut asked_to_stop = std::pin::pin!(asked_to_stop);
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted?.0,
            () = &mut asked_to_stop => break,
        };
        let service = TowerToHyperService::new(book.service());
        let connection = auto::Builder::new(TokioExecutor::new())
            .serve_connection_with_upgrades(TokioIo::new(stream), service)
            .into_owned();
        let connection = connections.watch(connection);
        // How a connection ends is its client's concern: its run goes on either way.
        tokio::spawn(async { drop(connection.await) });
    }
    drop(listener);
    // Those that are not over by then are cut off, and their runs drained.
    let _ = timeout(PATIENCE, connections.shutdown()).await;
    Ok(book.close(PATIENCE).await.left)
}
