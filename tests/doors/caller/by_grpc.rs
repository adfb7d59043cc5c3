//! In gRPC's words: a status, and the reason in its `ErrorInfo`.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, uri::PathAndQuery};
use idempotency_fixture::grpc::{Ask, Method, Reply};
use prost::Message;
use tonic::{
    Code, Request, Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    metadata::{MetadataMap, MetadataValue},
    transport::Channel,
};
use tonic_types::StatusExt;

use super::{Answer, Call, End, Page, Told};

/// Which status goes with which reason.
const REFUSALS: [(Code, &[&str]); 9] = [
    (Code::InvalidArgument, &["MISSING_KEY", "INVALID_KEY"]),
    (Code::Unauthenticated, &["MISSING_PRINCIPAL"]),
    (Code::Aborted, &["CONFLICT"]),
    (Code::ResourceExhausted, &["PAYLOAD_TOO_LARGE"]),
    (
        Code::FailedPrecondition,
        &["FINGERPRINT_MISMATCH", "CREDENTIALS_MISMATCH", "OUTCOME_UNKNOWN", "KEY_EXPIRED"],
    ),
    (Code::AlreadyExists, &["RESULT_NOT_REPLAYABLE"]),
    (Code::Unavailable, &["STORE_UNAVAILABLE"]),
    (Code::Internal, &["INTERNAL"]),
    (Code::ResourceExhausted, &["OVERLOADED"]),
];

pub(super) async fn send(channel: &Channel, call: Call) -> Told {
    let (method, ask) = asked(&call);
    let mut request = Request::new(ask.encode_to_vec());
    request.metadata_mut().as_mut().extend(metadata(&call));
    if let Some(deadline) = call.deadline {
        // Said to the server, too, as `grpc-timeout`.
        request.set_timeout(deadline);
    }
    match answered(channel, request, method).await {
        Ok(answer) => told(Code::Ok, answer),
        Err((status, mut answer)) => {
            if has_no_sender(&status) {
                return Told::Nothing;
            }
            if let Some(info) = status.get_details_error_info()
                && info.domain == "idempotency"
            {
                return refused(&status, &info.reason, info.metadata.get("mismatch"));
            }
            answer.trailers.extend(status.metadata().as_ref().clone());
            told(status.code(), answer)
        }
    }
}

fn asked(call: &Call) -> (Method, Ask) {
    let mut ask = Ask { text: call.payload.clone(), ..Ask::default() };
    let method = match call.page {
        Page::Count { ms } => {
            ask.ms = ms;
            Method::Count
        }
        Page::Order { ms } => {
            ask.ms = ms;
            Method::Order
        }
        Page::Held => Method::Held,
        Page::Echo => Method::Echo,
        Page::Unavailable => {
            ask.code = Code::Unavailable.into();
            Method::Fail
        }
        Page::Decline => {
            ask.code = Code::FailedPrecondition.into();
            Method::Fail
        }
        Page::Panic => Method::Panic,
        Page::Fields => Method::Fields,
        Page::Trailers => {
            ask.chunks = 2;
            Method::Stream
        }
        Page::Large { bytes } => {
            ask.bytes = bytes as u64;
            Method::Large
        }
    };
    (method, ask)
}

fn metadata(call: &Call) -> HeaderMap {
    let mut metadata = MetadataMap::new();
    for key in &call.keys {
        metadata.append("idempotency-key", MetadataValue::try_from(&key[..]).unwrap());
    }
    for (name, value) in &call.fields {
        metadata.insert(*name, MetadataValue::from_static(value));
    }
    metadata.into_headers()
}

/// Every call is read as one whose reply streams: of one message, it is the same on the wire.
async fn answered(
    channel: &Channel,
    request: Request<Vec<u8>>,
    method: Method,
) -> Result<Answer, (Status, Answer)> {
    let mut answer =
        Answer { end: End::Well, body: Bytes::new(), fields: HeaderMap::new(), trailers: HeaderMap::new() };
    let mut client = tonic::client::Grpc::new(channel.clone());
    if let Err(error) = client.ready().await {
        return Err((Status::from_error(error.into()), answer));
    }
    let path = PathAndQuery::from_static(method.path());
    let response = match client.server_streaming(request, path, AsItCame).await {
        Ok(response) => response,
        Err(status) => return Err((status, answer)),
    };
    let (metadata, mut messages, _) = response.into_parts();
    answer.fields = metadata.into_headers();
    let mut body = BytesMut::new();
    loop {
        match messages.message().await {
            Ok(Some(message)) => body.put(message),
            Ok(None) => break,
            Err(status) => return Err((status, answer)),
        }
    }
    answer.body = body.freeze();
    match messages.trailers().await {
        Ok(trailers) => answer.trailers = trailers.map(MetadataMap::into_headers).unwrap_or_default(),
        Err(status) => return Err((status, answer)),
    }
    Ok(answer)
}

/// Whether the status was made here, since no answer came, or was nothing but the deadline.
fn has_no_sender(status: &Status) -> bool {
    std::error::Error::source(status).is_some()
        || matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled)
}

fn refused(status: &Status, reason: &str, differing: Option<&String>) -> Told {
    let known = REFUSALS.iter().any(|(code, reasons)| *code == status.code() && reasons.contains(&reason));
    assert!(known, "{:?} {reason}", status.code());
    let after: Option<Duration> = status.get_details_retry_info().and_then(|info| info.retry_delay);
    let differing = differing.map(|parts| parts.split(',').map(str::to_owned).collect());
    Told::refused(&reason.to_lowercase().replace('_', "-"), after, differing.unwrap_or_default())
}

fn told(code: Code, answer: Answer) -> Told {
    let end = match code {
        Code::Ok => End::Well,
        Code::Unavailable => End::Unavailable,
        Code::FailedPrecondition => End::Declined,
        other => panic!("no method answers {other:?}"),
    };
    let says_so =
        |fields: &HeaderMap| fields.get("idempotency-replayed").is_some_and(|value| value == "true");
    let is_replay = says_so(&answer.fields) || says_so(&answer.trailers);
    let answer = Answer { end, ..answer };
    if is_replay { Told::Replayed(answer) } else { Told::Ran(answer) }
}

pub(super) async fn number(channel: &Channel, method: Method) -> u64 {
    let request = Request::new(Ask::default().encode_to_vec());
    let answer = answered(channel, request, method).await.unwrap_or_else(|(status, _)| panic!("{status:?}"));
    Reply::decode(answer.body).unwrap().count
}

/// Messages as bytes, neither read nor written.
#[derive(Debug, Clone, Copy, Default)]
struct AsItCame;

impl Codec for AsItCame {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for AsItCame {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, wire: &mut EncodeBuf<'_>) -> Result<(), Status> {
        wire.put_slice(&message);
        Ok(())
    }
}

impl Decoder for AsItCame {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, wire: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(wire.copy_to_bytes(wire.remaining())))
    }
}
