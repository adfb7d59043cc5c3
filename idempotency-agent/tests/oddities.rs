//! Documents that no correct writer leaves: the law comes to an answer on each, and loses nothing it does not know.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use fastrand::Rng;
use idempotency_agent::{
    Compat,
    ledger::{
        Asker, Begin, Claim, Claimed, ConflictMode, Document, DocumentError, End, Number, Pass, Raw,
        Reconcile, Renew, Resolution, Resolve, RunMode, Settle, Settled, Status, Step, Terms, Verdict, begin,
        check, claim, end, history, pass, reconcile, renew, resolve, settle,
    },
};

const KEYS: [&str; 3] = ["reply:a", "reply:b", "tag"];
const RUNS: [&str; 3] = ["r1", "r2", "r3"];

/// A value that may stand where another is expected.
fn odd(rng: &mut Rng) -> String {
    let odd = [
        "null",
        "NaN",
        "-Infinity",
        "1e400",
        "-1e-7",
        "1060.5",
        "1000.0",
        "1180591620717411303424",
        "\"\\ud83d\"",
        "\"x\"",
        "\"\"",
        "true",
        "[]",
        "{}",
        "[[[[[1]]]]]",
        "-5",
        "9007199254740993",
        "\"\\u0000\"",
        "0",
        "170141183460469231731687303715884105727",
        "-170141183460469231731687303715884105728",
    ];
    rng.choice(odd).unwrap().to_owned()
}

fn field(rng: &mut Rng, name: &str, usual: &str) -> String {
    match rng.u8(..) {
        0..12 => format!("\"{name}\":{}", odd(rng)),
        12..16 => format!("\"x{name}\":{usual}"), // missing
        _ => format!("\"{name}\":{usual}"),
    }
}

fn object(fields: &[String]) -> String {
    format!("{{{}}}", fields.join(","))
}

fn run(rng: &mut Rng, id: &str) -> String {
    let time = |rng: &mut Rng| rng.u32(900..1_200).to_string();
    let maybe = |rng: &mut Rng| if rng.bool() { "null".to_owned() } else { rng.u32(900..1_200).to_string() };
    let mode = if rng.bool() { "\"supersede\"" } else { "\"exclusive\"" };
    let (token, seen, wrote) = (rng.u8(1..4), rng.u8(..5), rng.bool());
    object(&[
        field(rng, "runId", &format!("\"{id}\"")),
        field(rng, "token", &token.to_string()),
        field(rng, "mode", mode),
        time(rng).pipe(|at| field(rng, "startedAt", &at)),
        time(rng).pipe(|at| field(rng, "orderAt", &at)),
        time(rng).pipe(|at| field(rng, "leaseExpiresAt", &at)),
        field(rng, "seenSeq", &seen.to_string()),
        time(rng).pipe(|at| field(rng, "seenAt", &at)),
        maybe(rng).pipe(|at| field(rng, "contextAt", &at)),
        field(rng, "baseSeq", &seen.to_string()),
        maybe(rng).pipe(|at| field(rng, "baseContextAt", &at)),
        field(rng, "wrote", &wrote.to_string()),
        maybe(rng).pipe(|at| field(rng, "endedAt", &at)),
        field(rng, "endReason", "null"),
        format!("\"xRun\":{}", odd(rng)),
    ])
}

fn effect(rng: &mut Rng, key: &str) -> String {
    let status = *rng.choice(["pending", "committed", "failed", "ambiguous"].iter()).unwrap();
    let (attempt, at, seq) = (rng.u8(1..4), rng.u32(900..1_200), rng.u8(..6));
    let run = if rng.bool() { "null".to_owned() } else { format!("\"{}\"", rng.choice(RUNS).unwrap()) };
    object(&[
        field(rng, "key", &format!("\"{key}\"")),
        field(rng, "scope", "\"s\""),
        field(rng, "intent", &format!("\"{}\"", key.split(':').next().unwrap())),
        field(rng, "status", &format!("\"{status}\"")),
        field(rng, "attempt", &attempt.to_string()),
        field(rng, "attemptId", "\"z\""),
        field(rng, "runId", &run),
        field(rng, "token", &attempt.to_string()),
        field(rng, "summary", "null"),
        field(rng, "error", "null"),
        field(rng, "createdAt", &at.to_string()),
        field(rng, "claimedAt", &at.to_string()),
        field(rng, "settledAt", &if status == "pending" { "null".to_owned() } else { (at + 5).to_string() }),
        field(rng, "claimSeq", &seq.to_string()),
        field(rng, "settleSeq", &seq.to_string()),
        field(rng, "deadlineAt", &(at + 100).to_string()),
        field(rng, "sent", &(attempt > 2).to_string()),
        format!("\"xEffect\":{}", odd(rng)),
    ])
}

fn document(rng: &mut Rng) -> String {
    let runs: Vec<_> = RUNS[rng.usize(..3)..].iter().map(|id| format!("\"{id}\":{}", run(rng, id))).collect();
    let mut effects: Vec<_> = KEYS.iter().map(|key| format!("\"{key}\":{}", effect(rng, key))).collect();
    if rng.u8(..) < 30 {
        effects.push(format!("\"tag\":{}", odd(rng)));
    }
    let (seq, token) = (rng.u8(..9), rng.u8(..4));
    object(&[
        "\"v\":1".to_owned(),
        field(rng, "seq", &seq.to_string()),
        field(rng, "tokenSeq", &token.to_string()),
        format!("\"runs\":{}", object(&runs)),
        format!("\"effects\":{}", object(&effects)),
        format!("\"xTop\":{}", odd(rng)),
    ])
}

trait Pipe: Sized {
    fn pipe<T>(self, into: impl FnOnce(Self) -> T) -> T {
        into(self)
    }
}

impl Pipe for String {}

/// What a document holds that nobody knows, as far as its entries stay.
fn unknown(text: &str) -> usize {
    text.matches("\"xTop\":").count()
}

type Ran = Result<(Option<Document>, Option<Claimed>, Option<Settled>), DocumentError>;

fn plain<V>(step: Result<Step<V>, DocumentError>) -> Ran {
    step.map(|step| (step.write, None, None))
}

fn input(rng: &mut Rng, found: Document, now: Number, terms: &Terms) -> Ran {
    let key = (*rng.choice(KEYS).unwrap()).to_owned();
    let run_id = (*rng.choice(RUNS).unwrap()).to_owned();
    let lease = Number::Whole(rng.i128(-5..300));
    let context_at = rng.bool().then(|| Number::Whole(rng.i128(800..1_500)));
    let token = Number::Whole(rng.i128(0..5));
    let modes = [ConflictMode::Any, ConflictMode::SameIntent, ConflictMode::None];
    match rng.u8(..9) {
        0 => plain(begin(found, &Begin { run_id, mode: RunMode::Exclusive, lease, context_at }, now, terms)),
        1 => plain(begin(found, &Begin { run_id, mode: RunMode::Supersede, lease, context_at }, now, terms)),
        2 => plain(renew(found, &Renew { run_id, token, lease }, now, terms)),
        3 => plain(end(
            found,
            &End { run_id, reason: "done".to_owned(), token: rng.bool().then_some(token) },
            now,
            terms,
        )),
        4 => {
            let asker = rng.bool().then(|| Asker { run_id, token: rng.bool().then_some(token) });
            let intent = key.split(':').next().unwrap().to_owned();
            let claim_ = Claim {
                scope: "s".to_owned(),
                key,
                intent,
                summary: Some("\0 é😀".repeat(rng.usize(..3))),
                asker,
                attempt_id: format!("a{}", rng.u8(..3)),
                conflict: *rng.choice(modes.iter()).unwrap(),
                acknowledges: rng.bool(),
                lease,
                payload: None,
                marks_point_of_no_return: rng.bool(),
            };
            claim(found, &claim_, now, terms).map(|step| (step.write, Some(step.verdict), None))
        }
        5 => {
            let verdict =
                *rng.choice([Verdict::Committed, Verdict::Failed, Verdict::Ambiguous].iter()).unwrap();
            let result = rng.bool().then(|| Raw::new(r#"{"a":"\u0000"}"#).unwrap());
            let settle_ = Settle { key, attempt_id: "z".to_owned(), verdict, result, error: None };
            settle(found, &settle_, now, terms).map(|step| (step.write, None, Some(step.verdict)))
        }
        6 => {
            let resolution = if rng.bool() { Resolution::Committed } else { Resolution::NotApplied };
            plain(resolve(found, &Resolve { key, resolution, result: None, attempt_id: None }, now, terms))
        }
        7 => plain(reconcile(found, &Reconcile { key, attempt_id: "z".to_owned(), lease }, now, terms)),
        _ => plain(pass(found, &Pass { key, attempt_id: "z".to_owned() }, now, terms)),
    }
}

/// What must hold of any step, whatever the document was.
fn assert_sound(before: &Document, ran: &Ran, now: Number, terms: &Terms, seed: u64) {
    let Ok((write, claimed, settled)) = ran else { return };
    if let Some(after) = write {
        let text = after.to_text();
        let again = Document::read(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}: {text}"));
        assert_eq!(again.to_text(), text, "seed {seed}: reading what was written changes it");
        assert_eq!(unknown(&text), 1, "seed {seed}: {text}");
        assert!(!text.contains("\"xEffect\":null,\"xEffect\""), "seed {seed}");
        for (now_there, was) in
            again.effects().filter_map(|effect| Some((effect, before.effect(&effect.key)?)))
        {
            // Committed is final for as long as it is remembered.
            let forgotten = was.settled_at.unwrap_or(was.claimed_at) < now - terms.retention;
            if forgotten {
                continue;
            }
            if was.status == Status::Committed {
                assert!(now_there.status == Status::Committed, "seed {seed}: {was:?} became {now_there:?}");
            }
            assert!(now_there.attempt >= was.attempt, "seed {seed}: {was:?} became {now_there:?}");
        }
    }
    match claimed {
        Some(Claimed::Acquired(entry)) => {
            // An attempt begins only where none was, or where one is known not to have happened.
            let was = before.effect(&entry.key).filter(|was| was.attempt_id != entry.attempt_id);
            let may = |was: &idempotency_agent::ledger::Effect| {
                let known_failed = was.effective_status(now, terms) == Status::Failed;
                let forgotten = write
                    .as_ref()
                    .is_some_and(|write| write.effect(&was.key).is_none_or(|is| is.attempt == Number::ONE));
                known_failed || forgotten
            };
            assert!(was.is_none_or(may), "seed {seed}: acquired over {was:?}");
        }
        Some(Claimed::Replay(entry)) => assert_eq!(entry.status, Status::Committed, "seed {seed}"),
        _ => {}
    }
    if let Some(Settled::Settled { entry, .. }) = settled {
        assert_eq!(entry.attempt_id, "z", "seed {seed}: another attempt was settled");
    }
}

#[test]
fn no_document_makes_the_law_panic_or_forget() {
    let mut read = 0;
    for seed in 0..1_500 {
        let mut rng = Rng::with_seed(seed);
        let text = document(&mut rng);
        let compat = if rng.bool() { Compat::Strict } else { Compat::Mended };
        let number = |value: i128| Number::Whole(value);
        let terms = Terms {
            pending_ttl: number(100),
            max_attempts: number(3),
            retention: number(500),
            max_result: 64,
            compat,
        };
        // A counter that is no number is the one thing no scope survives.
        let Ok(mut document) = Document::read(&text) else { continue };
        read += 1;
        let mut now = number(1_000);
        for _ in 0..12 {
            now = now + number(rng.i128(-20..80));
            let ran = input(&mut rng, document.clone(), now, &terms);
            assert_sound(&document, &ran, now, &terms, seed);
            let known = check(&document, "tag", now, &terms);
            assert_eq!(known.is_done(), known.entry.is_some_and(|entry| entry.status == Status::Committed));
            assert!(history(&document, now, &terms).len() <= KEYS.len() + 1);
            if let Ok((Some(write), ..)) = ran {
                document = Document::read(&write.to_text()).unwrap();
            }
        }
    }
    assert!(read > 750, "only {read} documents could be read");
}
