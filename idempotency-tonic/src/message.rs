//! What a request's body says, without how it is framed and compressed.

use std::io::Read;

use bytes::Bytes;
use flate2::read::{GzDecoder, ZlibDecoder};
use http::{HeaderName, HeaderValue, request::Parts};

/// Flag and length before every message.
pub(crate) const PREFIX: usize = 5;

/// How long a message may become when it is decompressed for its fingerprint, in bytes: as long as tonic reads one unless
/// it is told otherwise. More is compared as it came.
const LONGEST: usize = 4 << 20;

/// Before every message of what is compared.
const LENGTH: usize = size_of::<u64>();

const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// The messages of a body, each by its length and decompressed where it was compressed: a retry may choose another
/// compression. A body that is not framed, or whose compression is neither gzip nor deflate, is itself, marked so.
pub(crate) fn meaning(parts: &Parts, body: &Bytes) -> Bytes {
    const AS_MESSAGES: u8 = 1;
    const AS_IT_CAME: u8 = 0;
    let mut said = Vec::with_capacity(body.len() + PREFIX);
    said.push(AS_MESSAGES);
    if put_messages(parts, body, &mut said).is_none() {
        said.clear();
        said.push(AS_IT_CAME);
        said.extend_from_slice(body);
    }
    said.into()
}

fn put_messages(parts: &Parts, mut body: &[u8], said: &mut Vec<u8>) -> Option<()> {
    let encoding = parts.headers.get(GRPC_ENCODING).map(HeaderValue::as_bytes);
    while !body.is_empty() {
        let (prefix, rest) = body.split_first_chunk::<PREFIX>()?;
        let [flag, length @ ..] = *prefix;
        let (message, rest) = rest.split_at_checked(u32::from_be_bytes(length) as usize)?;
        body = rest;
        match flag {
            0 => put(message, said),
            1 => put_decompressed(encoding?, message, said)?,
            _ => return None,
        }
    }
    Some(())
}

fn put(message: &[u8], said: &mut Vec<u8>) {
    said.extend_from_slice(&(message.len() as u64).to_be_bytes());
    said.extend_from_slice(message);
}

fn put_decompressed(encoding: &[u8], message: &[u8], said: &mut Vec<u8>) -> Option<()> {
    let start = said.len();
    said.extend_from_slice(&[0; LENGTH]);
    let limit = LONGEST as u64 + 1;
    let read = match encoding {
        b"gzip" => GzDecoder::new(message).take(limit).read_to_end(said),
        b"deflate" => ZlibDecoder::new(message).take(limit).read_to_end(said),
        _ => return None,
    };
    let length = read.ok().filter(|length| *length <= LONGEST)? as u64;
    said[start..start + LENGTH].copy_from_slice(&length.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use http::Request;

    use super::*;

    fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap();
        [&[flag][..], &length.to_be_bytes(), message].concat()
    }

    fn gzip(message: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(message).unwrap();
        encoder.finish().unwrap()
    }

    fn said(encoding: Option<&str>, body: Vec<u8>) -> Bytes {
        let request = Request::post("/").body(()).unwrap();
        let mut parts = request.into_parts().0;
        if let Some(encoding) = encoding {
            parts.headers.insert(GRPC_ENCODING, encoding.parse().unwrap());
        }
        meaning(&parts, &body.into())
    }

    #[test]
    fn compression_does_not_count_and_messages_do() {
        let text = "tea ".repeat(1_000);
        let plain = said(None, framed(0, text.as_bytes()));
        for level in [0, 9] {
            assert_eq!(said(Some("gzip"), framed(1, &gzip(text.as_bytes(), level))), plain);
        }
        assert_eq!(said(Some("gzip"), framed(0, text.as_bytes())), plain);
        assert_ne!(said(None, framed(0, b"coffee")), plain);
        assert_ne!(said(None, [framed(0, b"te"), framed(0, b"a")].concat()), said(None, framed(0, b"tea")));
        assert_ne!(said(None, Vec::new()), said(None, framed(0, b"")));
    }

    #[test]
    fn what_cannot_be_read_is_compared_as_it_came() {
        let unread = [
            said(None, b"tea".to_vec()),
            said(None, framed(0, b"tea")[..7].to_vec()),
            said(None, framed(2, b"tea")),
            said(None, framed(1, b"tea")),
            said(Some("gzip"), framed(1, b"tea")),
            said(Some("zstd"), framed(1, b"tea")),
        ];
        for said in &unread {
            assert_eq!(said[0], 0, "{said:?}");
        }
        let [longest, bomb] = [0, 1].map(|more| gzip(&vec![0; LONGEST + more], 9));
        assert_eq!(said(Some("gzip"), framed(1, &longest))[0], 1);
        assert_eq!(said(Some("gzip"), framed(1, &bomb))[0], 0);
    }
}
