//! JSON in its canonical form (RFC 8785), where I-JSON (RFC 7493) lets it mean one thing only.

use std::{borrow::Cow, io::Write, ops::Range};

use json_event_parser::{JsonEvent, SliceJsonParser};

const MAX_DEPTH: usize = 64;
/// 2^53: here and beyond, a double stands for more than one integer.
const INTEGERS_END: f64 = 9_007_199_254_740_992.0;
/// So many decimal digits a double always tells apart; the canonical form could make one number of two that differ
/// beyond.
const MAX_DIGITS: usize = 15;

/// The canonical form of `body`, if it has one.
pub(super) fn canonical(body: &[u8]) -> Option<Vec<u8>> {
    if body.starts_with(b"\xef\xbb\xbf") {
        return None; // the parser would pass over a byte order mark
    }
    let mut parser = SliceJsonParser::new(body);
    let mut text = Text { out: Vec::with_capacity(body.len()), open: Vec::new() };
    loop {
        match parser.parse_next().ok()? {
            JsonEvent::Eof => return Some(text.out),
            JsonEvent::StartArray => text.open_array()?,
            JsonEvent::EndArray => text.close_array(),
            JsonEvent::StartObject => text.open_object()?,
            JsonEvent::ObjectKey(name) => text.name(name),
            JsonEvent::EndObject => text.close_object()?,
            JsonEvent::String(string) => text.value(|out| quote(out, &string)),
            JsonEvent::Number(literal) => {
                let number = number(&literal)?;
                text.value(|out| out.extend(ryu_js::Buffer::new().format_finite(number).bytes()));
            }
            JsonEvent::Boolean(true) => text.value(|out| out.extend(b"true")),
            JsonEvent::Boolean(false) => text.value(|out| out.extend(b"false")),
            JsonEvent::Null => text.value(|out| out.extend(b"null")),
        }
    }
}

/// The canonical text so far, and what is open in it. The members of an open object stand in it one after the other, as
/// they came and without commas.
struct Text<'a> {
    out: Vec<u8>,
    open: Vec<Open<'a>>,
}

enum Open<'a> {
    Array { empty: bool },
    Object { start: usize, members: Vec<Member<'a>> },
}

struct Member<'a> {
    name: Cow<'a, str>,
    text: Range<usize>,
}

impl<'a> Text<'a> {
    fn value(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(Open::Array { empty }) = self.open.last_mut()
            && !std::mem::replace(empty, false)
        {
            self.out.push(b',');
        }
        write(&mut self.out);
    }

    fn open_array(&mut self) -> Option<()> {
        self.value(|out| out.push(b'['));
        self.open(Open::Array { empty: true })
    }

    fn close_array(&mut self) {
        self.open.pop();
        self.out.push(b']');
    }

    fn open_object(&mut self) -> Option<()> {
        self.value(|_| {});
        self.open(Open::Object { start: self.out.len(), members: Vec::new() })
    }

    fn open(&mut self, open: Open<'a>) -> Option<()> {
        self.open.push(open);
        (self.open.len() <= MAX_DEPTH).then_some(())
    }

    fn name(&mut self, name: Cow<'a, str>) {
        let start = self.out.len();
        quote(&mut self.out, &name);
        self.out.push(b':');
        if let Some(Open::Object { members, .. }) = self.open.last_mut() {
            members.push(Member { name, text: start..start });
        }
    }

    /// Puts the members in order; none may come twice.
    fn close_object(&mut self) -> Option<()> {
        let Some(Open::Object { start, mut members }) = self.open.pop() else { return None };
        let mut end = self.out.len();
        for member in members.iter_mut().rev() {
            member.text.end = std::mem::replace(&mut end, member.text.start);
        }
        members.sort_unstable_by(|one, other| one.name.encode_utf16().cmp(other.name.encode_utf16()));
        if members.windows(2).any(|pair| pair[0].name == pair[1].name) {
            return None;
        }
        let in_order: Vec<_> = members.into_iter().map(|member| &self.out[member.text]).collect();
        let in_order = in_order.join(&b',');
        self.out.truncate(start);
        self.out.push(b'{');
        self.out.extend(in_order);
        self.out.push(b'}');
        Some(())
    }
}

/// The number, unless a double would make it another one.
fn number(literal: &str) -> Option<f64> {
    let number: f64 = literal.parse().ok()?;
    let mantissa = literal.split(['e', 'E']).next().unwrap_or_default();
    let significant = mantissa.trim_start_matches(['-', '0', '.']).trim_end_matches(['0', '.']);
    let digits = significant.bytes().filter(u8::is_ascii_digit).count();
    let held = number.abs() < INTEGERS_END && (number.abs() >= f64::MIN_POSITIVE || digits == 0);
    let exact = literal.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()); // an integer, below 2^53
    (held && (exact || digits <= MAX_DIGITS)).then_some(number)
}

fn quote(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            0x08 => out.extend(b"\\b"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            0x0c => out.extend(b"\\f"),
            b'\r' => out.extend(b"\\r"),
            0..0x20 => write!(out, "\\u{byte:04x}").expect("a vector takes every byte"),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
