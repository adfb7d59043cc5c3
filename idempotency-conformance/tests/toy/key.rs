//! What a request says about itself: its key, its caller, its payload.

use super::{fault::Fault, http::Head};

/// The key of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Missing,
    Invalid,
    Some(String),
}

pub(crate) fn key(head: &Head, fault: Option<Fault>) -> Key {
    let is = |wrong| fault == Some(wrong);
    let mut lines = head.lines("idempotency-key");
    if is(Fault::FieldNameCaseMatters) {
        lines = head.fields.iter().filter(|f| f.0 == "Idempotency-Key").map(|f| f.1.as_slice()).collect();
    }
    let line = match lines.as_slice() {
        [] => return Key::Missing,
        [line] => *line,
        [first, ..] if is(Fault::FirstKeyLineWins) => *first,
        _ => return Key::Invalid,
    };
    let text = match std::str::from_utf8(line) {
        Ok(text) if text.is_ascii() || is(Fault::NonAsciiAccepted) => text.trim(),
        _ => return Key::Invalid,
    };
    if is(Fault::QuotesRefused) && text.contains('"') {
        return Key::Invalid;
    }
    let key = match read(text, fault) {
        Some(key) => key,
        None if is(Fault::EmptyKeyAccepted) && text.trim_matches('"').is_empty() => String::new(),
        None => return Key::Invalid,
    };
    let cut = |key: String, at: usize| key.chars().take(at).collect::<String>();
    match key.len() {
        _ if is(Fault::NewerUuidsRefused)
            && uuid::Uuid::parse_str(&key).is_ok_and(|uuid| uuid.get_version_num() > 5) =>
        {
            Key::Invalid
        }
        _ if is(Fault::OnlyUuidsAccepted) && uuid::Uuid::parse_str(&key).is_err() => Key::Invalid,
        256.. if is(Fault::OverLongKeysCut) => Key::Some(cut(key, 255)),
        256.. => Key::Invalid,
        _ if is(Fault::LongKeysCut) => Key::Some(cut(key, 64)),
        _ if is(Fault::KeysFolded) => Key::Some(key.to_lowercase()),
        _ => Key::Some(key),
    }
}

fn read(text: &str, fault: Option<Fault>) -> Option<String> {
    let is = |wrong| fault == Some(wrong);
    if is(Fault::EscapesDropped) {
        return Some(text.replace(['"', '\\'], ""));
    }
    if is(Fault::UnbalancedQuotesAccepted) && !(text.len() > 1 && text.ends_with('"')) {
        return Some(text.trim_matches('"').to_owned());
    }
    if is(Fault::KeyListsAccepted) && text.contains(',') {
        return Some(text.to_owned());
    }
    if is(Fault::QuotesKept) {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    let Some(inside) = text.strip_prefix('"') else {
        let is_bare = text.bytes().all(|byte| matches!(byte, b'!'..=b'~') && !b"\",".contains(&byte));
        return (is_bare && !text.is_empty()).then(|| text.to_owned());
    };
    let (mut key, mut characters) = (String::new(), inside.chars());
    loop {
        match characters.next()? {
            '"' => break,
            '\\' => match characters.next()? {
                escaped @ ('"' | '\\') => key.push(escaped),
                _ => return None,
            },
            plain => key.push(plain),
        }
    }
    let rest = characters.as_str();
    match rest.chars().next() {
        Some(';') if is(Fault::ParametersKept) => key.push_str(rest),
        Some(';') if is(Fault::NewerParametersRefused) && rest.contains(['@', '%']) => return None,
        None | Some(';') => {}
        Some(_) => return None,
    }
    (!key.is_empty()).then_some(key)
}

/// Under which name the record stands.
pub(crate) fn address(key: &str, head: &Head, body: &[u8], fault: Option<Fault>) -> String {
    let is_shared = matches!(fault, Some(Fault::CallersShareKeys | Fault::CallersShareAnswers));
    let caller = head.text("x-tenant").filter(|_| !is_shared).unwrap_or_default();
    if fault == Some(Fault::PayloadIsTheKey) {
        return format!("{caller:?} {} {body:?}", head.target);
    }
    format!("{caller:?} {key}")
}

/// What was asked.
pub(crate) fn fingerprint(head: &Head, body: &[u8], fault: Option<Fault>) -> String {
    let is = |wrong| fault == Some(wrong);
    let unless = |wrong, text: String| if is(wrong) { String::new() } else { text };
    let mut parts = vec![
        unless(Fault::RouteNotCompared, head.path().to_owned()),
        format!("{body:?}"),
        unless(Fault::CallersShareAnswers, head.text("authorization").unwrap_or_default()),
    ];
    if !is(Fault::BodyAloneInFingerprint) {
        parts.push(unless(Fault::MethodNotCompared, head.method.clone()));
        parts.push(head.query().to_owned());
        let content_type = head.text("content-type").unwrap_or_default();
        parts.push(unless(Fault::ContentTypeNotCompared, content_type));
    }
    if is(Fault::FramingInFingerprint) {
        parts.push(head.is_chunked().to_string());
    }
    format!("{parts:?}")
}
