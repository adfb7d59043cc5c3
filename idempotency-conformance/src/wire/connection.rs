//! A connection: sends a message byte for byte and reads its answer at the same time, so that a server may refuse a
//! body that is still on its way.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    time::{Instant, timeout_at},
};

use super::{
    Answer, Garbage, Lost, Target,
    body::{Delimiter, take_chunks},
};

const LONGEST_HEAD: usize = 64 * 1024;
/// More than any vector asks for, and little enough for the answers of a whole race.
const LONGEST_BODY: usize = 16 * 1024 * 1024;
const MOST_INTERIM: usize = 100;
const ROOM: usize = 16 * 1024;
const FIELDS: usize = 256;
/// How long a body waits for `100 (Continue)`: a server need not send it.
const CONTINUE_PATIENCE: Duration = Duration::from_secs(1);
/// How long bytes that must not be there have to show up.
const SURPLUS_PATIENCE: Duration = Duration::from_millis(100);

/// A request as bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) head: Vec<u8>,
    /// The body in its framing.
    pub(crate) payload: Vec<u8>,
    pub(crate) awaits_continue: bool,
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    inbound: Inbound,
    limit: Duration,
}

/// What came and was not read yet.
#[derive(Debug)]
struct Inbound {
    buffer: Vec<u8>,
    deadline: Instant,
    limit: Duration,
}

impl Connection {
    pub(crate) async fn open(target: &Target, limit: Duration) -> Result<Self, Lost> {
        let deadline = Instant::now() + limit;
        let stream = match timeout_at(deadline, TcpStream::connect(target.address())).await {
            Ok(stream) => stream.map_err(Lost::Unreachable)?,
            Err(_) => return Err(Lost::Silent { limit }),
        };
        // A socket that cannot be told so is only slower.
        let _ = stream.set_nodelay(true);
        Ok(Self { stream, inbound: Inbound { buffer: Vec::new(), deadline, limit }, limit })
    }

    /// Sends a message and reads its answer.
    pub(crate) async fn exchange(&mut self, message: &Message) -> Result<Answer, Lost> {
        if message.awaits_continue {
            return self.exchange_in_two(message).await;
        }
        self.exchange_bytes(&[message.head.as_slice(), &message.payload].concat(), message).await
    }

    /// Sends all of a message but its last byte: until that comes, no server can begin.
    pub(crate) async fn hold_back(&mut self, message: &Message) -> Result<(), Lost> {
        let bytes = [message.head.as_slice(), &message.payload].concat();
        let (_, all_but_last) = bytes.split_last().ok_or(Lost::Closed { received: 0 })?;
        self.send(all_but_last).await
    }

    /// Sends the last byte of a message that was held back, and reads the answer.
    pub(crate) async fn release(&mut self, message: &Message) -> Result<Answer, Lost> {
        let last = message.payload.last().or(message.head.last()).copied();
        self.exchange_bytes(last.as_slice(), message).await
    }

    /// Sends the head and at most so many bytes of the payload, and reads nothing.
    pub(crate) async fn send_part(&mut self, message: &Message, bytes: usize) -> Result<(), Lost> {
        let part = &message.payload[..bytes.min(message.payload.len())];
        self.send(&[message.head.as_slice(), part].concat()).await
    }

    /// Ends the connection with a reset instead of an orderly close.
    pub(crate) fn reset(self) {
        // Where it cannot be asked for, the client leaves in order, which is a departure as well.
        let _ = self.stream.set_zero_linger();
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        let limit = self.limit;
        match timeout_at(Instant::now() + limit, self.stream.write_all(bytes)).await {
            Ok(sent) => sent.map_err(|_| Lost::Closed { received: 0 }),
            Err(_) => Err(Lost::Silent { limit }),
        }
    }

    async fn exchange_bytes(&mut self, bytes: &[u8], message: &Message) -> Result<Answer, Lost> {
        let begun = self.inbound.begin();
        let (mut reader, mut writer) = self.stream.split();
        let answer = self.inbound.answer(&mut reader, &message.method, begun);
        beside(&mut writer, bytes, answer).await
    }

    async fn exchange_in_two(&mut self, message: &Message) -> Result<Answer, Lost> {
        let begun = self.inbound.begin();
        self.send(&message.head).await?;
        let (mut reader, mut writer) = self.stream.split();
        let patience = Instant::now() + CONTINUE_PATIENCE;
        let first = match timeout_at(patience, self.inbound.head(&mut reader)).await {
            Ok(head) => Some(head?),
            Err(_) => None,
        };
        match first {
            Some(head) if head.status != 100 => {
                self.inbound.body(&mut reader, &message.method, begun, head).await
            }
            interim => {
                let answer = self.inbound.answer(&mut reader, &message.method, begun);
                let mut answer = beside(&mut writer, &message.payload, answer).await?;
                answer.interim.splice(0..0, interim.map(|head| head.status));
                Ok(answer)
            }
        }
    }
}

/// Writes while `answer` is awaited. A server that no longer reads may still have said why.
async fn beside(
    writer: &mut WriteHalf<'_>,
    bytes: &[u8],
    answer: impl Future<Output = Result<Answer, Lost>>,
) -> Result<Answer, Lost> {
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        biased;
        early = &mut answer => early,
        _ = writer.write_all(bytes) => answer.await,
    }
}

impl Inbound {
    fn begin(&mut self) -> Instant {
        let now = Instant::now();
        self.deadline = now + self.limit;
        now
    }

    async fn answer(
        &mut self,
        reader: &mut ReadHalf<'_>,
        method: &str,
        begun: Instant,
    ) -> Result<Answer, Lost> {
        let mut interim = Vec::new();
        loop {
            let head = self.head(reader).await?;
            if (100..200).contains(&head.status) && head.status != 101 {
                interim.push(head.status);
                if interim.len() > MOST_INTERIM {
                    return Err(Lost::Garbage(Garbage::Interim(interim.len())));
                }
                continue;
            }
            return self.body(reader, method, begun, Answer { interim, ..head }).await;
        }
    }

    async fn head(&mut self, reader: &mut ReadHalf<'_>) -> Result<Answer, Lost> {
        loop {
            let mut fields = [httparse::EMPTY_HEADER; FIELDS];
            let mut head = httparse::Response::new(&mut fields);
            let parsed = head.parse(&self.buffer).map_err(|error| Lost::Garbage(Garbage::Head(error)))?;
            if let httparse::Status::Complete(length) = parsed {
                let fields = head.headers.iter().map(|field| (field.name.to_owned(), field.value.to_vec()));
                let answer = Answer {
                    status: head.code.unwrap_or_default(),
                    fields: fields.collect(),
                    is_of_http_1_1: head.version == Some(1),
                    ..Answer::default()
                };
                self.buffer.drain(..length);
                return Ok(answer);
            }
            if self.buffer.len() > LONGEST_HEAD {
                return Err(Lost::Garbage(Garbage::LongHead(LONGEST_HEAD)));
            }
            if !self.more(reader).await? {
                return Err(Lost::Closed { received: self.buffer.len() });
            }
        }
    }

    async fn body(
        &mut self,
        reader: &mut ReadHalf<'_>,
        method: &str,
        begun: Instant,
        mut answer: Answer,
    ) -> Result<Answer, Lost> {
        let delimiter = Delimiter::of(&answer, method).map_err(Lost::Garbage)?;
        loop {
            let is_at_end = self.take(delimiter, &mut answer.body)?;
            if !answer.body.is_empty() && answer.first_byte.is_none() {
                answer.first_byte = Some(begun.elapsed());
            }
            if answer.body.len() + self.buffer.len() > LONGEST_BODY {
                return Err(Lost::Garbage(Garbage::LongBody(LONGEST_BODY)));
            }
            answer.is_whole = is_at_end;
            if is_at_end {
                break;
            }
            if !self.more(reader).await? {
                answer.is_whole = delimiter == Delimiter::Close;
                break;
            }
        }
        answer.took = begun.elapsed();
        if delimiter == Delimiter::Nothing {
            self.deadline = self.deadline.min(Instant::now() + SURPLUS_PATIENCE);
            // Silence is what is hoped for.
            let _ = self.more(reader).await;
        }
        answer.surplus = self.buffer.len();
        Ok(answer)
    }

    /// Moves what belongs to the body from the buffer, and says whether that was its end.
    fn take(&mut self, delimiter: Delimiter, body: &mut Vec<u8>) -> Result<bool, Lost> {
        match delimiter {
            Delimiter::Nothing => Ok(true),
            Delimiter::Close => {
                body.append(&mut self.buffer);
                Ok(false)
            }
            Delimiter::Length(length) => {
                let missing = length.saturating_sub(body.len()).min(self.buffer.len());
                body.extend(self.buffer.drain(..missing));
                Ok(body.len() >= length)
            }
            Delimiter::Chunks => {
                let (taken, is_last) = take_chunks(&self.buffer, body).map_err(Lost::Garbage)?;
                self.buffer.drain(..taken);
                Ok(is_last)
            }
        }
    }

    /// Reads on. False: the other side has ended.
    async fn more(&mut self, reader: &mut ReadHalf<'_>) -> Result<bool, Lost> {
        // A read fills the room that there is, and little of it makes many reads.
        self.buffer.reserve(ROOM);
        match timeout_at(self.deadline, reader.read_buf(&mut self.buffer)).await {
            Ok(Ok(count)) => Ok(count > 0),
            // A reset is an end, too.
            Ok(Err(_)) => Ok(false),
            Err(_) => Err(Lost::Silent { limit: self.limit }),
        }
    }
}
