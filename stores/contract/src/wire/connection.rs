//! One connection through the proxy.
//!
//! Bytes from the client after bytes from the server begin an exchange. That holds for every protocol in which one
//! request is on its way at a time; where several are, an exchange is a batch of them.

use std::{io, ops::ControlFlow, sync::Arc, time::Duration};

use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    time::{sleep, timeout},
};

use super::proxy::{Fault, Strikes};

/// How long a late request waits for its server, at most.
const LATE: Duration = Duration::from_secs(5);

/// Passes on what client and server say to each other, until one of them ends it or a fault does.
pub(super) async fn serve(client: TcpStream, server: Arc<str>, strikes: Strikes) {
    match strikes.connecting() {
        Some(Fault::CutBefore) => {
            strikes.struck();
            reset(&client);
            return;
        }
        Some(Fault::Silent) => {
            strikes.struck();
            swallow(&client).await;
            return;
        }
        _ => {}
    }
    let Ok(server) = TcpStream::connect(&*server).await else {
        reset(&client);
        return;
    };
    for side in [&client, &server] {
        // Without it small messages may be sent later; that is all.
        let _ = side.set_nodelay(true);
    }
    Connection { client, server, strikes, asked: false, fault: None, bytes: Vec::new() }.run().await;
}

struct Connection {
    client: TcpStream,
    server: TcpStream,
    strikes: Strikes,
    /// Whether the last bytes came from the client.
    asked: bool,
    /// What befalls the exchange that is under way.
    fault: Option<Fault>,
    /// What was read last.
    bytes: Vec<u8>,
}

enum Side {
    Client,
    Server,
}

impl Connection {
    async fn run(mut self) {
        while let Ok(side) = self.read().await {
            let passed = match side {
                Side::Client => self.ask().await,
                Side::Server => self.answer().await,
            };
            if !matches!(passed, Ok(ControlFlow::Continue(()))) {
                return;
            }
        }
    }

    /// Waits for bytes from either side.
    async fn read(&mut self) -> io::Result<Side> {
        loop {
            let (side, read) = tokio::select! {
                ready = self.client.readable() => (Side::Client, ready),
                ready = self.server.readable() => (Side::Server, ready),
            };
            read?;
            let from = match side {
                Side::Client => &self.client,
                Side::Server => &self.server,
            };
            self.bytes.resize(64 * 1024, 0);
            match from.try_read(&mut self.bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.bytes.truncate(count);
                    return Ok(side);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes bytes from the client.
    async fn ask(&mut self) -> io::Result<ControlFlow<()>> {
        if !self.asked {
            self.asked = true;
            self.fault = self.strikes.exchange();
        }
        match self.fault {
            Some(Fault::CutBefore) => {
                self.strikes.struck();
                reset(&self.client);
                return Ok(ControlFlow::Break(()));
            }
            Some(Fault::Silent) => {
                self.strikes.struck();
                swallow(&self.client).await;
                return Ok(ControlFlow::Break(()));
            }
            Some(Fault::Late) => {
                self.strikes.struck();
                self.strikes.healed().await;
                // One that never comes is as late as can be.
                let _ = timeout(LATE, self.deliver()).await;
                self.strikes.delivered();
                reset(&self.client);
                return Ok(ControlFlow::Break(()));
            }
            Some(Fault::Delayed(time)) => {
                self.strikes.struck();
                sleep(time).await;
            }
            Some(Fault::CutAfter | Fault::CutWithin | Fault::CutAtEnd | Fault::SilentReply) | None => {}
        }
        self.server.write_all(&self.bytes).await?;
        Ok(ControlFlow::Continue(()))
    }

    /// Delivers a late request, all that came of it, and waits for the beginning of its reply.
    async fn deliver(&mut self) -> io::Result<()> {
        self.server.write_all(&self.bytes).await?;
        loop {
            match self.read().await {
                Ok(Side::Client) => self.server.write_all(&self.bytes).await?,
                Ok(Side::Server) => return Ok(()),
                // The client has gone, or else the server, which the next reading tells.
                Err(_) => return self.server.readable().await,
            }
        }
    }

    /// Takes bytes from the server.
    async fn answer(&mut self) -> io::Result<ControlFlow<()>> {
        let begins = std::mem::replace(&mut self.asked, false);
        let count = self.bytes.len();
        match self.fault {
            Some(Fault::CutAfter) if begins => self.cut(0).await,
            Some(Fault::CutWithin) if begins => self.cut(count / 2).await,
            Some(Fault::CutAtEnd) if begins => {
                self.strikes.struck();
                self.client.write_all(&self.bytes[..count - 1]).await?;
                Ok(ControlFlow::Break(()))
            }
            Some(Fault::SilentReply) if begins => {
                self.strikes.struck();
                swallow(&self.client).await;
                Ok(ControlFlow::Break(()))
            }
            fault => {
                if let Some(Fault::Delayed(time)) = fault {
                    sleep(time).await;
                }
                self.client.write_all(&self.bytes).await?;
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Passes on the first `count` bytes of a reply, and resets the connection.
    async fn cut(&mut self, count: usize) -> io::Result<ControlFlow<()>> {
        self.strikes.struck();
        self.client.write_all(&self.bytes[..count]).await?;
        reset(&self.client);
        Ok(ControlFlow::Break(()))
    }
}

/// Makes the connection end with a reset, not in good order, when it is dropped.
fn reset(stream: &TcpStream) {
    // On a connection that is over already there is nothing to reset.
    let _ = stream.set_zero_linger();
}

/// Takes what comes, and answers nothing, until the client gives up.
async fn swallow(client: &TcpStream) {
    let mut bytes = [0; 1024];
    while client.readable().await.is_ok() {
        match client.try_read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}
