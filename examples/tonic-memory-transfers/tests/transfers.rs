//! What the example promises.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use idempotency_tonic::{KeySender, OperationKey};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use tonic::{
    Code, Request,
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint, server::TcpIncoming},
};
use tonic_memory_transfers::{
    bank::Bank,
    rpc::{Transfer, TransfersClient},
    serve,
};
use tonic_types::StatusExt;

struct Open {
    bank: Bank,
    channel: Channel,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<usize>,
}

async fn open() -> Open {
    let bank = Bank::with(&[("ada", 1_000)]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = serve(bank.clone(), TcpIncoming::from(listener), async {
        // Told by the sender's end.
        let _ = stopped.await;
    });
    let serving = async { serving.await.unwrap() };
    let serving = tokio::spawn(serving);
    let channel = Endpoint::try_from(format!("http://{address}")).unwrap().connect().await.unwrap();
    Open { bank, channel, stop, serving }
}

fn transfer(key: &OperationKey, cents: u64) -> Request<Transfer> {
    let mut call = Request::new(Transfer { from: "ada".to_owned(), to: "bob".to_owned(), cents });
    call.extensions_mut().insert(key.clone());
    call
}

#[tokio::test]
async fn a_transfer_and_its_retry_move_the_money_once() {
    let open = open().await;
    let mut client = TransfersClient::new(InterceptedService::new(open.channel, KeySender));
    let key = OperationKey::random();
    let first = client.transfer(transfer(&key, 450)).await.unwrap();
    let retry = client.transfer(transfer(&key, 450)).await.unwrap();
    assert!(!first.metadata().contains_key("idempotency-replayed"));
    assert!(retry.metadata().contains_key("idempotency-replayed"));
    assert_eq!(first.get_ref(), retry.get_ref());
    assert_eq!((open.bank.balance("ada"), open.bank.balance("bob")), (550, 450));
    let other = client.transfer(transfer(&key, 100)).await.unwrap_err();
    assert_eq!(other.get_details_error_info().unwrap().reason, "FINGERPRINT_MISMATCH");
    drop(client);
    open.stop.send(()).unwrap();
    assert_eq!(open.serving.await.unwrap(), 0);
}

#[tokio::test]
async fn a_transfer_that_was_refused_stays_refused_under_its_key() {
    let open = open().await;
    let mut client = TransfersClient::new(InterceptedService::new(open.channel.clone(), KeySender));
    let key = OperationKey::random();
    assert_eq!(client.transfer(transfer(&key, 5_000)).await.unwrap_err().code(), Code::FailedPrecondition);
    let again = client.transfer(transfer(&key, 5_000)).await.unwrap_err();
    assert_eq!(
        (again.code(), again.message()),
        (Code::FailedPrecondition, "there is not so much in the account")
    );
    assert!(again.metadata().contains_key("idempotency-replayed"));
    let mut without_key = TransfersClient::new(open.channel);
    let missing = without_key.transfer(transfer(&key, 1)).await.unwrap_err();
    assert_eq!(missing.code(), Code::InvalidArgument);
    assert_eq!(open.bank.balance("ada"), 1_000);
}
