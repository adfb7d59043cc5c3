//! Errors of reqwest.

use std::time::Duration;

use ::reqwest::{Client, Error, StatusCode};
use idempotency_agent::{Applied, Classifier, EffectError, Ledger, Outcome, ReqwestErrors};
use idempotency_store_memory::MemoryLedger;

use crate::listener::{Deed, Listener};

fn client() -> Client {
    Client::builder().no_proxy().build().unwrap()
}

/// The error of a request to `url`.
async fn error(url: &str, timeout: Duration) -> Error {
    let sent = client().post(url).body("pay").timeout(timeout).send().await;
    let answered = match sent.and_then(::reqwest::Response::error_for_status) {
        Ok(answered) => answered.text().await,
        Err(error) => return error,
    };
    answered.unwrap_err()
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn what_was_never_sent_did_nothing() {
    let refused = error(&format!("http://{}", Listener::nobody().await), LONG).await;
    let unknown_name = error("http://nobody.invalid/", LONG).await;
    let no_address = error("not an address", LONG).await;
    for error in [refused, unknown_name, no_address] {
        assert_eq!(ReqwestErrors.classify(&error), Applied::No, "{error:?}");
        assert_eq!(ReqwestErrors.classify(&std::io::Error::other(error)), Applied::No);
    }
}

#[tokio::test]
async fn of_what_was_sent_nobody_knows() {
    let cut = Listener::that_does(Deed::Cut).await;
    let silent = Listener::that_does(Deed::Silence).await;
    let ends_early = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npaid".to_owned();
    let ends_early = Listener::that_does(Deed::Answer(ends_early)).await;
    let garbage = Listener::that_does(Deed::Answer("who knows".to_owned())).await;
    for (listener, timeout) in
        [(&cut, LONG), (&silent, Duration::from_millis(300)), (&ends_early, LONG), (&garbage, LONG)]
    {
        let error = error(&listener.url(), timeout).await;
        assert_eq!(ReqwestErrors.classify(&error), Applied::Unknown, "{error:?}");
        // Nor does it matter what wraps it.
        assert_eq!(ReqwestErrors.classify(&std::io::Error::other(error)), Applied::Unknown);
    }
}

#[tokio::test]
async fn a_status_says_whether_a_server_declined_to_act() {
    let declined =
        [400, 401, 402, 403, 404, 405, 410, 411, 413, 414, 415, 417, 421, 422, 425, 426, 428, 429, 431, 451];
    for status in 400..=599 {
        let says = ReqwestErrors::of_status(StatusCode::from_u16(status).unwrap());
        assert_eq!(says == Applied::No, declined.contains(&status), "{status}");
    }
    for (status, says) in [
        (422, Applied::No),
        (429, Applied::No),
        (408, Applied::Unknown),
        (409, Applied::Unknown),
        (500, Applied::Unknown),
    ] {
        let answer = format!("HTTP/1.1 {status} As It Is\r\ncontent-length: 0\r\n\r\n");
        let listener = Listener::that_does(Deed::Answer(answer)).await;
        assert_eq!(ReqwestErrors.classify(&error(&listener.url(), LONG).await), says, "{status}");
    }
}

#[tokio::test]
async fn an_error_of_something_else_says_nothing() {
    assert_eq!(ReqwestErrors.classify(&std::io::Error::other("disk")), Applied::Unknown);
}

#[tokio::test]
async fn a_ledger_goes_by_it() {
    let ledger = Ledger::builder(MemoryLedger::new()).classifier(ReqwestErrors).build().unwrap();
    let pay = |order: &'static str, url: String| {
        let ask = ledger.effect("conversation", "pay").identity(order);
        ask.execute(move |_| async move {
            client().post(url).send().await?;
            Ok::<_, EffectError>(())
        })
    };
    let nobody = format!("http://{}", Listener::nobody().await);
    assert!(matches!(pay("A", nobody).await.unwrap(), Outcome::Failed { retryable: true, .. }));
    let cut = Listener::that_does(Deed::Cut).await;
    assert!(matches!(pay("B", cut.url()).await.unwrap(), Outcome::Ambiguous { error: Some(_), .. }));
}
