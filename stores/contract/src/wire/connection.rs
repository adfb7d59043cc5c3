//! One connection through the proxy.
//!
//! Bytes from the client after bytes from the server begin an exchange. That holds for every protocol in which one
//! request is on its way at a time; where several are, an exchange is a batch of them. A reply is over when the server
//! has said nothing for a while: its first bytes may come long before the last of several statements is done.

use std::{io, mem, sync::Arc, time::Duration};

use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    time::{sleep, timeout},
};

use super::proxy::{Fault, Strikes};

/// How long a server that said something says nothing more before its reply counts as over.
const QUIET: Duration = Duration::from_millis(80);
/// How long a late request waits for its reply, at most.
const LATE: Duration = Duration::from_secs(5);

/// Passes on what client and server say to each other, until one of them ends it or a fault does.
pub(super) async fn serve(client: TcpStream, server: Arc<str>, strikes: Strikes) {
    match strikes.connecting() {
        Some(Fault::CutBefore) => {
            strikes.struck();
            reset(client);
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
        reset(client);
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

/// How a connection goes on.
enum Next {
    Whole,
    /// It is cut off from the client. The server does not know, and does all that it was asked.
    CutOff,
    Over,
}

impl Connection {
    async fn run(mut self) {
        while let Ok(side) = self.read().await {
            self.strikes.passed();
            let next = match side {
                Side::Client => self.ask().await,
                Side::Server => self.answer().await,
            };
            match next {
                Ok(Next::Whole) => {}
                Ok(Next::CutOff) => {
                    let _pending = self.strikes.pending();
                    self.strikes.struck();
                    reset(self.client);
                    rest(&self.server).await;
                    return;
                }
                Ok(Next::Over) | Err(_) => return,
            }
        }
    }

    /// Waits for bytes from either side.
    async fn read(&mut self) -> io::Result<Side> {
        loop {
            let (side, ready) = tokio::select! {
                ready = self.client.readable() => (Side::Client, ready),
                ready = self.server.readable() => (Side::Server, ready),
            };
            ready?;
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
    async fn ask(&mut self) -> io::Result<Next> {
        if !self.asked {
            self.asked = true;
            self.fault = self.strikes.exchange();
        }
        match self.fault {
            Some(Fault::CutBefore) => {
                self.strikes.struck();
                // Dropped with this mark, it is reset.
                self.client.set_zero_linger()?;
                return Ok(Next::Over);
            }
            Some(Fault::Silent) => {
                self.strikes.struck();
                swallow(&self.client).await;
                return Ok(Next::Over);
            }
            Some(Fault::Late) => {
                let _pending = self.strikes.pending();
                self.strikes.struck();
                self.strikes.healed().await;
                // One that never comes is as late as can be.
                let _ = timeout(LATE, self.deliver()).await;
                return Ok(Next::Over);
            }
            Some(Fault::Delayed(time)) => {
                self.strikes.struck();
                sleep(time).await;
            }
            Some(Fault::CutAfter | Fault::CutWithin | Fault::CutAtEnd | Fault::SilentReply) | None => {}
        }
        self.server.write_all(&self.bytes).await?;
        Ok(Next::Whole)
    }

    /// Delivers a late request, all that came of it, and waits until its server has done what it asks.
    async fn deliver(&mut self) -> io::Result<()> {
        self.server.write_all(&self.bytes).await?;
        loop {
            match self.read().await {
                Ok(Side::Client) => self.server.write_all(&self.bytes).await?,
                Ok(Side::Server) => break,
                // The client has gone, or else the server, and then this is at once.
                Err(_) => {
                    self.server.readable().await?;
                    break;
                }
            }
        }
        rest(&self.server).await;
        Ok(())
    }

    /// Takes bytes from the server.
    async fn answer(&mut self) -> io::Result<Next> {
        let begins = mem::replace(&mut self.asked, false);
        match self.fault {
            Some(Fault::CutAfter) if begins => return Ok(Next::CutOff),
            Some(Fault::CutWithin) if begins => {
                self.client.write_all(&self.bytes[..self.bytes.len() / 2]).await?;
                return Ok(Next::CutOff);
            }
            Some(Fault::CutAtEnd) if begins => {
                let _pending = self.strikes.pending();
                self.strikes.struck();
                self.bytes.extend(rest(&self.server).await);
                self.client.write_all(&self.bytes[..self.bytes.len() - 1]).await?;
                return Ok(Next::Over);
            }
            Some(Fault::SilentReply) if begins => {
                rest(&self.server).await;
                self.strikes.struck();
                swallow(&self.client).await;
                return Ok(Next::Over);
            }
            Some(Fault::Delayed(time)) => sleep(time).await,
            _ => {}
        }
        self.client.write_all(&self.bytes).await?;
        Ok(Next::Whole)
    }
}

/// What a server that began to reply has to say besides, until it is quiet.
async fn rest(server: &TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    let mut bytes = [0; 16 * 1024];
    while let Ok(Ok(())) = timeout(QUIET, server.readable()).await {
        match server.try_read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => break,
            Ok(count) => said.extend_from_slice(&bytes[..count]),
        }
    }
    said
}

/// Ends a connection with a reset, not in good order.
fn reset(stream: TcpStream) {
    // On one that is over already there is nothing to reset.
    let _ = stream.set_zero_linger();
    drop(stream);
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
