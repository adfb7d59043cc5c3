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
fn the_default_takes_the_four_headers_line_by_line() {
    let expected: [(&str, &[u8]); 5] = [
        ("authorization", b"Bearer a"),
        ("authorization", b"Bearer b"),
        ("cookie", b"theme=dark; sid=1 ;csrf= 2"),
        ("cookie", b"sid=3;empty=;flag"),
        ("x-api-key", b"key"),
    ];
    assert_eq!(read(&Credentials::default()), expected);
    let proxy = Credentials::default();
    let proxy = proxy.read(|name| (name == "proxy-authorization").then_some(b"Basic x".as_slice()));
    assert_eq!(proxy, [("proxy-authorization", b"Basic x".as_slice())]);
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
