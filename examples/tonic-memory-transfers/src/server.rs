//! Serves, and ends in order: no new calls, open ones to their end, then the runs whose clients left.

use std::time::Duration;

use idempotency_store_memory::MemoryStore;
use idempotency_tonic::{GrpcIdempotencyLayer, OnLapse, OnServerError, Policy};
use tonic::transport::{Server, server::TcpIncoming};

use crate::{bank::Bank, rpc::TransfersServer};

/// Serves `bank` until `asked_to_stop`, and says how many transfers were left unfinished.
///
/// # Errors
/// The server cannot serve.
pub async fn serve(
    bank: Bank,
    incoming: TcpIncoming,
    asked_to_stop: impl Future<Output = ()>,
) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
    // Money: what failed or lapsed does not run again without somebody's word.
    let policy =
        Policy::builder().required().on_server_error(OnServerError::Hold).on_lapse(OnLapse::Hold).build()?;
    let idempotency = GrpcIdempotencyLayer::with_policy(MemoryStore::new(), policy);
    Server::builder()
        .layer(idempotency.clone())
        .add_service(TransfersServer::new(bank))
        .serve_with_incoming_shutdown(incoming, asked_to_stop)
        .await?;
    Ok(idempotency.drain(Duration::from_secs(30)).await.left)
}
