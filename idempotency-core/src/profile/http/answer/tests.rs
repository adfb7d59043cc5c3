use super::*;

fn fields(pairs: &[(&'static str, &'static str)]) -> Fields {
    pairs.iter().copied().collect()
}

fn sample() -> Answer {
    Answer {
        status: 201,
        headers: fields(&[("content-type", "text/plain"), ("link", "</a>"), ("etag", ""), ("link", "</b>")]),
        body: Bytes::from(vec![b'x'; 300]),
        trailers: Some(fields(&[("grpc-status", "0")])),
    }
}

/// One outcome of every kind, smallest and ordinary.
fn samples() -> Vec<Outcome> {
    let headers = sample().headers;
    let location = Some(Bytes::from_static(b"/orders/1"));
    vec![
        sample().encode(),
        Answer { trailers: None, ..sample() }.encode(),
        Answer { trailers: Some(Fields::new()), ..sample() }.encode(),
        Answer { status: 100, headers: Fields::new(), body: Bytes::new(), trailers: None }.encode(),
        Head { status: 200, headers }.encode(),
        Head { status: 999, headers: Fields::new() }.encode(),
        Tombstone { status: 201, location }.encode(),
        Tombstone { status: 201, location: Some(Bytes::new()) }.encode(),
        Tombstone { status: 204, location: None }.encode(),
    ]
}

fn encode(stored: &Stored) -> (Outcome, usize) {
    match stored {
        Stored::Whole(answer) => (answer.encode(), answer.encoded_len()),
        Stored::Omitted(head) => (head.encode(), head.encoded_len()),
        Stored::Tombstone(tombstone) => (tombstone.encode(), tombstone.encoded_len()),
    }
}

fn with(outcome: &Outcome, bytes: impl Into<Bytes>) -> Outcome {
    Outcome { bytes: bytes.into(), ..outcome.clone() }
}

#[test]
fn an_answer_comes_back_as_it_was() {
    for trailers in [None, Some(Fields::new()), sample().trailers] {
        let answer = Answer { trailers, ..sample() };
        let outcome = answer.encode();
        assert!(!outcome.is_tombstone());
        assert_eq!(Stored::decode(&outcome), Ok(Stored::Whole(answer)));
    }
}

#[test]
fn tombstones_come_back_as_they_were() {
    let head = Head { status: 202, headers: sample().headers };
    assert!(head.encode().is_tombstone());
    assert_eq!(Stored::decode(&head.encode()), Ok(Stored::Omitted(head)));
    for location in [None, Some(Bytes::new()), Some(Bytes::from_static(b"/orders/1"))] {
        let tombstone = Tombstone { status: 201, location };
        assert!(tombstone.encode().is_tombstone());
        assert_eq!(Stored::decode(&tombstone.encode()), Ok(Stored::Tombstone(tombstone)));
    }
}

#[test]
fn nothing_of_an_answer_is_printed_but_lengths_and_counts() {
    let fields = || fields(&[("x-secret", "4242")]);
    let answer = Answer { status: 200, headers: fields(), body: "4242".into(), trailers: Some(fields()) };
    let head = Stored::Omitted(Head { status: 200, headers: fields() });
    let tombstone = Tombstone { status: 201, location: Some("/orders/4242".into()) };
    let refusal = super::super::Refusal::result_not_replayable(tombstone.clone());
    let shown = format!("{answer:?} {head:?} {tombstone:?} {refusal:?}");
    assert!(!shown.contains("4242") && !shown.contains("secret"), "{shown}");
    assert!(shown.contains("body_bytes: 4") && shown.contains("location_bytes: Some(12)"), "{shown}");
}

#[test]
fn the_body_is_not_copied() {
    let outcome = sample().encode();
    let Ok(Stored::Whole(answer)) = Stored::decode(&outcome) else { panic!("a whole answer") };
    assert!(outcome.bytes.as_ptr_range().contains(&answer.body.as_ptr()));
}

#[test]
fn lengths_are_predicted() {
    for length in [0, 1, 127, 128, 129, 16_383, 16_384, 70_000] {
        let answer = Answer { body: Bytes::from(vec![0; length]), ..sample() };
        assert_eq!(answer.encode().bytes.len(), answer.encoded_len(), "{length}");
    }
    for outcome in samples() {
        let (again, predicted) = encode(&Stored::decode(&outcome).unwrap());
        assert_eq!((again, predicted), (outcome.clone(), outcome.bytes.len()));
    }
}

#[test]
fn a_body_that_has_room_fits_and_the_next_size_hardly_does() {
    for cap in [0, 90, 91, 200, 217, 218, 219, 220, 1_000, 16_500, 100_000] {
        let room = sample().body_room(cap);
        let len = |body: usize| Answer { body: Bytes::from(vec![0; body]), ..sample() }.encoded_len();
        assert!(room == 0 || len(room) <= cap, "cap {cap} room {room}");
        assert!(len(room + 2) > cap, "cap {cap} room {room}");
    }
}

#[test]
fn another_profile_format_kind_or_form_is_refused() {
    let outcome = sample().encode();
    assert_eq!(Stored::decode(&Outcome { media: Media(2), ..outcome.clone() }), Err(AnswerError::Media));
    assert_eq!(Stored::decode(&Outcome { form: Form::Tombstone, ..outcome.clone() }), Err(AnswerError::Kind));
    let tombstone = Tombstone { status: 201, location: None }.encode();
    assert_eq!(Stored::decode(&Outcome { form: Form::Whole, ..tombstone }), Err(AnswerError::Kind));
    for (at, byte, error) in
        [(0, 0, AnswerError::Format), (0, 2, AnswerError::Format), (1, 5, AnswerError::Kind)]
    {
        let mut bytes = outcome.bytes.to_vec();
        bytes[at] = byte;
        assert_eq!(Stored::decode(&with(&outcome, bytes)), Err(error));
    }
}

#[test]
fn a_status_is_100_to_999() {
    for (status, ok) in [(0, false), (99, false), (100, true), (999, true), (1000, false), (u16::MAX, false)]
    {
        let decoded = Stored::decode(&Answer { status, ..sample() }.encode());
        assert_eq!(decoded.is_ok(), ok, "{status}");
        assert!(ok || decoded == Err(AnswerError::Status), "{status}");
    }
}

#[test]
fn every_cut_and_every_addition_is_noticed() {
    for outcome in samples() {
        for cut in 0..outcome.bytes.len() {
            let short = Stored::decode(&with(&outcome, outcome.bytes.slice(..cut)));
            assert_eq!(short, Err(AnswerError::Length), "cut at {cut} of {outcome:?}");
        }
        let longer = [&outcome.bytes, b"\0".as_slice()].concat();
        assert_eq!(Stored::decode(&with(&outcome, longer)), Err(AnswerError::Trailing), "{outcome:?}");
    }
}

#[test]
fn forged_lengths_are_refused_before_room_is_made() {
    let whole = sample().encode();
    let head = [FORMAT, Kind::Whole as u8, 0, 200];
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let forged: [&[u8]; 10] = [
        &huge,                                                            // as many fields as there are numbers
        &[&[1], huge.as_slice()].concat(),                                // a name as long as memory
        &[&[0], huge.as_slice()].concat(),                                // a body as long as memory
        &[2, 1, b'a', 0, 0],                                              // two fields, of which one is there
        &[1, 0, 0, 0],                                                    // a field without a name
        &[0x80, 0],          // a zero that is not in its shortest form
        &[0, 0x81, 0x80, 0], // a one that is not in its shortest form
        &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], // beyond 64 bits
        &[0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02], // beyond 64 bits, and zero within
        &[0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
    ];
    for tail in forged {
        let bytes = [head.as_slice(), tail].concat();
        assert_eq!(Stored::decode(&with(&whole, bytes)), Err(AnswerError::Length), "{tail:?}");
    }
}

#[test]
fn arbitrary_bytes_are_an_error_or_exactly_one_answer() {
    let mut random = Random(0x1d3_4e97);
    let samples = samples();
    let mut decoded = 0;
    for _ in 0..200_000 {
        let sample = &samples[random.below(samples.len())];
        let mut bytes = sample.bytes.to_vec();
        for _ in 0..=random.below(4) {
            random.mutate(&mut bytes);
        }
        let outcome = with(sample, bytes);
        if let Ok(stored) = Stored::decode(&outcome) {
            assert_eq!(encode(&stored), (outcome.clone(), outcome.bytes.len()));
            decoded += 1;
        }
    }
    assert!(decoded > 1_000, "the mutations reach past the checks: {decoded}");
}

/// A small generator (xorshift), seeded so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        match self.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, self.below(256) as u8),
            2 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            3 if at < bytes.len() => bytes[at] = self.below(256) as u8,
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.push(0xff),
        }
    }
}
