//! Statuses of gRPC.

use std::time::Duration;

use ::tonic::{
    Code, Request, Status,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint},
};
use idempotency_agent::{Applied, Classifier, TonicErrors};
use tonic_prost::ProstCodec;

use crate::listener::{Deed, Listener};

/// What a call to `url` that comes to no answer fails with.
async fn error(url: String, timeout: Duration) -> Status {
    let channel: Channel = Endpoint::try_from(url).unwrap().timeout(timeout).connect_lazy();
    let mut client = Grpc::new(channel);
    if let Err(error) = client.ready().await {
        return Status::from_error(error.into());
    }
    let path = PathAndQuery::from_static("/pay.Payments/Pay");
    let called = client.unary(Request::new(()), path, ProstCodec::<(), ()>::default()).await;
    called.unwrap_err()
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_connection_that_was_never_made_did_nothing() {
    let status = error(format!("http://{}", Listener::nobody().await), LONG).await;
    assert_eq!(
        (status.code(), TonicErrors.classify(&status)),
        (Code::Unavailable, Applied::No),
        "{status:?}"
    );
    assert_eq!(TonicErrors.classify(&std::io::Error::other(status)), Applied::No);
    let status = error("http://nobody.invalid".to_owned(), LONG).await;
    assert_eq!(TonicErrors.classify(&status), Applied::No, "{status:?}");
}

#[tokio::test]
async fn of_a_call_that_was_sent_nobody_knows() {
    let cut = Listener::that_does(Deed::Cut).await;
    let silent = Listener::that_does(Deed::Silence).await;
    let garbage = Listener::that_does(Deed::Answer("who knows".to_owned())).await;
    for (listener, timeout) in [(&cut, LONG), (&silent, Duration::from_millis(300)), (&garbage, LONG)] {
        let status = error(listener.url(), timeout).await;
        assert_eq!(TonicErrors.classify(&status), Applied::Unknown, "{status:?}");
    }
}

#[test]
fn a_code_says_whether_a_service_declined_to_act() {
    let declined = [Code::InvalidArgument, Code::Unauthenticated, Code::PermissionDenied, Code::NotFound];
    for code in (0..=16).map(Code::from_i32) {
        let says = TonicErrors.classify(&Status::new(code, "so"));
        assert_eq!(says == Applied::No, declined.contains(&code), "{code:?}");
        let wrapped = std::io::Error::other(Status::new(code, "so"));
        assert_eq!(TonicErrors.classify(&wrapped), says, "{code:?}");
    }
    assert_eq!(TonicErrors.classify(&std::io::Error::other("disk")), Applied::Unknown);
}
