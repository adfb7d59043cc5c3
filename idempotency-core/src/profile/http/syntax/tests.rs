use super::*;

const BOTH: [KeySyntax; 2] = [KeySyntax::Lenient, KeySyntax::Strict];

fn read(syntax: KeySyntax, line: &[u8]) -> Result<String, KeyRule> {
    syntax.read([line]).map(|key| key.expect("a line is never read as no key").as_str().to_owned())
}

#[test]
fn no_line_is_no_key_and_two_lines_are_an_error() {
    for syntax in BOTH {
        assert_eq!(syntax.read([]), Ok(None));
        assert_eq!(syntax.read([b"\"k\"".as_slice(), b"\"k\""]), Err(KeyRule::Repeated));
        assert_eq!(syntax.read([b"".as_slice(), b""]), Err(KeyRule::Repeated));
    }
}

#[test]
fn quoted_and_bare_are_one_key() {
    let spellings: [&[u8]; 8] = [
        b"k-1",
        b" k-1\t",
        b"\"k-1\"",
        b"\t \"k-1\" ",
        b"\"k-1\";v=1",
        b"\"k-1\"; v=1;w",
        b"\"k-1\";a=\"x, y\"",
        b"\"k-1\";q=1.5;b=?0;t=:aGk=:",
    ];
    for spelling in spellings {
        assert_eq!(read(KeySyntax::Lenient, spelling).unwrap(), "k-1", "{spelling:?}");
    }
    assert_eq!(KeySyntax::default(), KeySyntax::Lenient);
}

#[test]
fn a_quoted_key_is_unescaped_and_may_hold_separators() {
    for syntax in BOTH {
        assert_eq!(read(syntax, br#""a\"b\\c""#).unwrap(), r#"a"b\c"#);
        assert_eq!(read(syntax, br#""\"""#).unwrap(), "\"");
        assert_eq!(read(syntax, b"\"a b, c; d\"").unwrap(), "a b, c; d");
        assert_eq!(read(syntax, b"\" \"").unwrap(), " ");
    }
}

#[test]
fn a_bare_key_is_any_visible_ascii_but_separators() {
    let visible: Vec<u8> = (0x21..0x7f).filter(|byte| !b"\",".contains(byte)).collect();
    assert_eq!(read(KeySyntax::Lenient, &visible).unwrap().as_bytes(), visible);
    for line in [b"a b".as_slice(), b"a,b", b"a, b", b"a\"b", b"a\"", b",", b"k, \"k\""] {
        assert_eq!(read(KeySyntax::Lenient, line), Err(KeyRule::BareSeparator), "{line:?}");
    }
}

#[test]
fn strict_reads_quoted_strings_only() {
    for line in
        [b"k".as_slice(), b"123", b"?1", b":aGk=:", b"(\"k\")", b"4a8e6f0c-4b6a-4f5e-9d57-000000000000"]
    {
        assert_eq!(read(KeySyntax::Strict, line), Err(KeyRule::NotQuoted), "{line:?}");
    }
    assert_eq!(read(KeySyntax::Strict, b" \"k\";v=1 ").unwrap(), "k");
}

#[test]
fn malformed_keys_name_the_rule_they_break() {
    let not_ascii = KeyRule::Key(KeyError::NotVisibleAscii);
    let cases: [(&[u8], KeyRule); 24] = [
        (b"", KeyRule::Key(KeyError::Empty)),
        (b" \t ", KeyRule::Key(KeyError::Empty)),
        (b"\"\"", KeyRule::Key(KeyError::Empty)),
        (b"\"\";v=1", KeyRule::Key(KeyError::Empty)),
        (b"\"", KeyRule::Unterminated),
        (b"\"abc", KeyRule::Unterminated),
        (b"\"abc\\", KeyRule::Unterminated),
        (b"\"abc\\\"", KeyRule::Unterminated),
        (br#""a\x""#, KeyRule::BadEscape),
        (b"\"a\\\xff\"", KeyRule::BadEscape),
        (b"\"a\"b", KeyRule::AfterQuote),
        (b"\"a\" b", KeyRule::AfterQuote),
        (b"\"a\"\tb", KeyRule::AfterQuote),
        (b"\"a\", \"b\"", KeyRule::AfterQuote),
        (b"\"a\",\"a\"", KeyRule::AfterQuote),
        (b"\"a\";", KeyRule::AfterQuote),
        (b"\"a\";V=1", KeyRule::AfterQuote),
        (b"\"a\"\xa0", KeyRule::AfterQuote),
        (b"\"a\tb\"", not_ascii),
        (b"\"a\x00b\"", not_ascii),
        (b"\"\x7f\"", not_ascii),
        ("\"clé\"".as_bytes(), not_ascii),
        (b"\"\xff\"", not_ascii),
        ("\"🔑\"".as_bytes(), not_ascii),
    ];
    for syntax in BOTH {
        for (line, rule) in cases {
            assert_eq!(read(syntax, line), Err(rule), "{syntax:?} {line:?}");
        }
    }
}

#[test]
fn bare_bytes_outside_visible_ascii_are_refused() {
    for line in
        [b"a\tb".as_slice(), b"\x7f", b"\x0bk", b"k\x0c", b"\xa0k", "clé".as_bytes(), b"\xff\xfe", b"a\x00"]
    {
        let refused = read(KeySyntax::Lenient, line);
        assert_eq!(refused, Err(KeyRule::Key(KeyError::NotVisibleAscii)), "{line:?}");
    }
}

#[test]
fn length_counts_after_unescaping_and_nothing_is_cut() {
    let quoted = |text: &str| format!("\"{text}\"").into_bytes();
    assert_eq!(read(KeySyntax::Lenient, "a".repeat(255).as_bytes()).unwrap().len(), 255);
    assert_eq!(read(KeySyntax::Strict, &quoted(&"a".repeat(255))).unwrap().len(), 255);
    assert_eq!(read(KeySyntax::Strict, &quoted(&"\\\\".repeat(255))).unwrap(), "\\".repeat(255));
    for length in [256, 257, 8000] {
        let too_long = Err(KeyRule::Key(KeyError::TooLong));
        assert_eq!(read(KeySyntax::Lenient, "a".repeat(length).as_bytes()), too_long, "{length}");
        assert_eq!(read(KeySyntax::Lenient, &quoted(&"a".repeat(length))), too_long, "{length}");
        assert_eq!(read(KeySyntax::Strict, &quoted(&"\\\"".repeat(length))), too_long, "{length}");
    }
}

#[test]
fn keys_keep_their_case() {
    assert_ne!(KeySyntax::Lenient.read([b"AbC".as_slice()]), KeySyntax::Lenient.read([b"aBc".as_slice()]));
}

#[test]
fn every_pair_of_bytes_in_quotes_is_a_key_or_an_error_and_never_no_key() {
    for first in 0..=u8::MAX {
        for second in 0..=u8::MAX {
            for line in [vec![first, second], vec![b'"', first, second, b'"'], vec![b'"', first, second]] {
                for syntax in BOTH {
                    if let Ok(key) = read(syntax, &line) {
                        assert!(!key.is_empty() && key.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
                    }
                }
            }
        }
    }
}
