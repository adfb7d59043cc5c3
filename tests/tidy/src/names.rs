//! Words: names that say nothing, and marks of work that is not done.

use std::path::Path;

use crate::{Offence, source::code};

const EMPTY_NAMES: [&str; 8] =
    ["manager", "managers", "helper", "helpers", "util", "utils", "session", "sessions"];
const UNFINISHED: [&str; 4] = ["todo!(", "unimplemented!(", "#[ignore", "dbg!("];

/// Whether a part of `path` is a word that could name anything.
pub fn empty_names(path: &Path) -> Vec<Offence> {
    let place = path.display().to_string();
    let words = place.split(|c: char| !c.is_alphanumeric());
    let empty = words.filter(|word| EMPTY_NAMES.contains(&word.to_lowercase().as_str()));
    empty.map(|word| Offence::new(&place, format!("\"{word}\" says nothing about what is inside"))).collect()
}

/// Which marks of unfinished work stand in the code.
pub fn unfinished(place: &str, text: &str) -> Vec<Offence> {
    let code = code(text);
    let marks = UNFINISHED.into_iter().filter(|mark| code.contains(mark));
    marks.map(|mark| Offence::new(place, format!("`{mark}` is left in it"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_found_in_any_part_of_a_path() {
        assert_eq!(empty_names(Path::new("core/src/lease.rs")), []);
        assert_eq!(empty_names(Path::new("core/src/assessions.rs")), []);
        for path in ["core/src/utils.rs", "helpers/src/lib.rs", "core/src/lease_manager.rs", "a/Session.rs"] {
            assert_eq!(empty_names(Path::new(path)).len(), 1, "{path}");
        }
    }

    #[test]
    fn unfinished_work_is_found_in_code_and_not_in_words_about_it() {
        assert_eq!(unfinished("a.rs", "// todo!( later\nlet a = \"dbg!(\";"), []);
        for text in ["fn f() { todo!() }", "unimplemented!()", "#[ignore = \"slow\"]", "dbg!(a)"] {
            assert_eq!(unfinished("a.rs", text).len(), 1, "{text}");
        }
    }
}
