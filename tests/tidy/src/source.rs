//! Rust text as these rules read it: code without comments, and without what stands in strings.

/// `text` with comments and the insides of string and character literals blanked. Lines stay where they are.
pub fn code(text: &str) -> String {
    let mut rest = text;
    let mut code = String::with_capacity(text.len());
    while let Some(first) = rest.chars().next() {
        let literal = literal_length(rest, code.chars().next_back());
        let length = comment_length(rest).or(literal).unwrap_or(0);
        if length == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (blanked, after) = rest.split_at(length);
        code.push(if literal.is_some() { '_' } else { ' ' });
        code.extend(blanked.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    code
}

/// The part of `code` before its tests.
pub fn production(code: &str) -> &str {
    code.find("#[cfg(test)]").map_or(code, |tests| &code[..tests])
}

/// The first name of every path that begins with `root::`, groups taken apart: `crate::{a::B, C}` names `a` and `C`.
pub fn names_under<'a>(code: &'a str, root: &str) -> Vec<&'a str> {
    let start = format!("{root}::");
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = Vec::new();
    for (at, _) in code.match_indices(&start) {
        if code[..at].ends_with(is_name) {
            continue;
        }
        let path = &code[at + start.len()..];
        let entries = if path.starts_with('{') { top_level_entries(path) } else { vec![path] };
        let first = |entry: &'a str| {
            let entry = entry.trim_start();
            &entry[..entry.find(|c| !is_name(c)).unwrap_or(entry.len())]
        };
        names.extend(entries.into_iter().map(first).filter(|name| !name.is_empty()));
    }
    names
}

/// The entries of a group that begins with `{`, at its own level.
fn top_level_entries(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut entries) = (0, 1, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 1) || depth == 0 {
            entries.push(&group[from..at]);
            from = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    entries
}

fn comment_length(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return Some(at);
        }
    }
    Some(rest.len())
}

fn literal_length(rest: &str, before: Option<char>) -> Option<usize> {
    let begins_a_word = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if begins_a_word && let Some(length) = raw_string_length(rest) {
        return Some(length);
    }
    if let Some(inside) = rest.strip_prefix('"') {
        return Some(1 + closing(inside, '"'));
    }
    // A character, not a lifetime: one character or an escape, then a quote.
    let inside = rest.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        return Some(1 + closing(inside, '\''));
    }
    inside[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8() + 2)
}

/// The length up to and with the first `quote` that is not escaped.
fn closing(inside: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in inside.char_indices() {
        if c == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    inside.len()
}

fn raw_string_length(rest: &str) -> Option<usize> {
    let marker = if rest.starts_with("br") { 2 } else { usize::from(rest.starts_with('r')) };
    let hashes = rest[marker..].bytes().take_while(|byte| *byte == b'#').count();
    let opening = marker + hashes + 1;
    if marker == 0 || rest.as_bytes().get(opening - 1) != Some(&b'"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    Some(rest[opening..].find(&end).map_or(rest.len(), |at| opening + at + end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let text = "a // b {\nc /* d /* e */ { */ f \"g \\\" {\" r#\"h \" {\"# '{' '\\'' b'{' 'life x\n";
        assert_eq!(code(text), "a  \nc   f _ _ _ _ b_ 'life x\n");
        assert_eq!(code("\"one\ntwo\"\nthree"), "_\n\nthree");
    }

    #[test]
    fn paths_are_taken_apart() {
        let code =
            "use crate::{a::{B, C}, D,\n    e};\nfn f() { crate::g::h(); my_crate::i(); } use crate::J;";
        assert_eq!(names_under(code, "crate"), ["a", "D", "e", "g", "J"]);
    }

    #[test]
    fn production_ends_where_tests_begin() {
        assert_eq!(production("a\n#[cfg(test)]\nmod tests;"), "a\n");
        assert_eq!(production("a"), "a");
    }
}
