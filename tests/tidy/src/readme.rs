//! READMEs: a crate's README is its front page, so that its snippets compile.

use crate::Offence;

/// Whether a library that has a README shows it as its own documentation. `root` is the text of its `lib.rs`.
pub fn not_the_crate_doc(place: &str, root: &str) -> Option<Offence> {
    let included = root.lines().any(|line| line.trim() == r#"#![doc = include_str!("../README.md")]"#);
    (!included)
        .then(|| Offence::new(place, "its README.md is not its crate documentation, so no snippet is tested"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readme_nobody_compiles_is_found() {
        assert_eq!(not_the_crate_doc("a", "#![doc = include_str!(\"../README.md\")]\npub mod b;"), None);
        assert!(not_the_crate_doc("a", "//! Words of its own.\npub mod b;").is_some());
    }
}
