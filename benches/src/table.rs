//! A table of texts, its columns as wide as they need.

use std::fmt;

/// A line of a table.
pub type Row = Vec<String>;

/// Rows under a head.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|&name| name.into()).collect()] }
    }

    /// Adds a row below the others.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }
}

/// Markdown.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            for (text, width) in row.iter().zip(&widths) {
                write!(f, "| {text:>width$} ")?;
            }
            writeln!(f, "|")?;
            if number == 0 {
                widths.iter().try_for_each(|width| write!(f, "|{:-<1$}:", "", width + 1))?;
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// `part` as a multiple of `whole`.
pub fn quotient(part: f64, whole: f64) -> String {
    format!("{:.2}x", part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let mut table = Table::new(&["a", "wide"]);
        table.push(vec!["long".into(), quotient(1.0, 4.0)]);
        assert_eq!(table.to_string(), "|    a |  wide |\n|-----:|------:|\n| long | 0.25x |\n");
    }
}
