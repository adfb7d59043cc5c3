use super::*;

const REQUEST: [(&str, &[u8]); 7] = [
    ("x-api-key", b"key"),
    ("accept", b"*/*"),
    ("cookie", b"theme=dark; sid=1 ;csrf= 2"),
    ("authorization", b"Bearer a"),
    ("cookie", b"sid=3;empty=;flag"),
    ("authorization", b"Bearer b"),
    ("x-tenant", b"acme"),
];

fn read(credentials: &Credentials) -> Vec<(&str, &'static [u8])> {
    credentials.read(|name| {
        let lines = REQUEST.iter().filter(|(line, _)| *line == name).map(|(_, value)| *value);
        lines.collect::<Vec<_>>()
    })
}

#[test]
fn the_default_takes_known_headers_line_by_line_and_cookies_pair_by_pair() {
    let expected: [(&str, &[u8]); 9] = [
        ("authorization", b"Bearer a"),
        ("authorization", b"Bearer b"),
        ("cookie", b"theme=dark"),
        ("cookie", b"sid=1"),
        ("cookie", b"csrf= 2"),
        ("cookie", b"sid=3"),
        ("cookie", b"empty="),
        ("cookie", b"flag"),
        ("x-api-key", b"key"),
    ];
    assert_eq!(read(&Credentials::default()), expected);
    for header in CREDENTIAL_HEADERS {
        let all = Credentials::default();
        let one = all.read(|name| (name == header).then_some(b"secret".as_slice()));
        assert_eq!(one, [(header, b"secret".as_slice())]);
    }
}

#[test]
fn cookies_are_the_same_in_one_line_or_in_many() {
    let read = |lines: &[&'static [u8]]| {
        let credentials = Credentials::default();
        let read = credentials.read(|name| if name == "cookie" { lines.to_vec() } else { Vec::new() });
        read.into_iter().map(|(_, pair)| pair).collect::<Vec<_>>()
    };
    assert_eq!(read(&[b"a=1; b=2"]), read(&[b"a=1", b"b=2"]));
    assert_eq!(read(&[b"a=1;", b""]), read(&[b"a=1"]));
    assert_ne!(read(&[b"a=1; b=2"]), read(&[b"b=2; a=1"]), "their order tells who comes first");
}

#[test]
fn chosen_headers_replace_the_default_in_any_order_and_case() {
    let one = Credentials::headers(["X-Tenant", "authorization"]);
    assert_eq!(one, Credentials::headers(["AUTHORIZATION", "x-tenant", "x-tenant"]));
    let names: Vec<_> = read(&one).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["authorization", "authorization", "x-tenant"]);
}

#[test]
fn bound_cookies_take_the_place_of_the_cookie_header() {
    let bound = Credentials::headers(["cookie"]).bind_cookies(["sid", "csrf", "sid"]);
    let expected: [(&str, &[u8]); 3] = [("cookie", b"csrf= 2"), ("cookie", b"sid=1"), ("cookie", b"sid=3")];
    assert_eq!(read(&bound), expected);
    assert_eq!(read(&Credentials::headers(["x-api-key"]).bind_cookies(["csrf"])).len(), 2);
    assert_eq!(read(&Credentials::headers(["cookie"]).bind_cookies([""; 0])), []);
}

#[test]
fn an_absent_cookie_is_not_an_empty_one() {
    let of = |name| {
        read(&Credentials::none().bind_cookies([name])).into_iter().map(|(_, pair)| pair).collect::<Vec<_>>()
    };
    assert_eq!(of("empty"), [b"empty="]);
    assert_eq!(of("flag"), [b"flag"]);
    for absent in ["absent", "SID", "si", "sid=1", "dark"] {
        assert_eq!(of(absent), [b""; 0], "{absent}");
    }
}

#[test]
fn none_reads_nothing() {
    assert_eq!(read(&Credentials::none()), []);
}
