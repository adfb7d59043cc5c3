//! Drives servers over sockets, all by the same means, and compares their throughput.
//!
//! A round sends the same number of requests to each server in turn, over connections that stay open; what counts is a
//! server's throughput as a share of the first one's in the same round. The generator does as little as it can for a
//! request, since it runs on the same machine: it writes bytes that are ready and looks for the end of the answer.

use std::{io, net::SocketAddr, time::Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    app::PATH,
    key::fresh_key,
    statistics::{median, quantile},
    table::{Table, quotient},
};

const ROUNDS: usize = 15;
const REQUESTS: usize = 3_000;
const WARM_UP: usize = 500;
const CONNECTIONS: usize = 16;
const BODY_BYTES: usize = 256;

/// What every request of a run carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// No key.
    None,
    /// A key nobody used before.
    Fresh,
}

impl Keys {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "no key",
            Self::Fresh => "fresh keys",
        }
    }
}

/// A server that listens.
#[derive(Debug, Clone)]
pub struct Server {
    /// What a table calls it.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
}

/// Drives `servers`, the first of which is the baseline, and prints the table.
///
/// # Errors
/// A server cannot be reached, or answers anything but 201.
pub async fn compare(servers: &[Server]) -> io::Result<()> {
    let mut table = Table::new(&["keys", "server", "requests a second", "of the first", "quartiles"]);
    for keys in [Keys::None, Keys::Fresh] {
        let mut rates = vec![Vec::new(); servers.len()];
        for server in servers {
            drive(server.address, keys, WARM_UP).await?;
        }
        for _ in 0..ROUNDS {
            for (rates, server) in rates.iter_mut().zip(servers) {
                rates.push(drive(server.address, keys, REQUESTS).await?);
            }
        }
        for (rate, server) in rates.iter().zip(servers) {
            let shares: Vec<f64> = rate.iter().zip(&rates[0]).map(|(rate, first)| rate / first).collect();
            table.push(vec![
                keys.name().into(),
                server.name.clone(),
                format!("{:.0}", median(rate)),
                quotient(median(&shares), 1.0),
                format!("{:.2}..{:.2}", quantile(&shares, 0.25), quantile(&shares, 0.75)),
            ]);
        }
    }
    print!("{table}");
    Ok(())
}

/// Requests a second, connecting left out.
async fn drive(address: SocketAddr, keys: Keys, requests: usize) -> io::Result<f64> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(address).await?);
    }
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for mut connection in connections {
        running.spawn(async move {
            for _ in 0..requests / CONNECTIONS {
                connection.exchange(keys).await?;
            }
            Ok(())
        });
    }
    running.join_all().await.into_iter().collect::<io::Result<()>>()?;
    Ok((requests / CONNECTIONS * CONNECTIONS) as f64 / begun.elapsed().as_secs_f64())
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, request: Vec::new(), answer: Vec::new() })
    }

    async fn exchange(&mut self, keys: Keys) -> io::Result<()> {
        self.write_request(keys);
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match length(&self.answer)? {
                Some(length) if self.answer.len() >= length => return Ok(()),
                _ => {}
            }
        }
    }

    fn write_request(&mut self, keys: Keys) {
        let head = format!("POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {BODY_BYTES}\r\n");
        self.request.clear();
        self.request.extend_from_slice(head.as_bytes());
        if keys == Keys::Fresh {
            let key = format!("idempotency-key: {}\r\n", fresh_key());
            self.request.extend_from_slice(key.as_bytes());
        }
        self.request.extend_from_slice(b"\r\n");
        self.request.resize(self.request.len() + BODY_BYTES, b'a');
    }
}

/// The length of the whole answer, once its head is here.
fn length(answer: &[u8]) -> io::Result<Option<usize>> {
    let malformed = |what: &'static str| io::Error::new(io::ErrorKind::InvalidData, what);
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let text = str::from_utf8(&answer[..head]).map_err(|_| malformed("the head is not text"))?;
    if !text.starts_with("HTTP/1.1 201") {
        return Err(malformed("the answer is not a 201"));
    }
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = lengths.next().and_then(|(_, value)| value.parse::<usize>().ok());
    Ok(Some(head + 4 + length.ok_or(malformed("the answer has no length"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_where_its_length_says() {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(length(answer).unwrap(), Some(answer.len()));
        assert_eq!(length(&answer[..30]).unwrap(), None);
        assert!(length(b"HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n").is_err());
    }
}
