//! Every fault does what it says, to the exchanges it is meant for and to no other.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotency_store_contract::wire::{Fault, Proxy};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};

/// How long nothing has to come before it counts as nothing.
const SILENCE: Duration = Duration::from_millis(100);

/// A server that answers each request of eight bytes with the same bytes, and knows what it was asked.
struct Echo {
    proxy: Proxy,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    async fn behind_a_proxy() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let log = Arc::clone(&log);
                tokio::spawn(async move {
                    let mut request = [0; 8];
                    while client.read_exact(&mut request).await.is_ok() {
                        log.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
                        if client.write_all(&request).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { proxy: Proxy::before(&address).await.unwrap(), asked }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.proxy.address()).await.unwrap()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Everything that comes in answer to `request`, and how it ended.
async fn ask(line: &mut TcpStream, request: &str) -> (String, io::Result<()>) {
    line.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 8];
    let mut count = 0;
    while count < answer.len() {
        match timeout(SILENCE, line.read(&mut answer[count..])).await {
            Ok(Ok(0)) => return (text(&answer[..count]), Err(io::ErrorKind::UnexpectedEof.into())),
            Ok(Ok(more)) => count += more,
            Ok(Err(error)) => return (text(&answer[..count]), Err(error)),
            Err(_) => return (text(&answer[..count]), Err(io::ErrorKind::TimedOut.into())),
        }
    }
    (text(&answer), Ok(()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn told(line: &mut TcpStream, request: &str) -> (String, Option<io::ErrorKind>) {
    let (answer, ended) = ask(line, request).await;
    (answer, ended.err().map(|error| error.kind()))
}

#[tokio::test]
async fn without_a_fault_everything_passes() {
    let echo = Echo::behind_a_proxy().await;
    let mut line = echo.connect().await;
    for request in ["first---", "second--"] {
        assert_eq!(told(&mut line, request).await, (request.to_owned(), None));
    }
    assert_eq!(echo.asked(), ["first---", "second--"]);
    assert_eq!(echo.proxy.struck(), 0);
}

#[tokio::test]
async fn only_the_exchanges_that_are_meant_are_struck() {
    let echo = Echo::behind_a_proxy().await;
    let mut line = echo.connect().await;
    told(&mut line, "earlier-").await;
    echo.proxy.strike(Fault::CutAfter, 2..=2);
    assert_eq!(told(&mut line, "first---").await, ("first---".to_owned(), None));
    assert_eq!(told(&mut line, "second--").await, (String::new(), Some(io::ErrorKind::ConnectionReset)));
    assert_eq!(echo.proxy.struck(), 1);
    let mut line = echo.connect().await;
    assert_eq!(told(&mut line, "third---").await, ("third---".to_owned(), None));
    assert_eq!(echo.proxy.heal(), 1);
}

#[tokio::test]
async fn a_request_cut_off_before_its_server_never_arrives() {
    let echo = Echo::behind_a_proxy().await;
    let mut line = echo.connect().await;
    echo.proxy.strike(Fault::CutBefore, ..);
    assert_eq!(told(&mut line, "request-").await, (String::new(), Some(io::ErrorKind::ConnectionReset)));
    let mut later = echo.connect().await;
    let ended = later.read(&mut [0]).await;
    assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionReset), "a new connection");
    assert_eq!(echo.asked(), Vec::<String>::new());
    assert_eq!(echo.proxy.heal(), 2);
    assert_eq!(told(&mut echo.connect().await, "request-").await, ("request-".to_owned(), None));
}

#[tokio::test]
async fn a_reply_is_cut_where_the_fault_says() {
    for (fault, passed, ended) in [
        (Fault::CutAfter, "", io::ErrorKind::ConnectionReset),
        (Fault::CutWithin, "requ", io::ErrorKind::ConnectionReset),
        (Fault::CutAtEnd, "request", io::ErrorKind::UnexpectedEof),
    ] {
        let echo = Echo::behind_a_proxy().await;
        let mut line = echo.connect().await;
        echo.proxy.strike(fault, ..);
        assert_eq!(told(&mut line, "request-").await, (passed.to_owned(), Some(ended)), "{fault:?}");
        assert_eq!(echo.asked(), ["request-"], "{fault:?}");
    }
}

#[tokio::test]
async fn a_late_request_arrives_when_it_is_healed_though_its_sender_has_gone() {
    let echo = Echo::behind_a_proxy().await;
    let mut line = echo.connect().await;
    echo.proxy.strike(Fault::Late, ..);
    assert_eq!(told(&mut line, "request-").await, (String::new(), Some(io::ErrorKind::TimedOut)));
    drop(line);
    assert_eq!(echo.asked(), Vec::<String>::new());
    assert_eq!(echo.proxy.heal(), 1);
    echo.proxy.settled().await;
    assert_eq!(echo.asked(), ["request-"]);
}

#[tokio::test]
async fn a_silent_line_takes_everything_and_stays_silent() {
    for (fault, arrives) in [(Fault::Silent, false), (Fault::SilentReply, true)] {
        let echo = Echo::behind_a_proxy().await;
        let mut line = echo.connect().await;
        echo.proxy.strike(fault, ..);
        assert_eq!(told(&mut line, "request-").await, (String::new(), Some(io::ErrorKind::TimedOut)));
        assert_eq!(echo.asked(), vec!["request-".to_owned(); usize::from(arrives)], "{fault:?}");
        echo.proxy.heal();
        assert_eq!(told(&mut line, "another-").await, (String::new(), Some(io::ErrorKind::TimedOut)));
        assert_eq!(told(&mut echo.connect().await, "request-").await, ("request-".to_owned(), None));
    }
}

#[tokio::test]
async fn a_delay_befalls_request_and_reply() {
    let echo = Echo::behind_a_proxy().await;
    let mut line = echo.connect().await;
    let delay = SILENCE / 4;
    echo.proxy.strike(Fault::Delayed(delay), ..);
    let begun = Instant::now();
    assert_eq!(told(&mut line, "request-").await, ("request-".to_owned(), None));
    assert!(begun.elapsed() >= delay * 2, "{:?}", begun.elapsed());
}
