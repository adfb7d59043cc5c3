//! HTTP/1.1 by hand, so that it can be done wrong.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::tcp::{OwnedReadHalf, OwnedWriteHalf},
    sync::mpsc,
};

use super::fault::Fault;

/// A request without its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
}

/// A body that was read, or why it could not be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Upload {
    Whole(Vec<u8>),
    /// The client left before the end.
    Broken,
    /// Its chunks are malformed.
    Corrupt,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Body,
    /// Whether the connection ends with it.
    pub(crate) closes: bool,
}

#[derive(Debug)]
pub(crate) enum Body {
    Whole(Vec<u8>),
    /// Chunks; an error breaks it off.
    Stream(mpsc::Receiver<Result<Vec<u8>, ()>>),
}

impl Head {
    pub(crate) fn lines(&self, name: &str) -> Vec<&[u8]> {
        let lines = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_slice()).collect()
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.lines(name).first().map(|value| String::from_utf8_lossy(value).into_owned())
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    pub(crate) fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.query().split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.text("transfer-encoding").is_some()
    }

    pub(crate) fn length(&self) -> usize {
        self.text("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn awaits_continue(&self) -> bool {
        self.text("expect").is_some()
    }
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let fields = vec![("Content-Type".to_owned(), content_type.as_bytes().to_vec())];
        Self { status, fields, body: Body::Whole(body.into()), closes: false }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, fields: Vec::new(), body: Body::Whole(Vec::new()), closes: false }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(field, _)| !field.eq_ignore_ascii_case(name));
        self
    }
}

pub(crate) struct Reader {
    pub(crate) half: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl Reader {
    pub(crate) fn new(half: OwnedReadHalf) -> Self {
        Self { half, buffer: Vec::new() }
    }

    /// The next request; none: the client has ended, or speaks something else.
    pub(crate) async fn head(&mut self) -> Option<Head> {
        loop {
            let mut fields = [httparse::EMPTY_HEADER; 64];
            let mut request = httparse::Request::new(&mut fields);
            if let httparse::Status::Complete(length) = request.parse(&self.buffer).ok()? {
                let head = Head {
                    method: request.method?.to_owned(),
                    target: request.path?.to_owned(),
                    fields: request.headers.iter().map(|f| (f.name.to_owned(), f.value.to_vec())).collect(),
                };
                self.buffer.drain(..length);
                return Some(head);
            }
            self.more().await?;
        }
    }

    pub(crate) async fn body(&mut self, head: &Head, fault: Option<Fault>) -> Upload {
        let mut body = Vec::new();
        if !head.is_chunked() {
            while self.buffer.len() < head.length() {
                if self.more().await.is_none() {
                    return broken(fault, std::mem::take(&mut self.buffer));
                }
            }
            body.extend(self.buffer.drain(..head.length()));
            return Upload::Whole(body);
        }
        loop {
            match self.chunk(&mut body) {
                Ok(Some(true)) => return Upload::Whole(body),
                Ok(Some(false)) => {}
                Ok(None) => {
                    if self.more().await.is_none() {
                        return broken(fault, body);
                    }
                }
                Err(()) if fault == Some(Fault::CorruptChunksAccepted) => return Upload::Whole(body),
                Err(()) => return Upload::Corrupt,
            }
        }
    }

    /// Takes a chunk from the buffer. True: it was the last one. None: it is not all there.
    fn chunk(&mut self, body: &mut Vec<u8>) -> Result<Option<bool>, ()> {
        let (begins, size) = match httparse::parse_chunk_size(&self.buffer) {
            Ok(httparse::Status::Complete((begins, size))) => {
                (begins, usize::try_from(size).map_err(|_| ())?)
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(()),
        };
        let ends = begins + size;
        let Some(end) = self.buffer.get(ends..ends + 2) else { return Ok(None) };
        if end != b"\r\n" {
            body.extend_from_slice(&self.buffer[begins..ends]);
            return Err(());
        }
        body.extend_from_slice(&self.buffer[begins..ends]);
        self.buffer.drain(..ends + 2);
        Ok(Some(size == 0))
    }

    async fn more(&mut self) -> Option<()> {
        self.buffer.reserve(16 * 1024);
        match self.half.read_buf(&mut self.buffer).await {
            Ok(count) if count > 0 => Some(()),
            _ => None,
        }
    }

    /// Comes when the client has left.
    pub(crate) async fn left(&mut self) {
        let mut byte = [0];
        match self.half.peek(&mut byte).await {
            Ok(0) | Err(_) => {}
            // It has more to say, and is not read until this exchange is over.
            Ok(_) => std::future::pending().await,
        }
    }
}

fn broken(fault: Option<Fault>, body: Vec<u8>) -> Upload {
    if fault == Some(Fault::HalfABodyAccepted) { Upload::Whole(body) } else { Upload::Broken }
}

/// Writes a reply; false: the connection is over.
pub(crate) async fn write(writer: &mut OwnedWriteHalf, reply: Reply, has_a_body: bool) -> bool {
    let Reply { status, fields, body, closes } = reply;
    let mut head = format!("HTTP/1.1 {status} Toy\r\n").into_bytes();
    for (name, value) in &fields {
        head.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    if closes {
        head.extend_from_slice(b"Connection: close\r\n");
    }
    let written = match body {
        Body::Whole(body) => {
            if has_a_body {
                head.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
            }
            head.extend_from_slice(b"\r\n");
            head.extend_from_slice(&body);
            writer.write_all(&head).await
        }
        Body::Stream(chunks) => {
            head.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            stream(writer, head, chunks).await
        }
    };
    written.is_ok() && !closes
}

async fn stream(
    writer: &mut OwnedWriteHalf,
    head: Vec<u8>,
    mut chunks: mpsc::Receiver<Result<Vec<u8>, ()>>,
) -> io::Result<()> {
    writer.write_all(&head).await?;
    while let Some(chunk) = chunks.recv().await {
        let chunk = chunk.map_err(|()| io::Error::other("the stream breaks off"))?;
        let framed = [format!("{:x}\r\n", chunk.len()).as_bytes(), &chunk, b"\r\n"].concat();
        writer.write_all(&framed).await?;
    }
    writer.write_all(b"0\r\n\r\n").await
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
