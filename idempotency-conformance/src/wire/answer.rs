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
    /// Whether its version of HTTP keeps connections open unless somebody says otherwise.
    pub(crate) is_of_http_1_1: bool,
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

    /// Whether it says that nothing follows it on its connection.
    pub(crate) fn ends_its_connection(&self) -> bool {
        let options = self.field("connection").unwrap_or_default();
        let says = |option: &str| options.split(',').any(|said| said.trim().eq_ignore_ascii_case(option));
        says("close") || !(self.is_of_http_1_1 || says("keep-alive"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_whether_another_one_can_follow() {
        let ends = |is_of_http_1_1, options: &[&str]| {
            let fields = options.iter().map(|option| ("connection".to_owned(), option.as_bytes().to_vec()));
            Answer { fields: fields.collect(), is_of_http_1_1, ..Answer::default() }.ends_its_connection()
        };
        assert!(!ends(true, &[]) && !ends(true, &["upgrade"]) && !ends(false, &["Keep-Alive"]));
        assert!(ends(false, &[]) && ends(true, &["Close"]) && ends(true, &["upgrade", "foo, close"]));
    }
}
