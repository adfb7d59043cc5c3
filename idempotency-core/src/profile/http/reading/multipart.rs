//! `multipart/form-data` (RFC 7578) without its boundary.
//!
//! A body is cut at its delimiters and nothing else is read: what stands between two of them counts byte for byte, header
//! lines and all. So no two bodies that a handler could tell apart are one payload, and no part's header needs a parser.
//! What RFC 2046 allows around the parts (a preamble, an epilogue, padding after a delimiter) no form client sends; a body
//! that has any is not cut.

use memchr::memmem;

use super::trim_ows;

const MAX_PARTS: usize = 1_000;
const MAX_BOUNDARY_BYTES: usize = 70;

/// The one boundary that a `Content-Type` value names.
pub(super) fn boundary(content_type: &[u8]) -> Option<&[u8]> {
    let parameters = content_type.split(|byte| *byte == b';').skip(1).map(trim_ows);
    let mut boundaries = parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_at_checked(b"boundary=".len())?;
        name.eq_ignore_ascii_case(b"boundary=").then_some(value)
    });
    let value = boundaries.next().filter(|_| boundaries.next().is_none())?;
    let bare = match value {
        [b'"', inner @ .., b'"'] => inner,
        bare => bare,
    };
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
    let fits = (1..=MAX_BOUNDARY_BYTES).contains(&bare.len()) && bare.last() != Some(&b' ');
    (fits && bare.iter().all(allowed)).then_some(bare)
}

/// What stands between the delimiters, in order.
pub(super) fn parts<'a>(body: &'a [u8], boundary: &[u8]) -> Option<Vec<&'a [u8]>> {
    let delimiter = [b"\r\n--", boundary].concat();
    let finder = memmem::Finder::new(&delimiter);
    // The line break before the first delimiter is the one that ends the request's head.
    let mut rest = body.strip_prefix(&delimiter[2..])?;
    let mut parts = Vec::new();
    loop {
        match rest {
            b"--" | b"--\r\n" => return Some(parts),
            [b'\r', b'\n', part @ ..] if parts.len() < MAX_PARTS => {
                // Its own header may be empty, so the delimiter may begin at the line break before the part.
                let end = finder.find(rest)?;
                parts.push(part.get(..end.checked_sub(2)?)?);
                rest = &rest[end + delimiter.len()..];
            }
            _ => return None,
        }
    }
}
