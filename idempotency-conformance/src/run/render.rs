//! A request of a vector as bytes.

use crate::{
    run::{Options, Spelling, words::Words},
    vector::{Bytes, Framing, Request},
    wire::{Message, Target},
};

/// The longest foreign key that gets a suffix: one that is about its length must keep it.
const LONGEST_SUFFIXED: usize = 200;

/// The request as it is sent in this turn.
pub(super) fn render(request: &Request, words: &Words, target: &Target, options: &Options) -> Message {
    let method = request.method.clone().unwrap_or_else(|| "POST".to_owned());
    if let Some(raw) = &request.raw {
        return Message { method, head: words.bytes(raw), ..Message::default() };
    }
    let mut head = format!("{method} {} HTTP/1.1\r\n", target.path(&words.text(&request.path))).into_bytes();
    let mut line = |name: &str, value: &[u8]| {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    };
    line("Host", target.authority().as_bytes());
    let key_header =
        if request.small_letters { options.header.to_lowercase() } else { options.header.clone() };
    if let Some(key) = &request.key {
        line(&key_header, &spelled(&words.bytes(key), options.spelling));
    }
    for key_line in &request.key_lines {
        line(&key_header, &words.bytes(key_line));
    }
    if let Some((name, value)) = caller(request, words, options) {
        line(&name, value.as_bytes());
    }
    if let Some(count_as) = words.count_as().filter(|_| !request.is_foreign) {
        line("X-Count-As", count_as.as_bytes());
    }
    if !request.is_foreign
        && let Some(content_type) = content_type(request)
    {
        line("Content-Type", content_type.as_bytes());
    }
    for (name, value) in &request.headers {
        if request.is_foreign && name.eq_ignore_ascii_case("idempotency-key") {
            // Its spelling may be what the vector is about.
            let is_renamed = !options.header.eq_ignore_ascii_case(name);
            let name = if is_renamed { &options.header } else { name };
            line(name, &suffixed(value, words.suffix()));
        } else {
            line(name, &words.bytes(value));
        }
    }
    let payload = match request.framing {
        Framing::Length => {
            let body = request.body.as_ref().map(|body| words.bytes(body)).unwrap_or_default();
            let length = request.declared_length.unwrap_or(body.len() as u64);
            if request.body.is_some() || !matches!(method.as_str(), "GET" | "HEAD") {
                line("Content-Length", length.to_string().as_bytes());
            }
            body
        }
        Framing::Chunked => {
            line("Transfer-Encoding", b"chunked");
            chunked(request, words)
        }
    };
    if request.awaits_continue {
        line("Expect", b"100-continue");
    }
    head.extend_from_slice(b"\r\n");
    Message { method, head, payload, awaits_continue: request.awaits_continue }
}

fn content_type(request: &Request) -> Option<&str> {
    let has_body = request.body.is_some() || !request.chunks.is_empty();
    request.content_type.as_deref().or(has_body.then_some("text/plain"))
}

/// A quoted string of RFC 9651, or the key as it is.
fn spelled(key: &[u8], spelling: Spelling) -> Vec<u8> {
    match spelling {
        Spelling::Bare => key.to_vec(),
        Spelling::Quoted => {
            let mut quoted = vec![b'"'];
            for byte in key {
                if matches!(byte, b'"' | b'\\') {
                    quoted.push(b'\\');
                }
                quoted.push(*byte);
            }
            quoted.push(b'"');
            quoted
        }
    }
}

/// A key of a foreign vector, its own in this grading.
fn suffixed(value: &Bytes, suffix: &str) -> Vec<u8> {
    let Bytes::Text(text) = value else { return Vec::new() };
    if text == "\"\"" || text.len() > LONGEST_SUFFIXED || suffix.is_empty() {
        return text.clone().into_bytes();
    }
    match text.strip_suffix('"') {
        Some(open) => format!("{open}-{suffix}\"").into_bytes(),
        None => format!("{text}-{suffix}").into_bytes(),
    }
}

/// The field that says who asks.
fn caller(request: &Request, words: &Words, options: &Options) -> Option<(String, String)> {
    match (&options.caller_header, &request.caller) {
        (None, None) => None,
        (None, Some(caller)) => Some(("Authorization".to_owned(), format!("Bearer {}", words.text(caller)))),
        (Some(name), None) => Some((name.clone(), "somebody".to_owned())),
        (Some(name), Some(caller)) => Some((name.clone(), words.text(caller))),
    }
}

fn chunked(request: &Request, words: &Words) -> Vec<u8> {
    let chunks = if request.chunks.is_empty() { request.body.as_slice() } else { &request.chunks };
    let mut payload = Vec::new();
    for chunk in chunks.iter().map(|chunk| words.bytes(chunk)).filter(|chunk| !chunk.is_empty()) {
        payload.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        payload.extend_from_slice(&chunk);
        payload.extend_from_slice(b"\r\n");
    }
    payload.extend_from_slice(b"0\r\n\r\n");
    payload
}

#[cfg(test)]
mod tests;
