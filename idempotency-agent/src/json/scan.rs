//! Walking over JSON text without recursion, so that no nesting exhausts the stack.

use std::borrow::Cow;

use super::NotJson;

/// The one value in `text`, white space around it left out.
pub(super) fn one_value(text: &str) -> Result<&str, NotJson> {
    let start = blank(text, 0);
    let end = value(text, start)?;
    let rest = blank(text, end);
    if rest == text.len() { Ok(&text[start..end]) } else { Err(NotJson { at: rest }) }
}

/// Calls `visit` with the name and the value's text of each member of the one object in `text`.
pub(super) fn each_member<'t>(text: &'t str, visit: impl FnMut(String, &'t str)) -> Result<(), NotJson> {
    let end = object(text, blank(text, 0), visit)?;
    let rest = blank(text, end);
    if rest == text.len() { Ok(()) } else { Err(NotJson { at: rest }) }
}

fn object<'t>(text: &'t str, at: usize, mut visit: impl FnMut(String, &'t str)) -> Result<usize, NotJson> {
    let mut at = blank(text, expect(text, at, b'{')?);
    if byte(text, at) == Some(b'}') {
        return Ok(at + 1);
    }
    loop {
        let end = string(text, at)?;
        let name = unescaped(&text[at + 1..end - 1]).into_owned();
        let start = blank(text, expect(text, blank(text, end), b':')?);
        let end = value(text, start)?;
        visit(name, &text[start..end]);
        at = blank(text, end);
        match byte(text, at) {
            Some(b',') => at = blank(text, at + 1),
            Some(b'}') => return Ok(at + 1),
            _ => return Err(NotJson { at }),
        }
    }
}

/// The items of the one array in `text`.
pub(super) fn items(text: &str) -> Result<Vec<&str>, NotJson> {
    let mut items = Vec::new();
    let mut at = blank(text, expect(text, 0, b'[')?);
    if byte(text, at) == Some(b']') {
        return Ok(items);
    }
    loop {
        let end = value(text, at)?;
        items.push(&text[at..end]);
        at = blank(text, end);
        match byte(text, at) {
            Some(b',') => at = blank(text, at + 1),
            Some(b']') => return Ok(items),
            _ => return Err(NotJson { at }),
        }
    }
}

/// Whether a string of `raw`, a valid value, has half of a surrogate pair in it.
pub(super) fn has_lone_surrogate(raw: &str) -> bool {
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at + 1..];
        let (c, length) = if escape.starts_with('u') { escaped_unit(escape) } else { (' ', 1) };
        if c == '\u{FFFD}' && !escape[1..length].eq_ignore_ascii_case("fffd") {
            return true;
        }
        rest = &escape[length..];
    }
    false
}

/// Where the value that begins at `at` ends. Brackets are matched on a stack of its own.
pub(super) fn value(text: &str, at: usize) -> Result<usize, NotJson> {
    let mut open = Vec::new();
    let mut at = at;
    loop {
        at = match byte(text, at) {
            Some(b'{') => {
                let inside = blank(text, at + 1);
                if byte(text, inside) == Some(b'}') {
                    inside + 1
                } else {
                    open.push(b'}');
                    at = name(text, inside)?;
                    continue;
                }
            }
            Some(b'[') => {
                let inside = blank(text, at + 1);
                if byte(text, inside) == Some(b']') {
                    inside + 1
                } else {
                    open.push(b']');
                    at = inside;
                    continue;
                }
            }
            Some(b'"') => string(text, at)?,
            _ => word(text, at)?,
        };
        // A value ended: so may what is around it.
        loop {
            let Some(&close) = open.last() else { return Ok(at) };
            at = blank(text, at);
            match byte(text, at) {
                Some(b',') if close == b'}' => {
                    at = name(text, blank(text, at + 1))?;
                    break;
                }
                Some(b',') => {
                    at = blank(text, at + 1);
                    break;
                }
                Some(found) if found == close => {
                    open.pop();
                    at += 1;
                }
                _ => return Err(NotJson { at }),
            }
        }
    }
}

/// Passes over a member's name and its colon.
fn name(text: &str, at: usize) -> Result<usize, NotJson> {
    let end = string(text, at)?;
    Ok(blank(text, expect(text, blank(text, end), b':')?))
}

/// Where the string that begins at `at` ends.
pub(super) fn string(text: &str, at: usize) -> Result<usize, NotJson> {
    let bytes = text.as_bytes();
    let mut next = expect(text, at, b'"')?;
    loop {
        match bytes.get(next) {
            Some(b'"') => return Ok(next + 1),
            Some(b'\\') => match bytes.get(next + 1) {
                Some(b'u') if is_hex(bytes.get(next + 2..next + 6)) => next += 6,
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => next += 2,
                _ => return Err(NotJson { at: next }),
            },
            Some(_) => next += 1,
            None => return Err(NotJson { at: next }),
        }
    }
}

fn is_hex(digits: Option<&[u8]>) -> bool {
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// A number or a name such as `true`, those included that only other languages write.
fn word(text: &str, at: usize) -> Result<usize, NotJson> {
    let end = text[at..].find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')));
    let end = end.map_or(text.len(), |length| at + length);
    match &text[at..end] {
        "null" | "true" | "false" | "NaN" | "Infinity" | "-Infinity" => Ok(end),
        number if super::number::is_number(number) => Ok(end),
        _ => Err(NotJson { at }),
    }
}

pub(super) fn blank(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

fn expect(text: &str, at: usize, wanted: u8) -> Result<usize, NotJson> {
    if byte(text, at) == Some(wanted) { Ok(at + 1) } else { Err(NotJson { at }) }
}

/// `text` as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{8}' => quoted.push_str("\\b"),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            '\u{c}' => quoted.push_str("\\f"),
            '\r' => quoted.push_str("\\r"),
            control if control < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

/// The string that `literal` is, if it is one.
pub(super) fn unquoted(literal: &str) -> Option<Cow<'_, str>> {
    let inside = literal.strip_prefix('"')?.strip_suffix('"')?;
    Some(unescaped(inside))
}

/// The characters that the inside of a valid string literal stands for.
fn unescaped(inside: &str) -> Cow<'_, str> {
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let (c, length) = match escape.as_bytes().first() {
            Some(b'u') => escaped_unit(escape),
            Some(b'b') => ('\u{8}', 1),
            Some(b't') => ('\t', 1),
            Some(b'n') => ('\n', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'r') => ('\r', 1),
            Some(&other) => (char::from(other), 1),
            None => break,
        };
        text.push(c);
        rest = &escape[length..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The character of `u` and four hexadecimal digits at the beginning of `escape`, or of a pair of such, and how long it is
/// written.
fn escaped_unit(escape: &str) -> (char, usize) {
    let unit = |at: usize| u32::from_str_radix(escape.get(at..at + 4)?, 16).ok();
    let first = unit(1).unwrap_or(0xFFFD);
    let second = || unit(7).filter(|unit| escape.get(5..7) == Some("\\u") && (0xDC00..0xE000).contains(unit));
    if (0xD800..0xDC00).contains(&first)
        && let Some(second) = second()
    {
        let both = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return (char::from_u32(both).unwrap_or('\u{FFFD}'), 11);
    }
    (char::from_u32(first).unwrap_or('\u{FFFD}'), 5)
}

/// The text that strict parsers accept in the place of `raw`.
pub(super) fn strict(raw: &str) -> String {
    rewritten(
        raw,
        |inside| quoted(&unescaped(inside)),
        |word| match word {
            "NaN" | "Infinity" | "-Infinity" => "null",
            other => other,
        },
    )
}

/// `raw` with NUL left out of its strings.
pub(super) fn without_nul(raw: &str) -> String {
    // An escaped NUL, but not the text of one after an escaped backslash.
    let clean = |inside: &str| {
        let mut clean = String::with_capacity(inside.len() + 2);
        clean.push('"');
        let mut rest = inside;
        while let Some(at) = rest.find('\\') {
            clean.push_str(&rest[..at]);
            let length = if rest[at + 1..].starts_with('u') { 6 } else { 2 };
            if &rest[at..at + length] != "\\u0000" {
                clean.push_str(&rest[at..at + length]);
            }
            rest = &rest[at + length..];
        }
        clean.push_str(rest);
        clean.push('"');
        clean
    };
    rewritten(raw, clean, |word| word)
}

/// `raw`, a valid value, with each string's inside and each other word replaced.
fn rewritten<'r>(
    raw: &'r str,
    text: impl Fn(&'r str) -> String,
    other: impl Fn(&'r str) -> &'r str,
) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut at = 0;
    while let Some(found) = byte(raw, at) {
        let end = match found {
            b'"' => string(raw, at).unwrap_or(raw.len()),
            b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => at + 1,
            _ => word(raw, at).unwrap_or(raw.len()),
        };
        match found {
            b'"' => out.push_str(&text(&raw[at + 1..end - 1])),
            _ => out.push_str(other(&raw[at..end])),
        }
        at = end;
    }
    out
}
