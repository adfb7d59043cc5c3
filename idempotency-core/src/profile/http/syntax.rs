//! Reading the key: `Idempotency-Key` header lines to a [`Key`], or the rule they break.

use sfv::{BareItemFromInput, Parser};

use crate::{Key, KeyError};

/// Which spellings of a key are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KeySyntax {
    /// A quoted string (RFC 9651), unescaped; or a bare run of visible ASCII without quote, comma and space. `"k"` and
    /// `k` are one key. The default, since most clients in the field never quote.
    #[default]
    Lenient,
    /// A quoted string only, as draft-ietf-httpapi-idempotency-key-header says.
    Strict,
}

impl KeySyntax {
    /// Reads the values of all lines of the header. No line is no key; a line that holds none is an error, never
    /// "no key", since its sender asked for protection.
    ///
    /// Spaces and tabs around a value are dropped; parameters after a quoted string are ignored.
    ///
    /// # Errors
    /// [`KeyRule`] names the rule that the lines break.
    pub fn read<'a>(self, lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Key>, KeyRule> {
        let mut lines = lines.into_iter();
        let Some(line) = lines.next() else { return Ok(None) };
        if lines.next().is_some() {
            return Err(KeyRule::Repeated);
        }
        let text = trim_ows(line);
        let key = match (self, text.first()) {
            (_, None) => return Err(KeyError::Empty.into()),
            (_, Some(b'"')) => read_quoted(text)?,
            (Self::Lenient, Some(_)) => read_bare(text)?,
            (Self::Strict, Some(_)) => return Err(KeyRule::NotQuoted),
        };
        Ok(Some(key))
    }
}

/// The rule that the lines of a key header break. Its text is fit for a caller: no character of a key is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyRule {
    /// One header line names one key.
    #[error("the key header is given more than once")]
    Repeated,
    /// [`KeySyntax::Strict`] reads quoted strings only.
    #[error("the key is not a quoted string, as RFC 9651 spells one")]
    NotQuoted,
    /// A quoted string ends with a quote.
    #[error("the quoted key has no closing quote")]
    Unterminated,
    /// A backslash stands before a quote or another backslash only.
    #[error("the quoted key escapes a character other than a quote or a backslash")]
    BadEscape,
    /// Parameters may follow a quoted string, and nothing else: no second member, no text.
    #[error("the quoted key is followed by something that is not a parameter")]
    AfterQuote,
    /// Only a quoted key may hold a separator.
    #[error("an unquoted key holds a space, a comma or a quote")]
    BareSeparator,
    /// What the header holds cannot be a key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

fn read_quoted(text: &[u8]) -> Result<Key, KeyRule> {
    match Parser::new(text).parse_item::<BareItemFromInput<'_>>() {
        Ok(BareItemFromInput::String(string)) => Ok(Key::new(string.as_str())?),
        Ok(_) => Err(KeyRule::NotQuoted),
        Err(_) => Err(broken_rule(text)),
    }
}

fn read_bare(text: &[u8]) -> Result<Key, KeyRule> {
    let text = str::from_utf8(text).map_err(|_| KeyError::NotVisibleAscii)?;
    let key = Key::new(text)?;
    if text.bytes().fold(false, |separates, byte| separates | matches!(byte, b' ' | b',' | b'"')) {
        return Err(KeyRule::BareSeparator);
    }
    Ok(key)
}

/// Why `text`, which starts with a quote, is no string item. The parser's own error does not say it by kind.
fn broken_rule(text: &[u8]) -> KeyRule {
    let mut bytes = text.iter().skip(1);
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return KeyRule::AfterQuote,
            b'\\' => match bytes.next() {
                Some(b'"' | b'\\') => {}
                Some(_) => return KeyRule::BadEscape,
                None => return KeyRule::Unterminated,
            },
            b' '..=b'~' => {}
            _ => return KeyError::NotVisibleAscii.into(),
        }
    }
    KeyRule::Unterminated
}

/// Drops HTTP's optional white space, and no other, from both ends.
pub(super) fn trim_ows(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests;
