//! One candidate as a server of its own.

use std::{io, net::Ipv4Addr};

use tokio::net::TcpListener;

use crate::Candidate;

/// Serves `candidate` on a free port of this host, which is printed first; returns only when that fails.
///
/// # Errors
/// The port cannot be had, or the listener broke.
pub async fn serve(candidate: Candidate) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    let (router, _) = candidate.build();
    axum::serve(listener, router).await
}
