//! An answer as it came.

use std::time::Duration;

/// An answer as it came, every line of its head included.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// Name and value of each field, in order.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    /// The body without its framing.
    pub(crate) body: Vec<u8>,
    /// Whether the body came to the end that its framing names.
    pub(crate) is_whole: bool,
    /// The statuses before the last one.
    pub(crate) interim: Vec<u16>,
    /// When the first byte of the body was there, counted from the request's first.
    pub(crate) first_byte: Option<Duration>,
    /// When everything was there.
    pub(crate) took: Duration,
    /// How many bytes followed that belong to nothing.
    pub(crate) surplus: usize,
}

impl Answer {
    /// The values of a field, whatever the case of its name.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let lines = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
    }

    /// The values of a field in one line.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let lines = self.lines(name);
        (!lines.is_empty()).then(|| lines.join(", "))
    }

    /// How many fields delimit the body.
    pub(crate) fn framing_fields(&self) -> usize {
        self.lines("content-length").len() + self.lines("transfer-encoding").len()
    }

    /// Whether the status is of the 2xx class.
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}
