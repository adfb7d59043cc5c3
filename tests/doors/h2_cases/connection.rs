//! An HTTP/2 connection, and what is seen on one of its streams.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use h2::{Ping, PingPong, Reason, client};
use http::{HeaderMap, StatusCode, response::Parts};
use tokio::{net::TcpStream, sync::Mutex, time::timeout};

use super::{Call, End, Leave};

/// What came back on a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    head: Option<(StatusCode, HeaderMap)>,
    pub(crate) body: BytesMut,
    /// When the first byte of the body came, or the head of an answer without one.
    pub(crate) first: Duration,
    pub(crate) took: Duration,
    /// Why it is not whole.
    pub(crate) broken: Option<Arc<Broken>>,
}

/// Why an answer is not whole.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the caller left")]
    Left,
    #[error("no answer in time")]
    TooLate,
    #[error(transparent)]
    Http2(#[from] h2::Error),
}

impl Seen {
    pub(crate) fn status(&self) -> Option<StatusCode> {
        self.head.as_ref().map(|(status, _)| *status)
    }

    /// The values of a field, as text.
    pub(crate) fn values(&self, name: &str) -> Vec<String> {
        let fields = self.head.iter().flat_map(|(_, fields)| fields.get_all(name));
        fields.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.values("idempotency-replayed") == ["true"]
    }

    pub(crate) fn is_success(&self) -> bool {
        self.status().is_some_and(|status| status.is_success())
    }

    /// The handler ran, and did well.
    pub(crate) fn is_fresh(&self) -> bool {
        self.is_success() && !self.is_replay()
    }

    /// For a complaint: what it was, in short.
    pub(crate) fn short(&self) -> String {
        let (status, body) = (self.status(), &self.body[..self.body.len().min(80)]);
        let body = String::from_utf8_lossy(body);
        format!("<{status:?}, replay: {}, broken: {:?}, body: {body:?}>", self.is_replay(), self.broken)
    }
}

/// A connection that other tasks share.
#[derive(Clone)]
pub(crate) struct Connection {
    sender: client::SendRequest<Bytes>,
    ping: Arc<Mutex<PingPong>>,
}

impl Connection {
    pub(crate) async fn open(authority: &str) -> Self {
        let stream = TcpStream::connect(authority).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, mut connection) = client::handshake(stream).await.unwrap();
        let ping = Arc::new(Mutex::new(connection.ping_pong().unwrap()));
        // It ends with its last sender; how is seen on its streams.
        tokio::spawn(connection);
        Self { sender, ping }
    }

    /// Once this is answered, everything that was sent before it is out.
    pub(crate) async fn ping(&self) -> Result<(), h2::Error> {
        self.ping.lock().await.ping(Ping::opaque()).await.map(|_pong| ())
    }

    /// A stream to do with as one likes.
    pub(crate) async fn sender(&self) -> Result<client::SendRequest<Bytes>, h2::Error> {
        self.sender.clone().ready().await
    }

    /// Sends a request on a stream of its own, and watches it to its end or until the caller leaves.
    pub(crate) async fn send(&self, call: Call) -> Seen {
        let begun = Instant::now();
        let mut seen = Seen::default();
        let (limit, over) = match call.leave {
            Leave::After(limit) => (limit, Broken::Left),
            Leave::Never | Leave::AfterBytes(_) => (call.patience, Broken::TooLate),
        };
        // A stream whose handles are dropped before its end is reset with CANCEL.
        let broken = match timeout(limit, self.watch(call, begun, &mut seen)).await {
            Ok(Ok(())) => None,
            Ok(Err(broken)) => Some(broken),
            Err(_) => Some(over),
        };
        Seen { took: begun.elapsed(), broken: broken.map(Arc::new), ..seen }
    }

    async fn watch(&self, call: Call, begun: Instant, seen: &mut Seen) -> Result<(), Broken> {
        let Call { head, data, end, leave, patience: _ } = call;
        let (response, mut stream) =
            self.sender().await?.send_request(head, data.is_empty() && end == End::Whole)?;
        let last = data.len().checked_sub(1);
        for (number, bytes) in data.into_iter().enumerate() {
            // A stream that was refused meanwhile takes no more; its answer is on the way.
            let _ = stream.send_data(bytes, end == End::Whole && last == Some(number));
        }
        if end == End::Reset {
            self.ping().await?;
            stream.send_reset(Reason::CANCEL);
            return Err(Broken::Left);
        }
        let (Parts { status, headers, .. }, mut body) = response.await?.into_parts();
        seen.head = Some((status, headers));
        seen.first = begun.elapsed();
        while let Some(bytes) = body.data().await {
            let bytes = match bytes {
                // After a whole answer: the rest of the request is not wanted.
                Err(error) if error.is_reset() && error.reason() == Some(Reason::NO_ERROR) => return Ok(()),
                bytes => bytes?,
            };
            if seen.body.is_empty() {
                seen.first = begun.elapsed();
            }
            body.flow_control().release_capacity(bytes.len())?;
            seen.body.extend_from_slice(&bytes);
            if matches!(leave, Leave::AfterBytes(enough) if seen.body.len() >= enough) {
                stream.send_reset(Reason::CANCEL);
                return Err(Broken::Left);
            }
        }
        body.trailers().await?;
        Ok(())
    }
}
