//! Opens a bank on port 50051, moves money twice under one key, and serves on until ctrl-c.

use std::error::Error;

use idempotency_tonic::{KeySender, OperationKey};
use tokio::{net::TcpListener, signal};
use tonic::{
    Request,
    service::interceptor::InterceptedService,
    transport::{Endpoint, server::TcpIncoming},
};
use tonic_memory_transfers::{
    bank::Bank,
    rpc::{Transfer, TransfersClient},
    serve,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let bank = Bank::with(&[("ada", 10_000), ("bob", 0)]);
    let listener = TcpListener::bind("127.0.0.1:50051").await?;
    let serving = tokio::spawn(serve(bank.clone(), TcpIncoming::from(listener), async {
        // Without the signal it serves on.
        drop(signal::ctrl_c().await);
    }));

    let channel = Endpoint::from_static("http://127.0.0.1:50051").connect().await?;
    let mut client = TransfersClient::new(InterceptedService::new(channel, KeySender));
    let key = OperationKey::random(); // one for the transfer, whatever becomes of its tries
    for _ in 0..2 {
        let transfer = Transfer { from: "ada".to_owned(), to: "bob".to_owned(), cents: 450 };
        let mut call = Request::new(transfer);
        call.extensions_mut().insert(key.clone());
        let receipt = client.transfer(call).await?;
        let replayed = receipt.metadata().contains_key("idempotency-replayed");
        println!(
            "receipt {} (replayed: {replayed}), bob has {}",
            receipt.get_ref().number,
            bank.balance("bob")
        );
    }
    println!("{} transfers unfinished", serving.await??);
    Ok(())
}
