//! Where a body ends, and its chunks.

use super::{Answer, Garbage};

/// The longest line that a chunk begins with, extensions included.
const LONGEST_CHUNK_LINE: usize = 4 * 1024;
const LONGEST_TRAILER: usize = 64 * 1024;

/// How a body is delimited (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delimiter {
    Nothing,
    Length(usize),
    Chunks,
    Close,
}

impl Delimiter {
    pub(super) fn of(answer: &Answer, method: &str) -> Result<Self, Garbage> {
        if method == "HEAD" || matches!(answer.status, 101 | 204 | 304) {
            return Ok(Self::Nothing);
        }
        if let Some(codings) = answer.field("transfer-encoding") {
            let last = codings.rsplit(',').next().unwrap_or_default().trim();
            return Ok(if last.eq_ignore_ascii_case("chunked") { Self::Chunks } else { Self::Close });
        }
        let mut lengths = answer.lines("content-length");
        lengths.dedup();
        match lengths.as_slice() {
            [] => Ok(Self::Close),
            // A sign is none of the grammar's digits.
            [length] if length.trim().bytes().all(|byte| byte.is_ascii_digit()) => {
                length.trim().parse().map(Self::Length).map_err(|_| Garbage::Length)
            }
            _ => Err(Garbage::Length),
        }
    }
}

/// What of `received` are whole chunks: how many bytes they took, and whether the last one was among them. Their data is
/// appended to `body`.
pub(super) fn take_chunks(received: &[u8], body: &mut Vec<u8>) -> Result<(usize, bool), Garbage> {
    let mut at = 0;
    loop {
        let rest = &received[at..];
        let (begins, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete((begins, size))) => (begins, size),
            // It is read again from its start whenever more has come.
            Ok(httparse::Status::Partial) if rest.len() > LONGEST_CHUNK_LINE => return Err(Garbage::Chunk),
            Ok(httparse::Status::Partial) => return Ok((at, false)),
            Err(_) => return Err(Garbage::Chunk),
        };
        if size == 0 {
            let trailer = &rest[begins..];
            let mut fields = [httparse::EMPTY_HEADER; 64];
            return match httparse::parse_headers(trailer, &mut fields) {
                Ok(httparse::Status::Complete((length, _))) => Ok((at + begins + length, true)),
                Ok(httparse::Status::Partial) if trailer.len() <= LONGEST_TRAILER => Ok((at, false)),
                Ok(httparse::Status::Partial) | Err(_) => Err(Garbage::Trailer),
            };
        }
        let size = usize::try_from(size).map_err(|_| Garbage::Chunk)?;
        let ends = begins.checked_add(size).ok_or(Garbage::Chunk)?;
        match (rest.get(begins..ends), rest.get(ends..ends.saturating_add(2))) {
            (Some(data), Some(b"\r\n")) => body.extend_from_slice(data),
            (_, Some(_)) => return Err(Garbage::Chunk),
            _ => return Ok((at, false)),
        }
        at += ends + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(received: &[u8]) -> Result<(usize, bool, Vec<u8>), Garbage> {
        let mut body = Vec::new();
        take_chunks(received, &mut body).map(|(taken, is_last)| (taken, is_last, body))
    }

    #[test]
    fn chunks_are_taken_whole_and_the_rest_stays() {
        assert_eq!(take(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\nHTTP").unwrap(), (24, true, b"abcde".to_vec()));
        assert_eq!(take(b"3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n").unwrap(), (23, true, b"abc".to_vec()));
        for cut in [b"".as_slice(), b"3", b"3\r\nab", b"3\r\nabc\r"] {
            assert_eq!(take(cut).unwrap(), (0, false, Vec::new()));
        }
        assert_eq!(take(b"1\r\na\r\n0\r\n").unwrap(), (6, false, b"a".to_vec()));
    }

    #[test]
    fn malformed_chunks_are_found() {
        for wrong in
            [b"x\r\nabc\r\n".as_slice(), b"2\r\nabc\r\n", b"ffffffffffffffffff\r\n", b"0\r\n: \r\n\r\n"]
        {
            assert!(take(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn a_line_or_a_trailer_without_end_is_given_up() {
        let endless = |begin: &str, length: usize| [begin.as_bytes(), &vec![b'x'; length]].concat();
        assert_eq!(take(&endless("5;", LONGEST_CHUNK_LINE / 2)).unwrap().0, 0);
        assert!(matches!(take(&endless("5;", LONGEST_CHUNK_LINE)), Err(Garbage::Chunk)));
        assert!(!take(&endless("0\r\nA: ", LONGEST_TRAILER / 2)).unwrap().1);
        assert!(matches!(take(&endless("0\r\nA: ", LONGEST_TRAILER)), Err(Garbage::Trailer)));
    }

    #[test]
    fn the_head_says_where_a_body_ends() {
        let answer = |status, fields: &[(&str, &str)]| Answer {
            status,
            fields: fields.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..Answer::default()
        };
        let of = |status, fields: &[(&str, &str)]| Delimiter::of(&answer(status, fields), "POST");
        assert_eq!(of(200, &[]).unwrap(), Delimiter::Close);
        assert_eq!(of(204, &[("Content-Length", "3")]).unwrap(), Delimiter::Nothing);
        assert_eq!(
            of(200, &[("content-length", "3"), ("Content-Length", "3")]).unwrap(),
            Delimiter::Length(3)
        );
        let both = [("Content-Length", "3"), ("Transfer-Encoding", "gzip, chunked")];
        assert_eq!(of(200, &both).unwrap(), Delimiter::Chunks);
        assert!(of(200, &[("Content-Length", "3"), ("Content-Length", "4")]).is_err());
        for wrong in ["three", "+3", "-3", "", "3.0", "99999999999999999999"] {
            assert!(of(200, &[("Content-Length", wrong)]).is_err(), "{wrong}");
        }
        assert_eq!(
            Delimiter::of(&answer(200, &[("Content-Length", "3")]), "HEAD").unwrap(),
            Delimiter::Nothing
        );
    }
}
