//! The split layout comes to the same answers as one document, and reads and writes less.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use idempotency_core::{
    Folio, LedgerLayout, LedgerStore, Motion, Revision, Sheets, StoreError,
    clock::{ManualClock, Timestamp},
};
use idempotency_store_memory::MemoryLedger;

use crate::{
    Compat, LedgerScope,
    desk::{Beyond, Desk, Needs},
    ledger::{
        self, Asker, Begin, Begun, Claim, Claimed, ConflictMode, Effect, End, Number, Renew, RunMode, Settle,
        Terms, Verdict,
    },
};

fn terms() -> Terms {
    let number = Number::Whole;
    Terms {
        pending_ttl: number(300),
        max_attempts: number(3),
        retention: number(2_000),
        max_result: 256,
        compat: Compat::Mended,
    }
}

/// One scope in one layout.
struct Side {
    desk: Desk<Counted>,
    scope: LedgerScope,
}

impl Side {
    fn new(layout: LedgerLayout, clock: Arc<ManualClock>) -> Self {
        let store = Counted {
            store: MemoryLedger::new().with_layout(layout).with_clock(clock),
            bytes: AtomicUsize::new(0),
        };
        Self { desk: Desk::new(store, terms(), None), scope: LedgerScope::new("s").unwrap() }
    }

    async fn begin(&self, input: &Begin) -> Begun {
        let needs = Needs { run: Some(&input.run_id), beyond: Beyond::Own, ..Needs::default() };
        self.desk
            .apply(&self.scope, needs, |found, now, terms| ledger::begin(found, input, now, terms))
            .await
            .unwrap()
    }

    async fn claim(&self, input: &Claim) -> Claimed {
        let needs = Needs {
            key: Some(&input.key),
            run: input.asker.as_ref().map(|asker| asker.run_id.as_str()),
            beyond: Beyond::Unseen,
        };
        self.desk
            .apply(&self.scope, needs, |found, now, terms| ledger::claim(found, input, now, terms))
            .await
            .unwrap()
    }

    async fn settle(&self, input: &Settle) -> ledger::Settled {
        let needs = Needs { key: Some(&input.key), ..Needs::default() };
        self.desk
            .apply(&self.scope, needs, |found, now, terms| ledger::settle(found, input, now, terms))
            .await
            .unwrap()
    }

    async fn end(&self, input: &End) -> Option<ledger::Run> {
        let needs = Needs { run: Some(&input.run_id), ..Needs::default() };
        self.desk
            .apply(&self.scope, needs, |found, now, terms| ledger::end(found, input, now, terms))
            .await
            .unwrap()
    }

    async fn renew(&self, input: &Renew) -> Result<ledger::Run, ledger::RenewRefused> {
        let needs = Needs { run: Some(&input.run_id), ..Needs::default() };
        self.desk
            .apply(&self.scope, needs, |found, now, terms| ledger::renew(found, input, now, terms))
            .await
            .unwrap()
    }

    async fn history(&self) -> Vec<Effect> {
        let (document, now) = self.desk.read(&self.scope, None).await.unwrap();
        let mut all: Vec<Effect> =
            ledger::history(&document, now, &terms()).into_iter().map(|(effect, _)| effect).collect();
        all.sort_by(|one, other| one.key.cmp(&other.key));
        all
    }
}

/// A store that counts the bytes that pass it.
struct Counted {
    store: MemoryLedger,
    bytes: AtomicUsize,
}

impl Counted {
    fn count(&self, folio: &Folio) {
        let sheets = folio.sheets.values().map(String::len).sum::<usize>();
        self.bytes.fetch_add(folio.head.as_ref().map_or(0, String::len) + sheets, Ordering::SeqCst);
    }
}

impl LedgerStore for Counted {
    fn layout(&self) -> LedgerLayout {
        self.store.layout()
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        mut law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        let counted = |folio: &Folio, now| {
            self.count(folio);
            let motion = law(folio, now);
            if let Motion::Write(revision, _) = &motion {
                let sheets = revision.sheets.values().flatten().map(String::len).sum::<usize>();
                self.bytes.fetch_add(revision.head.len() + sheets, Ordering::SeqCst);
            }
            motion
        };
        self.store.transact(scope, sheets, counted).await
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        let (folio, now) = self.store.read(scope, sheets).await?;
        self.count(&folio);
        Ok((folio, now))
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        self.store.forget(idle, at_most).await
    }
}

fn claim(rng: &mut Rng, number: u64, tokens: &[(String, Number)]) -> Claim {
    let intent = (*rng.choice(["reply", "refund", "tag"].iter()).unwrap()).to_owned();
    let asker = rng.choice(tokens.iter()).filter(|_| rng.clone().u8(..) < 200);
    let modes = [ConflictMode::Any, ConflictMode::SameIntent, ConflictMode::None];
    Claim {
        scope: "s".to_owned(),
        key: format!("{intent}:{}", rng.u8(..60)),
        intent,
        summary: None,
        asker: asker.map(|(run_id, token)| Asker { run_id: run_id.clone(), token: Some(*token) }),
        attempt_id: format!("attempt {number}"),
        conflict: *rng.choice(modes.iter()).unwrap(),
        acknowledges: rng.u8(..) < 200,
        lease: Number::Whole(200),
        payload: None,
        marks_point_of_no_return: false,
    }
}

#[tokio::test]
async fn the_split_layout_answers_as_one_document_does() {
    let mut put_away = 0;
    for seed in 0..4 {
        let mut rng = Rng::with_seed(seed);
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000_000)));
        let (whole, split) =
            (Side::new(LedgerLayout::Whole, clock.clone()), Side::new(LedgerLayout::Split, clock.clone()));
        let mut tokens: Vec<(String, Number)> = Vec::new();
        let mut open: Vec<(String, String)> = Vec::new();
        for number in 0..250 {
            clock.advance(Duration::from_millis(rng.u64(..12)));
            match rng.u8(..10) {
                0 => {
                    let now = clock_millis(&clock);
                    let input = Begin {
                        run_id: format!("r{}", rng.u8(..30)),
                        mode: if rng.u8(..) < 40 { RunMode::Exclusive } else { RunMode::Supersede },
                        lease: Number::Whole(200),
                        context_at: rng.bool().then(|| Number::Whole(now - rng.i128(..150))),
                    };
                    let begun = whole.begin(&input).await;
                    assert_eq!(
                        told(split.begin(&input).await),
                        told(begun.clone()),
                        "seed {seed}, {number}: {input:?}"
                    );
                    if let Begun::Run { run, .. } = begun {
                        tokens.retain(|(id, _)| *id != run.run_id);
                        tokens.push((run.run_id, run.token));
                    }
                }
                1 if !tokens.is_empty() => {
                    let (run_id, token) = rng.choice(tokens.iter()).unwrap().clone();
                    let input = match rng.u8(..3) {
                        0 => End::cancel(run_id),
                        _ => End { run_id, reason: "completed".to_owned(), token: Some(token) },
                    };
                    assert_eq!(
                        split.end(&input).await.as_ref().map(plain),
                        whole.end(&input).await.as_ref().map(plain),
                        "seed {seed}, {number}"
                    );
                }
                2 if !tokens.is_empty() => {
                    let (run_id, token) = rng.choice(tokens.iter()).unwrap().clone();
                    let input = Renew { run_id, token, lease: Number::Whole(200) };
                    assert_eq!(
                        split.renew(&input).await.map(|run| plain(&run)),
                        whole.renew(&input).await.map(|run| plain(&run)),
                        "seed {seed}, {number}"
                    );
                }
                3..6 if !open.is_empty() => {
                    let (key, attempt_id) = open.swap_remove(rng.usize(..open.len()));
                    let verdicts =
                        [Verdict::Committed, Verdict::Committed, Verdict::Failed, Verdict::Ambiguous];
                    let verdict = *rng.choice(verdicts.iter()).unwrap();
                    let input = Settle { key, attempt_id, verdict, result: None, error: None };
                    assert_eq!(
                        split.settle(&input).await,
                        whole.settle(&input).await,
                        "seed {seed}, {number}"
                    );
                }
                _ => {
                    let input = claim(&mut rng, number, &tokens);
                    let claimed = whole.claim(&input).await;
                    assert_eq!(
                        by_key(split.claim(&input).await),
                        by_key(claimed.clone()),
                        "seed {seed}, {number}: {input:?}"
                    );
                    if let Claimed::Acquired(entry) = claimed {
                        open.push((entry.key, entry.attempt_id));
                    }
                }
            }
        }
        assert_eq!(split.history().await, whole.history().await, "seed {seed}");
        let (folio, _) = split.desk.store().read("s", Sheets::All).await.unwrap();
        put_away += folio.sheets.len();
    }
    assert!(put_away > 40, "only {put_away} entries were put away: nothing was compared");
}

fn clock_millis(clock: &ManualClock) -> i128 {
    i128::from(idempotency_core::clock::Clock::now(clock).as_micros() / 1_000)
}

/// What a beginning comes to. Earlier effects have no order, and what a run remembers of effects put away only the split
/// layout needs.
fn told(begun: Begun) -> (String, Vec<Effect>) {
    match begun {
        Begun::Run { state, run, mut prior } => {
            prior.sort_by(|one, other| one.key.cmp(&other.key));
            (format!("{} {}", state.name(), plain(&run)), prior)
        }
        Begun::Busy(busy) => (format!("{busy:?}"), Vec::new()),
    }
}

fn plain(run: &ledger::Run) -> serde_json::Value {
    let mut run: serde_json::Value = run.to_json().parse().unwrap();
    run.as_object_mut().unwrap().remove("landed");
    run
}

/// Conflicts of one time have no order; of more than ten, those of the earliest time listed may be others.
fn by_key(claimed: Claimed) -> Claimed {
    match claimed {
        Claimed::Refused { reason, mut conflicts, entry } => {
            let first = conflicts.listed.first().map(|conflict| conflict.at);
            if conflicts.total > 10 {
                conflicts.listed.retain(|conflict| Some(conflict.at) != first);
            }
            conflicts.listed.sort_by(|one, other| (one.at, &one.key).cmp(&(other.at, &other.key)));
            Claimed::Refused { reason, conflicts, entry }
        }
        other => other,
    }
}

/// The bytes that pass the store for one effect after `before` others, of one run or of a run each.
async fn bytes_of_one(before: usize, layout: LedgerLayout, runs: Runs) -> usize {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000_000)));
    let terms = Terms { retention: Number::Whole(604_800_000), ..terms() };
    let side = Side::new(layout, clock.clone());
    let side = Side { desk: Desk::new(side.desk.into_store(), terms, None), ..side };
    let mut token = None;
    for number in 0..=before {
        clock.advance(Duration::from_millis(1));
        if number == before {
            fill(&side).await;
            side.desk.store().bytes.store(0, Ordering::SeqCst);
        }
        let run_id = match runs {
            Runs::None => None,
            Runs::One => Some("r".to_owned()),
            Runs::Each => Some(format!("r{number}")),
        };
        if let Some(run_id) = run_id.clone().filter(|_| runs == Runs::Each || number == 0) {
            let input =
                Begin { run_id, mode: RunMode::Supersede, lease: Number::Whole(60_000), context_at: None };
            let Begun::Run { run, .. } = side.begin(&input).await else { panic!() };
            token = Some(run.token);
        }
        let attempt_id = format!("attempt {number}");
        let input = Claim {
            scope: "s".to_owned(),
            key: format!("reply:{number}"),
            intent: "reply".to_owned(),
            summary: Some("a reply to a customer who asked where the parcel is".to_owned()),
            asker: run_id.clone().map(|run_id| Asker { run_id, token }),
            attempt_id: attempt_id.clone(),
            conflict: ConflictMode::Any,
            acknowledges: true,
            lease: Number::Whole(60_000),
            payload: None,
            marks_point_of_no_return: false,
        };
        let claimed = side.claim(&input).await;
        assert!(matches!(claimed, Claimed::Acquired(_)), "{number}: {claimed:?}");
        let input =
            Settle { key: input.key, attempt_id, verdict: Verdict::Committed, result: None, error: None };
        side.settle(&input).await;
        if let Some(run_id) = run_id.filter(|_| runs == Runs::Each) {
            side.end(&End { run_id, reason: "completed".to_owned(), token }).await;
        }
    }
    side.desk.store().bytes.load(Ordering::SeqCst)
}

/// Copies one of the effects put away until there are 5,000 of them.
async fn fill(side: &Side) {
    let (folio, _) = side.desk.store().read("s", Sheets::All).await.unwrap();
    let (Some(head), Some((name, sheet))) =
        (folio.head, folio.sheets.iter().find(|(name, _)| name.starts_with("e:")))
    else {
        return;
    };
    let key = name.strip_prefix("e:").unwrap();
    let copy =
        |number: usize| (format!("e:copy:{number}"), Some(sheet.replace(key, &format!("copy:{number}"))));
    let copies = Revision {
        head,
        sheets: (folio.sheets.keys().filter(|name| name.starts_with("e:")).count()..5_000)
            .map(copy)
            .collect(),
        settled: true,
    };
    side.desk.store().transact("s", &[], |_, _| Motion::Write(copies.clone(), ())).await.unwrap();
    assert_eq!(side.history().await.len(), 5_000 + HEAD);
}

/// How many settled effects stand in a head.
const HEAD: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Runs {
    None,
    One,
    Each,
}

async fn assert_cheap(before: usize, runs: Runs) {
    let early = bytes_of_one(10, LedgerLayout::Split, runs).await;
    let late = bytes_of_one(before, LedgerLayout::Split, runs).await;
    println!("{runs:?}: {early} bytes for the 11th effect, {late} after {before}");
    assert!(late <= 3 * early, "{runs:?}: {early} bytes for the 11th effect, {late} after {before}");
}

#[tokio::test]
async fn an_effect_after_5000_costs_at_most_three_times_the_11th() {
    assert_cheap(60, Runs::None).await;
}

#[tokio::test]
async fn an_effect_of_a_long_run_does_too() {
    assert_cheap(120, Runs::One).await;
}

#[tokio::test]
async fn an_effect_after_many_runs_does_too() {
    assert_cheap(120, Runs::Each).await;
}

#[tokio::test]
async fn one_document_gets_slower() {
    let early = bytes_of_one(10, LedgerLayout::Whole, Runs::None).await;
    let late = bytes_of_one(120, LedgerLayout::Whole, Runs::None).await;
    assert!(late > 5 * early, "the counting counts nothing: {early}, {late}");
}
