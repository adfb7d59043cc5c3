use super::*;

const SAMPLE: Payload<'static> = Payload {
    method: "POST",
    path: "/v1/orders",
    query: Some("dry=0"),
    content_type: Some(b"application/json"),
    content_encoding: None,
    body: &BodyContent::Bytes(b"{}"),
    headers: &[],
    credentials: &[],
};

/// The parts in which a payload differs from [`SAMPLE`].
fn differing(payload: &Payload<'_>) -> Vec<Part> {
    let (sample, other) = (SAMPLE.fingerprint(None), payload.fingerprint(None));
    let parts: Vec<_> = sample.differing_parts(&other).iter().collect();
    assert_eq!(parts.is_empty(), sample == other);
    parts
}

#[test]
fn every_part_counts_and_is_named() {
    let cases = [
        (Payload { method: "PATCH", ..SAMPLE }, Part::Method),
        (Payload { method: "post", ..SAMPLE }, Part::Method),
        (Payload { path: "/v1/orders/", ..SAMPLE }, Part::Path),
        (Payload { path: "/v1/%6frders", ..SAMPLE }, Part::Path),
        (Payload { query: Some("dry=1"), ..SAMPLE }, Part::Query),
        (Payload { query: None, ..SAMPLE }, Part::Query),
        (Payload { content_type: Some(b"text/plain"), ..SAMPLE }, Part::ContentType),
        (Payload { content_type: None, ..SAMPLE }, Part::ContentType),
        (Payload { content_encoding: Some(b"gzip"), ..SAMPLE }, Part::ContentEncoding),
        (Payload { body: &BodyContent::Bytes(b"{ }"), ..SAMPLE }, Part::Body),
        (Payload { body: &BodyContent::Bytes(b""), ..SAMPLE }, Part::Body),
        (Payload { body: &BodyContent::LeftOut, ..SAMPLE }, Part::Body),
        (Payload { headers: &[("accept-language", b"de")], ..SAMPLE }, Part::Headers),
        (Payload { credentials: &[("authorization", b"Bearer a")], ..SAMPLE }, Part::Credentials),
    ];
    assert_eq!(differing(&SAMPLE), []);
    for (payload, part) in cases {
        assert_eq!(differing(&payload), [part], "{payload:?}");
    }
}

#[test]
fn an_empty_query_is_not_an_absent_one() {
    let absent = Payload { query: None, ..SAMPLE }.fingerprint(None);
    assert_ne!(absent, Payload { query: Some(""), ..SAMPLE }.fingerprint(None));
}

#[test]
fn the_media_type_counts_without_case_and_parameters() {
    for value in [
        b"Application/JSON".as_slice(),
        b"application/json;charset=utf-8",
        b"application/json ; charset=UTF-8",
        b" application/json\t",
        b"application/json;",
    ] {
        assert_eq!(differing(&Payload { content_type: Some(value), ..SAMPLE }), [], "{value:?}");
    }
    let json_suffix = Payload { content_type: Some(b"application/json+x"), ..SAMPLE };
    assert_eq!(differing(&json_suffix), [Part::ContentType]);
}

#[test]
fn the_content_coding_counts_without_case() {
    let of = |value| Payload { content_encoding: Some(value), ..SAMPLE }.fingerprint(None);
    assert_eq!(of(b"gzip"), of(b" GZip\t"));
    assert_ne!(of(b"gzip"), of(b"gzip, br"));
}

#[test]
fn bytes_cannot_move_from_part_to_part() {
    let moved = Payload { path: "/v1/ordersdry=0", query: Some(""), ..SAMPLE };
    assert_eq!(differing(&moved), [Part::Path, Part::Query]);
    let of = |credentials: &[(&str, &[u8])]| Payload { credentials, ..SAMPLE }.fingerprint(None);
    let split = of(&[("a", b"b"), ("c", b"d")]);
    assert_ne!(split, of(&[("a", b"bcd")]));
    assert_ne!(split, of(&[("ab", b""), ("c", b"d")]));
    assert_ne!(of(&[("a", b"b")]), of(&[("c", b"b")]));
    assert_ne!(of(&[("a", b"")]), of(&[]));
}

#[test]
fn no_reading_of_a_body_passes_for_another_s() {
    let contents = [
        BodyContent::Bytes(b"{}"),
        BodyContent::Unreadable(b"{}"),
        BodyContent::Json(b"{}".into()),
        BodyContent::Multipart(vec![b"{}"]),
        BodyContent::Multipart(vec![b"{", b"}"]),
        BodyContent::Own(b"{}"),
        BodyContent::LeftOut,
    ];
    for (place, one) in contents.iter().enumerate() {
        for other in &contents[place + 1..] {
            let of = |body| Payload { body, ..SAMPLE }.fingerprint(None);
            assert_ne!(of(one), of(other), "{one:?}, {other:?}");
        }
    }
}

#[test]
fn a_secret_keys_all_of_it() {
    let [one, two] = [1, 2].map(|id| SAMPLE.fingerprint(Some(&Secret::new(id, [id as u8; 32]))));
    for (first, second) in [(SAMPLE.fingerprint(None), one), (one, two)] {
        assert_ne!(first, second);
        assert_eq!(first.differing_parts(&second).iter().collect::<Vec<_>>(), [Part::Secret]);
    }
}

#[test]
fn without_credentials_the_part_is_absent() {
    let absent = Fingerprint::builder()
        .part(Part::Method, b"POST")
        .part(Part::Path, b"/v1/orders")
        .part(Part::Query, b"dry=0")
        .part(Part::ContentType, b"application/json")
        .part(Part::Body, b"{}");
    assert_eq!(SAMPLE.fingerprint(None), absent.build());
}

#[test]
fn other_credentials_hide_what_else_differs() {
    let first = Payload { credentials: &[("cookie", b"sid=1")], ..SAMPLE };
    let second = Payload {
        credentials: &[("cookie", b"sid=2")],
        body: &BodyContent::Bytes(b"[]"),
        query: None,
        ..SAMPLE
    };
    let parts = first.fingerprint(None).differing_parts(&second.fingerprint(None));
    assert_eq!(parts.iter().collect::<Vec<_>>(), [Part::Credentials]);
}

#[test]
fn debug_shows_no_body_and_no_credential() {
    let payload = Payload {
        body: &BodyContent::Bytes(b"4111-1111"),
        credentials: &[("authorization", b"secret")],
        ..SAMPLE
    };
    let shown = format!("{payload:?}");
    assert!(!shown.contains("secret") && !shown.contains("4111") && !shown.contains("dry"), "{shown}");
}
