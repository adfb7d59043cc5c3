use idempotency_core::profile::http::Code;

use super::*;

fn field(name: &str, value: &str) -> (Bytes, Bytes) {
    (Bytes::copy_from_slice(name.as_bytes()), Bytes::copy_from_slice(value.as_bytes()))
}

fn stored(status: u16, headers: Fields) -> Outcome {
    Answer { status, headers, body: "done".into(), trailers: None }.encode()
}

fn replayed(outcome: &Outcome) -> Response<ResponseBody<String>> {
    replay(&Policy::default(), outcome, Room::default())
}

fn refused(outcome: &Outcome) -> bool {
    let response = replayed(outcome);
    response.status() == 500 && response.extensions().get() == Some(&Verdict::Refused(Code::Internal))
}

#[test]
fn a_record_sets_neither_framing_nor_markers() {
    let of_the_connection = ["content-length", "transfer-encoding", "connection", "upgrade", "trailer"];
    let names = of_the_connection.into_iter().chain(["idempotency-degraded", "x-kept"]);
    let fields: Fields = names.map(|name| field(name, "1")).collect();
    let trailers = Some([field("content-length", "1"), field("grpc-status", "0")].into_iter().collect());
    let whole = Answer { status: 200, headers: fields.clone(), body: "done".into(), trailers }.encode();
    let head = replayed(&whole);
    let names: Vec<_> = head.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["x-kept", "trailer", "idempotency-replayed", "cache-control"]);
    assert_eq!(head.headers()["trailer"], "grpc-status");
    let head = replayed(&Head { status: 200, headers: fields }.encode());
    let names: Vec<_> = head.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["x-kept", "idempotency-replay", "idempotency-replayed", "cache-control"]);
}

#[test]
fn many_lines_come_back_and_too_many_names_are_an_unreadable_record() {
    let lines = replayed(&stored(200, (0..30_000).map(|at| field("link", &at.to_string())).collect()));
    assert_eq!(lines.headers().get_all("link").iter().count(), 30_000);
    for names in [24_572, 24_576, 30_000, 40_000] {
        let fields = (0..names).map(|at| field(&format!("x-{at}"), "1")).collect();
        assert!(refused(&stored(200, fields)), "{names}");
    }
}

#[test]
fn a_record_that_would_upgrade_a_connection_is_unreadable() {
    for status in [100, 101, 103, 199] {
        assert!(refused(&stored(status, Fields::new())), "{status}");
    }
    assert!(!refused(&stored(500, Fields::new())));
}

fn draft(policy: &Policy, location: &str) -> Draft {
    let mut headers = HeaderMap::new();
    headers.insert("location", location.parse().unwrap());
    headers.insert("content-encoding", HeaderValue::from_static("gzip"));
    headers.insert("etag", HeaderValue::from_static("\"1\""));
    Draft::new(policy, StatusCode::CREATED, &headers)
}

#[test]
fn what_stands_for_an_answer_fits_whatever_its_head_is() {
    let omitting = Policy::builder().oversized(Oversized::OmitBody).build().unwrap();
    let long = "/".repeat(3_000);
    for (policy, location, room, expected) in [
        (
            &Policy::default(),
            "/1",
            2_048,
            Stored::Tombstone(Tombstone { status: 201, location: Some("/1".into()) }),
        ),
        (&Policy::default(), &long, 2_048, Stored::Tombstone(Tombstone { status: 201, location: None })),
        (&omitting, "/1", 10, Stored::Tombstone(Tombstone { status: 201, location: Some("/1".into()) })),
        (&omitting, &long, 2_048, Stored::Tombstone(Tombstone { status: 201, location: None })),
    ] {
        let kept = draft(policy, location).tombstone(room);
        assert!(kept.is_tombstone() && kept.bytes.len() <= room);
        assert_eq!(Stored::decode(&kept).unwrap(), expected);
    }
}

#[test]
fn an_omitted_body_is_not_described() {
    let omitting = Policy::builder().oversized(Oversized::OmitBody).build().unwrap();
    let kept = draft(&omitting, "/1").tombstone(2_048);
    let Stored::Omitted(head) = Stored::decode(&kept).unwrap() else { panic!("a head") };
    let names: Vec<_> = head.headers.iter().map(|(name, _)| name).collect();
    assert_eq!(names, [&b"location"[..], b"etag"]);
    let older = Head {
        status: 200,
        headers: [field("content-encoding", "gzip"), field("etag", "1")].into_iter().collect(),
    };
    let older = replayed(&older.encode());
    assert!(older.headers().contains_key("etag") && !older.headers().contains_key("content-encoding"));
}
