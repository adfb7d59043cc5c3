use super::*;

#[test]
fn what_no_strict_parser_accepts_is_carried_along() {
    let odd = [
        "NaN",
        "-Infinity",
        r#""\ud83d""#,
        "1180591620717411303424",
        "[[[{}]]]",
        r#"{"a": [1.50, {"b\"": "\\"}], "c": NaN}"#,
    ];
    for value in odd {
        let text = format!("{{\"x\" : {value} ,\"y\":1}}");
        let members = members(&text).unwrap();
        assert_eq!(members["x"].as_str(), value);
        assert_eq!(ObjectWriter::new().members(&members).end(), format!("{{\"x\":{value},\"y\":1}}"));
    }
}

#[test]
fn no_nesting_exhausts_the_stack() {
    let deep = format!("{{\"x\":{}1{}}}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(members(&deep).unwrap()["x"].as_str().len(), 400_001);
    assert!(members(&deep[..200_000]).is_err());
    let payload = |depth| Tree::read(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    assert!(payload(200).is_ok());
    assert_eq!(payload(201), Err(PayloadError::TooDeep));
}

#[test]
fn what_is_no_json_is_refused_where_it_ceases_to_be() {
    let broken = [
        "",
        "{",
        "[1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":01}",
        "{\"a\":1 2}",
        "{\"a\":tru}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":[1,]}",
        "{\"a\":{\"b\":1,}}",
        "{\"a\":[1}}",
        "{\"a\":1}}",
        "{\"a\":\"}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":1e}",
        "{\"a\":-}",
        "{a:1}",
    ];
    for text in broken {
        assert!(members(text).is_err(), "{text}");
    }
    assert_eq!(members("{\"a\":1} x").unwrap_err(), NotJson { at: 8 });
}

#[test]
fn strings_are_read_leniently_and_written_strictly() {
    let read = |literal: &str| Raw::new(literal).unwrap().to_text().unwrap().into_owned();
    assert_eq!(read(r#""a\u00e9\ud83d\ude00\n\/""#), "aé😀\n/");
    assert_eq!(read(r#""\ud83d-\ude00\ud83d\u0041""#), "\u{FFFD}-\u{FFFD}\u{FFFD}A");
    assert_eq!(
        Raw::of("\u{1}\u{7f}\"é").unwrap().as_str(),
        ObjectWriter::new().text("", "\u{1}\u{7f}\"é").end()[4..].trim_end_matches('}')
    );
    let value: serde_json::Value =
        Raw::new(r#"{"a":NaN,"b":"\ud83d","NaN":[-Infinity]}"#).unwrap().parse().unwrap();
    assert_eq!(value, serde_json::json!({"a": null, "b": "\u{FFFD}", "NaN": [null]}));
}

#[test]
fn a_nul_leaves_without_its_neighbours() {
    let clean = |raw: &str| Raw::new(raw).unwrap().without_nul().as_str().to_owned();
    assert_eq!(
        clean(r#"{"a\u0000b":["\\u0000","\u0000","x\u0000\u0041"]}"#),
        r#"{"ab":["\\u0000","","x\u0041"]}"#
    );
    assert_eq!(clean("\"plain\""), "\"plain\"");
}

#[test]
fn numbers_of_all_forms_compare_and_add() {
    let read = |text: &str| Number::read(text).unwrap();
    assert_eq!(read("1000"), read("1000.0"));
    assert!(read("1.5") < read("2") && read("2") > read("1.5") && read("-1") < Number::ZERO);
    assert_eq!(read("1.5") + read("1"), read("2.5"));
    assert_eq!(Number::Whole(i128::MAX) + Number::ONE, Number::Whole(i128::MAX));
    assert_eq!(Number::Fraction(f64::MAX) + Number::Fraction(f64::MAX), Number::Fraction(f64::MAX));
    assert_eq!((read("1e400".replace("400", "3").as_str()).as_u64(), read("-5").as_u64()), (1000, 0));
    assert!(Number::read("1e400").is_none() && Number::read("NaN").is_none());
    // An integer beyond 128 bits is as near as a float comes.
    assert!(read(&"9".repeat(60)) > Number::Whole(i128::MAX));
    assert_eq!(read(&read("1060.5").to_string()), read("1060.5"));
}

#[test]
fn an_integer_beside_a_fraction_counts_to_its_last_digit() {
    let read = |text: &str| Number::read(text).unwrap();
    // 2^53 + 1 is no float: its nearest is 2^53.
    assert!(read("9007199254740993") > read("9007199254740992.0"));
    assert!(read("9007199254740992.0") < read("9007199254740993"));
    assert!(read("-3") < read("-2.5") && read("-2") > read("-2.5") && read("2") < read("2.5"));
    assert!(read("1e300") > Number::Whole(i128::MAX) && read("-1e300") < Number::Whole(i128::MIN));
    assert_eq!(read("5").max(read("5.0")).to_string(), "5");
    assert_eq!(read("5.0").max(read("5")).to_string(), "5.0");
}

#[test]
fn of_two_endings_equally_near_the_even_one_is_written() {
    // Exactly between .2 and .3, and between .7 and .8.
    for (number, text) in [
        (3_286_026_263_839_609.0 / 4.0, "821506565959902.2"),
        (3_286_026_263_839_611.0 / 4.0, "821506565959902.8"),
    ] {
        assert_eq!(canonical(&Tree::of(&number).unwrap(), crate::Compat::Mended).unwrap(), text);
    }
}
