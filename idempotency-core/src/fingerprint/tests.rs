use super::*;

fn sample(body: &[u8], credentials: &[u8]) -> Fingerprint {
    Fingerprint::builder()
        .part(Part::Method, b"POST")
        .part(Part::Body, body)
        .part(Part::Credentials, credentials)
        .build()
}

#[test]
fn names_the_parts_that_differ() {
    assert_eq!(sample(b"a", b"x"), sample(b"a", b"x"));
    assert_ne!(sample(b"a", b"x"), sample(b"b", b"x"));
    let differing = sample(b"a", b"x").differing_parts(&sample(b"b", b"x"));
    assert_eq!(differing.iter().collect::<Vec<_>>(), [Part::Body]);
}

#[test]
fn other_credentials_hide_every_other_difference() {
    let differing = sample(b"a", b"x").differing_parts(&sample(b"b", b"y"));
    assert_eq!(differing.iter().collect::<Vec<_>>(), [Part::Credentials]);
}

#[test]
fn an_empty_part_is_not_an_absent_one() {
    let absent = Fingerprint::builder().build();
    let empty = Fingerprint::builder().part(Part::Query, b"").build();
    assert_ne!(absent, empty);
    assert!(absent.differing_parts(&empty).contains(Part::Query));
}

#[test]
fn bytes_round_trip_and_foreign_bytes_are_refused() {
    let fingerprint = sample(b"a", b"x");
    let read = Fingerprint::from_bytes(&fingerprint.to_bytes()).unwrap();
    assert_eq!(read, fingerprint);
    assert_eq!(read.parts, fingerprint.parts);
    assert_eq!(Fingerprint::from_bytes(b"short"), Err(FingerprintError));
    let mut other = fingerprint.to_bytes();
    other[0] = 9;
    assert_eq!(Fingerprint::from_bytes(&other), Err(FingerprintError));
}

fn keyed(secret: &Secret, body: &[u8]) -> Fingerprint {
    Fingerprint::keyed(secret).part(Part::Body, body).part(Part::Credentials, b"x").build()
}

#[test]
fn a_secret_keys_the_full_digest_and_every_part_s() {
    let open = Fingerprint::builder().part(Part::Body, b"a").part(Part::Credentials, b"x").build();
    let [one, two] = [Secret::new(1, [1; 32]), Secret::new(1, [2; 32])].map(|secret| keyed(&secret, b"a"));
    for (first, second) in [(open, one), (one, two)] {
        assert_ne!(first, second);
        for part in [Part::Body, Part::Credentials] {
            assert_ne!(first.parts[part as usize], second.parts[part as usize], "{part:?}");
        }
    }
    assert_eq!(one, keyed(&Secret::new(1, [1; 32]), b"a"));
}

#[test]
fn under_another_secret_nothing_but_the_secret_is_named() {
    let secrets = [Secret::new(0, [1; 32]), Secret::new(7, [2; 32])];
    let [first, second] = secrets.each_ref().map(|secret| keyed(secret, b"a"));
    let open = Fingerprint::builder().part(Part::Body, b"a").build();
    for (one, other) in [(first, second), (first, open), (open, second)] {
        assert_eq!(one.differing_parts(&other), Parts::from_iter([Part::Secret]));
    }
    assert_eq!(second.differing_parts(&keyed(&secrets[1], b"b")), Parts::from_iter([Part::Body]));
}

#[test]
fn the_secret_s_id_is_in_the_bytes_and_nothing_else_of_it() {
    let bytes = keyed(&Secret::new(0x0403_0201, [9; 32]), b"a").to_bytes();
    assert_eq!(bytes[Fingerprint::BYTES - 8..], [1, 2, 3, 4, 1, 0, 0, 0]);
    assert!(!bytes.windows(8).any(|window| window == [9; 8]));
    let open = Fingerprint::builder().part(Part::Secret, b"no secret").build();
    assert_eq!(open.to_bytes()[Fingerprint::BYTES - 8..], [0; 8]);
    assert_eq!(open, Fingerprint::builder().build());
}
