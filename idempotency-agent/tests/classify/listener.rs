//! A server that does one thing with every connection.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

/// What becomes of a connection once something was read from it.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// It is cut.
    Cut,
    /// Nothing is answered, for ever.
    Silence,
    /// This is answered, and the connection is cut.
    Answer(String),
}

/// Such a server, until it is dropped.
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    task: AbortHandle,
}

impl Listener {
    pub(crate) async fn that_does(deed: Deed) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(connection, deed.clone()));
            }
        });
        Self { address, task: task.abort_handle() }
    }

    /// An address at which nobody listens.
    pub(crate) async fn nobody() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut connection: TcpStream, deed: Deed) {
    let mut read = [0; 4_096];
    if connection.read(&mut read).await.is_err() {
        return;
    }
    match deed {
        Deed::Cut => {}
        Deed::Silence => std::future::pending().await,
        Deed::Answer(text) => drop(connection.write_all(text.as_bytes()).await),
    }
}
