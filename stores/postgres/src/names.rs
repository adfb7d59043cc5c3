//! The names of what a store has in a database.

use crate::OpenError;

/// The names of a schema and of the table of records in it: what needs no thought about quoting or lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) schema: String,
    pub(crate) records: String,
}

impl Names {
    pub(crate) const RECORDS: &str = "idempotency_records";
    pub(crate) const VERSIONS: &str = "idempotency_schema";

    /// PostgreSQL's bound, above which it would cut a name off.
    const MOST_BYTES: usize = 63;

    /// Leaves room for what is appended to name what belongs to the table.
    const MOST_BYTES_OF_RECORDS: usize = 48;

    pub(crate) fn schema(name: &str) -> Result<&str, OpenError> {
        if is_plain(name, Self::MOST_BYTES) { Ok(name) } else { Err(OpenError::Name) }
    }

    pub(crate) fn records(name: &str) -> Result<&str, OpenError> {
        let fits = is_plain(name, Self::MOST_BYTES_OF_RECORDS);
        if fits && name != Self::VERSIONS { Ok(name) } else { Err(OpenError::Name) }
    }

    /// Replaces the names that stand in a file of `sql/`.
    pub(crate) fn fit(&self, text: &str) -> String {
        let Self { schema, records } = self;
        // A schema that is there already may have any name, a quote in it included.
        let schema = schema.replace('"', "\"\"");
        text.replace("{schema}", &format!("\"{schema}\""))
            .replace("{records}", &format!("\"{schema}\".\"{records}\""))
            .replace("{records_key}", &format!("\"{records}_key\""))
            .replace("{records_due}", &format!("\"{records}_due\""))
            .replace("{claim}", &format!("\"{schema}\".\"{records}_claim\""))
            .replace("{versions}", &format!("\"{schema}\".\"{}\"", Self::VERSIONS))
    }
}

fn is_plain(name: &str, most_bytes: usize) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=most_bytes).contains(&name.len()) && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_be_read_as_more_than_a_name_is_refused() {
        for name in [Names::RECORDS, "A1_", "1", &"a".repeat(48)] {
            assert_eq!(Names::records(name).unwrap(), name);
        }
        for name in ["", "a b", "a\"b", "a.b", "a;b", "a-b", "ä", "a\0", &"a".repeat(49), Names::VERSIONS] {
            assert!(matches!(Names::records(name), Err(OpenError::Name)), "{name:?}");
        }
        assert!(Names::schema(&"a".repeat(63)).is_ok() && Names::schema(&"a".repeat(64)).is_err());
    }

    #[test]
    fn names_are_quoted_wherever_they_stand() {
        let names = Names { schema: "Pay \"1\"".to_owned(), records: "t".to_owned() };
        assert_eq!(
            names.fit("{schema} {records} {records_key} {records_due} {claim} {versions}"),
            r#""Pay ""1""" "Pay ""1"""."t" "t_key" "t_due" "Pay ""1"""."t_claim" "Pay ""1"""."idempotency_schema""#
        );
    }
}
