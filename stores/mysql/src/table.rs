//! The name of a table.

use crate::OpenError;

/// The name of a table of records: what needs no thought about quoting, lengths or collations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table(String);

impl Table {
    pub(crate) const DEFAULT: &str = "idempotency_records";

    /// The table that says which version each of the others has.
    const VERSIONS: &str = "idempotency_schema";

    /// MySQL's own bound.
    const MOST_BYTES: usize = 64;

    pub(crate) fn named(name: &str) -> Result<Self, OpenError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let fits = (1..=Self::MOST_BYTES).contains(&name.len()) && name.chars().all(plain);
        if fits && !name.eq_ignore_ascii_case(Self::VERSIONS) {
            Ok(Self(name.to_owned()))
        } else {
            Err(OpenError::Name)
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    pub(crate) fn quoted(&self) -> String {
        format!("`{}`", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_be_read_as_more_than_a_name_is_refused() {
        let longest = "a".repeat(64);
        for name in [Table::DEFAULT, "A1_", "1", &longest] {
            assert_eq!(Table::named(name).unwrap().quoted(), format!("`{name}`"));
        }
        for name in ["", "a b", "a`b", "a.b", "a;b", "a-b", "ä", "a\0", &"a".repeat(65), "Idempotency_Schema"]
        {
            assert!(matches!(Table::named(name), Err(OpenError::Name)), "{name:?}");
        }
    }
}
