//! Sizes: a file and a function hold one idea each.

use crate::{
    Offence,
    source::{code, production},
};

/// The most lines a file has before its tests.
pub const FILE_LINES: usize = 400;
/// The most lines a function has, from its name to its closing brace.
pub const FUNCTION_LINES: usize = 70;

/// Whether the file, and which functions in it, are too long.
pub fn too_long(place: &str, text: &str) -> Vec<Offence> {
    let code = code(text);
    let mut offences = functions_too_long(place, &code);
    let lines = production(&code).lines().count();
    if lines > FILE_LINES {
        offences.push(Offence::new(place, format!("{lines} lines before its tests, more than {FILE_LINES}")));
    }
    offences
}

fn functions_too_long(place: &str, code: &str) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let begins_a_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let name =
            code[at + 3..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        if !begins_a_word || name.is_empty() {
            continue;
        }
        let lines = body_end(&code[at..]).map_or(0, |end| code[at..at + end].lines().count());
        if lines > FUNCTION_LINES {
            let why = format!("the function `{name}` has {lines} lines, more than {FUNCTION_LINES}");
            offences.push(Offence::new(place, why));
        }
    }
    offences
}

/// Where the body of the function that begins `code` ends; a function without one has none. A semicolon inside
/// brackets is an array's.
fn body_end(code: &str) -> Option<usize> {
    let (mut braces, mut brackets) = (0usize, 0usize);
    for (at, c) in code.char_indices() {
        match c {
            '[' => brackets += 1,
            ']' => brackets = brackets.saturating_sub(1),
            ';' if braces == 0 && brackets == 0 => return None,
            '{' => braces += 1,
            '}' if braces <= 1 => return Some(at + 1),
            '}' => braces -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!("fn long(a: [u8; 4]) {{ // {{\n{}}}\n", "    let open = '{';\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_found() {
        assert_eq!(too_long("a.rs", &function(FUNCTION_LINES)), []);
        let found = too_long("a.rs", &format!("fn short() {{}}\n{}", function(FUNCTION_LINES + 1)));
        assert_eq!(found, [Offence::new("a.rs", "the function `long` has 71 lines, more than 70")]);
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let tests = format!("#[cfg(test)]\n{}", "\n".repeat(FILE_LINES));
        assert_eq!(too_long("a.rs", &format!("{}{tests}", "const A: u8 = 0;\n".repeat(FILE_LINES))), []);
        let found = too_long("a.rs", &format!("{}{tests}", "const A: u8 = 0;\n".repeat(FILE_LINES + 1)));
        assert_eq!(found, [Offence::new("a.rs", "401 lines before its tests, more than 400")]);
    }

    #[test]
    fn a_declaration_has_no_length() {
        let text = format!("trait T {{ fn declared(&self); }}\n{}", "\n".repeat(FUNCTION_LINES + 1));
        assert_eq!(too_long("a.rs", &text), []);
    }
}
