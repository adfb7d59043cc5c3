use super::*;

const JSON: Option<&[u8]> = Some(b"application/json");

fn json(body: &str) -> BodyContent<'_> {
    BodyReading::default().canonical_json().read(JSON, body.as_bytes())
}

fn canonical(body: &str) -> String {
    match json(body) {
        BodyContent::Json(text) => String::from_utf8(text).unwrap(),
        other => panic!("{body} is {other:?}"),
    }
}

fn form<'a>(boundary: &str, body: &'a str) -> BodyContent<'a> {
    let content_type = format!("multipart/form-data; boundary={boundary}");
    BodyReading::default().multipart_by_part().read(Some(content_type.as_bytes()), body.as_bytes())
}

#[test]
fn by_default_every_byte_counts() {
    for content_type in [None, JSON, Some(b"multipart/form-data; boundary=a")] {
        let read = BodyReading::default().read(content_type, b"{ }");
        assert_eq!(read, BodyContent::Bytes(b"{ }"));
    }
}

#[test]
fn spelling_and_order_of_members_do_not_count() {
    for body in [
        r#"{"a":1,"b":[1,2]}"#,
        "{ \"b\":[1,2],\n\"a\":1 }",
        r#"{"\u0061":1.0,"b":[1e0,20E-1]}"#,
        "\t{\"b\" : [ 1 ,2 ] ,\r\n\"a\": 0.1e1}\n",
    ] {
        assert_eq!(canonical(body), r#"{"a":1,"b":[1,2]}"#);
    }
}

#[test]
fn order_of_arrays_and_types_of_values_count() {
    let bodies =
        ["[1,2]", "[2,1]", "[\"1\",2]", "[1,2,null]", "[true,2]", "[[1,2]]", "{\"a\":[1,2]}", "\"[1,2]\""];
    for (place, one) in bodies.iter().enumerate() {
        for other in &bodies[place + 1..] {
            assert_ne!(canonical(one), canonical(other));
        }
    }
}

/// The examples of RFC 8785, sections 3.2.2 and 3.2.3; of their numbers those that are not compared as spelled.
#[test]
fn the_examples_of_the_rfc_come_out_as_it_says() {
    let body = r#"{
        "numbers": [333333333.333333, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let expected = r#"{"literals":[null,true,false],"numbers":[333333333.333333,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
    assert_eq!(canonical(body), expected);
    let body = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
        "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
    let names = ["Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"];
    let text = canonical(body);
    let places = names.map(|name| text.find(name).unwrap());
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn what_may_mean_two_things_is_compared_byte_for_byte() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(matches!(json(&deep(64)), BodyContent::Json(_)));
    for body in [
        r#"{"a":1,"a":1}"#,
        r#"[{"a":1,"b":2,"\u0061":3}]"#,
        "9007199254740992",
        "9007199254740993",
        "-9007199254740993",
        "9007199254740993.0",
        "1e400",
        "1e-400",
        "1.000000000000000001",
        r#""\ud800""#,
        r#"{"\udc00":1}"#,
        &deep(65),
        "",
        "{",
        "{}{}",
        "{\"a\":1,}",
        "[1,]",
        "01",
        "NaN",
        "'a'",
        "\u{feff}{}",
        "\"\u{1}\"",
    ] {
        assert_eq!(json(body), BodyContent::Unreadable(body.as_bytes()));
    }
    let invalid = BodyReading::default().canonical_json().read(JSON, b"\"\xff\"");
    assert_eq!(invalid, BodyContent::Unreadable(b"\"\xff\""));
}

#[test]
fn numbers_that_a_double_holds_are_one_however_they_are_spelled() {
    for (literal, expected) in [
        ("-0", "0"),
        ("0e5", "0"),
        ("9007199254740991", "9007199254740991"),
        ("1.000000000000000000000", "1"),
        ("10000000000000000e-20", "0.0001"),
        ("1E3", "1000"),
        ("0.10", "0.1"),
    ] {
        assert_eq!(canonical(literal), expected);
    }
}

#[test]
fn decimals_that_a_double_could_merge_are_compared_as_they_are_spelled() {
    for literal in ["0.10000000000000001", "8000000000000.001", "8000000000000.0011", "1234567890.1234567"] {
        assert_eq!(json(literal), BodyContent::Unreadable(literal.as_bytes()));
    }
    assert_eq!(canonical("1234567890123456"), "1234567890123456");
}

/// Against another implementation, which makes no difference between I-JSON and other JSON.
#[test]
fn random_documents_come_out_as_another_canonicalizer_has_them() {
    let mut rng = fastrand::Rng::with_seed(8785);
    for _ in 0..3_000 {
        let value = document(&mut rng, 4);
        let spelled = if rng.bool() { value.to_string() } else { format!("{value:#}") };
        let expected = serde_json_canonicalizer::to_string(&value).unwrap();
        assert_eq!(canonical(&spelled), expected, "{spelled}");
    }
}

fn document(rng: &mut fastrand::Rng, depth: u8) -> serde_json::Value {
    let word = |rng: &mut fastrand::Rng| -> String {
        let length = rng.usize(..4);
        std::iter::repeat_with(|| {
            *rng.choice(&['a', 'B', '"', '\\', '\n', '\u{1}', '\u{7f}', 'é', '\u{fb33}', '😀']).unwrap()
        })
        .take(length)
        .collect()
    };
    match rng.u8(..if depth == 0 { 5 } else { 7 }) {
        0 => serde_json::Value::Null,
        1 => rng.bool().into(),
        2 => (rng.i64(..) >> 11).into(),
        3 => format!("{}e{}", rng.i32(..), rng.i32(-30..5)).parse::<f64>().unwrap().into(),
        4 => word(rng).into(),
        5 => (0..rng.u8(..4)).map(|_| document(rng, depth - 1)).collect(),
        _ => {
            let members = (0..rng.u8(..5)).map(|_| (word(rng), document(rng, depth - 1)));
            serde_json::Value::Object(members.collect())
        }
    }
}

#[test]
fn json_is_read_under_its_media_types_only() {
    let read = |content_type: &'static str| {
        BodyReading::default().canonical_json().read(Some(content_type.as_bytes()), b"[1, 2]")
    };
    for content_type in
        ["application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"]
    {
        assert_eq!(read(content_type), BodyContent::Json(b"[1,2]".into()), "{content_type}");
    }
    for content_type in ["text/json", "text/plain", "application/jsonl", "application/json-seq", ""] {
        assert_eq!(read(content_type), BodyContent::Bytes(b"[1, 2]"), "{content_type}");
    }
    let absent = BodyReading::default().canonical_json().read(None, b"[1, 2]");
    assert_eq!(absent, BodyContent::Bytes(b"[1, 2]"));
}

#[test]
fn a_form_is_its_parts_whatever_the_boundary() {
    let one = "--AAA\r\nA: b\r\n\r\nhello\r\n--AAA\r\n\r\n\r\n--AAA--\r\n";
    let other = one.replace("AAA", "-b-");
    let parts = BodyContent::Multipart(vec![b"A: b\r\n\r\nhello", b"\r\n"]);
    assert_eq!(form("AAA", one), parts);
    assert_eq!(form("\"-b-\"", &other), parts);
    assert_eq!(form("AAA", one.trim_end()), parts);
    assert_eq!(form("AAA", "--AAA--\r\n"), BodyContent::Multipart(vec![]));
    assert_eq!(form("AAA", "--AAA\r\n\r\n--AAA--"), BodyContent::Multipart(vec![b""]));
}

#[test]
fn what_looks_like_another_boundary_is_a_part_s_own() {
    let body = "--A\r\nX: y\r\n\r\n--B\r\n--A--\r\n--\r\n--A--";
    assert_eq!(form("A", body), BodyContent::Unreadable(body.as_bytes()));
    let body = "--A\r\nX: y\r\n\r\n --A\r\n--B--\n--A--\r\n--A--";
    assert_eq!(form("A", body), BodyContent::Multipart(vec![b"X: y\r\n\r\n --A\r\n--B--\n--A--"]));
}

#[test]
fn a_form_that_is_not_cut_cleanly_is_compared_byte_for_byte() {
    let many = "--A\r\n\r\n".repeat(1_001) + "--A--";
    for body in [
        "",
        "hello",
        "--A",
        "--A\r\n",
        "--A\r\nX: y\r\n\r\nhello",
        "--A\r\nX: y\r\n\r\nhello\r\n--A",
        "--A\r\nX: y\r\n\r\nhello\r\n--A-",
        "--A\r\nX: y\r\n\r\nhello\r\n--A \r\n--A--",
        "--A \r\nX: y\r\n\r\nhello\r\n--A--",
        "--A\nX: y\n\nhello\n--A--",
        "\r\n--A\r\nX: y\r\n\r\nhello\r\n--A--",
        "preamble\r\n--A\r\n\r\n--A--",
        "--A\r\nX: y\r\n\r\nhello\r\n--A--epilogue",
        "--AB\r\nX: y\r\n\r\nhello\r\n--AB--",
        "--A\r\n--A--",
        &many,
    ] {
        assert_eq!(form("A", body), BodyContent::Unreadable(body.as_bytes()), "{body:?}");
    }
}

#[test]
fn a_form_names_one_boundary() {
    let body = "--A\r\n\r\n--A--";
    for content_type in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"A",
        "multipart/form-data; boundary=A; boundary=A",
        "multipart/form-data; boundary=A@",
        "multipart/form-data; xboundary=A",
        &format!("multipart/form-data; boundary={}", "A".repeat(71)),
    ] {
        let read = BodyReading::default().multipart_by_part();
        let read = read.read(Some(content_type.as_bytes()), body.as_bytes());
        assert_eq!(read, BodyContent::Unreadable(body.as_bytes()), "{content_type}");
    }
    let read = BodyReading::default().multipart_by_part();
    let spelled = read.read(Some(b"Multipart/Form-Data;charset=utf-8 ; BOUNDARY=A"), body.as_bytes());
    assert_eq!(spelled, BodyContent::Multipart(vec![b""]));
    let mixed = read.read(Some(b"multipart/mixed; boundary=A"), body.as_bytes());
    assert_eq!(mixed, BodyContent::Bytes(body.as_bytes()));
}

#[test]
fn debug_shows_no_byte_of_a_body() {
    assert_eq!(format!("{:?}", json("\"4111\"")), "Json");
}
