//! One turn of one vector: its steps in order, and the answers that they got.

mod count;
mod race;
mod restart;

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};

use crate::{
    report::Outcome,
    run::{Options, judge::Bench, render::render, with_sources, words::Words},
    vector::{Abort, Agree, Asked, Await, Request, Runs, Send, Start, Step, Vector},
    wire::{Answer, Connection, Lost, Message, Target},
};
use count::{CountError, counter};

/// How many differences between the answers of copies are told.
const TOLD: usize = 3;

/// What a turn showed.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) reason: Option<String>,
    /// Whether a request had no answer, so that the target may be gone.
    pub(super) lost_an_answer: bool,
}

impl Verdict {
    pub(super) fn pass() -> Self {
        Self { outcome: Outcome::Pass, reason: None, lost_an_answer: false }
    }
}

/// Why a turn ends before its steps do.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// The target broke what was expected; nothing later makes sense.
    #[error("{wrong}")]
    Broken { wrong: String },
    /// A request has no answer.
    #[error("{step}")]
    Lost { step: String, source: Lost },
    /// The count of runs cannot be read.
    #[error("the count of runs cannot be read")]
    NoCount(#[source] CountError),
    /// The count of runs cannot be set to zero.
    #[error("POST /reset answered {status}")]
    NoReset { status: u16 },
    /// The command that restarts the target failed.
    #[error("the restart failed: {0}")]
    Restart(String),
    /// The vector itself makes no sense.
    #[error("the vector refers to {0:?}, which is not there")]
    Dangling(String),
}

/// Whether the target answers anything at all.
pub(super) async fn ask_for_life(target: &Target, options: &Options) -> Result<(), Lost> {
    let words = Words::new("life", options, 0);
    let message = render(&counter(), &words, target, options);
    Connection::open(target, options.timeout).await?.exchange(&message).await.map(|_| ())
}

pub(super) struct Stage<'a> {
    target: &'a Target,
    vector: &'a Vector,
    options: &'a Options,
    words: Words,
    /// What the count was when the steps began.
    before: u64,
    answers: HashMap<String, Answer>,
    /// Those that are not awaited end with the turn.
    pending: HashMap<String, JoinSet<Result<Answer, Lost>>>,
    connections: HashMap<String, Connection>,
    wrong: Vec<String>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(target: &'a Target, vector: &'a Vector, options: &'a Options, turn: u32) -> Self {
        Self {
            target,
            vector,
            options,
            words: Words::new(&vector.id, options, turn),
            before: 0,
            answers: HashMap::new(),
            pending: HashMap::new(),
            connections: HashMap::new(),
            wrong: Vec::new(),
        }
    }

    pub(super) async fn play(mut self) -> Verdict {
        let trouble = self.steps().await.err();
        let is_error = match &trouble {
            None | Some(Trouble::Broken { .. }) => false,
            // In another set's words nothing was judged then.
            Some(Trouble::Lost { source, .. }) => {
                self.vector.resets || matches!(source, Lost::Unreachable(_))
            }
            Some(_) => true,
        };
        let lost_an_answer = matches!(trouble, Some(Trouble::Lost { .. } | Trouble::NoCount(_)));
        self.wrong.extend(trouble.map(|trouble| with_sources(&trouble)));
        if self.wrong.is_empty() {
            return Verdict::pass();
        }
        let outcome = if is_error { Outcome::Error } else { Outcome::Fail };
        Verdict { outcome, reason: Some(self.wrong.join("; ")), lost_an_answer }
    }

    async fn steps(&mut self) -> Result<(), Trouble> {
        if self.vector.resets {
            self.reset().await?;
        } else {
            self.before = self.count().await?;
        }
        for step in &self.vector.steps {
            match step {
                Step::Send(send) => self.send(send).await?,
                Step::Start(start) => self.start(start).await?,
                Step::Await(awaited) => self.receive(awaited).await?,
                Step::Race(race) => self.race(race).await?,
                Step::Agree(agree) => self.agree(agree)?,
                Step::Runs(runs) => self.runs(*runs).await?,
                Step::WaitMs(ms) => sleep(Duration::from_millis(self.words.number(*ms))).await,
                Step::Restart(_) => self.restart().await?,
            }
        }
        Ok(())
    }

    async fn send(&mut self, Send { name, request, expect }: &Send) -> Result<(), Trouble> {
        let request = self.request(request)?;
        let message = self.message(request);
        if let Some(abort) = request.abort {
            return self.leave(&message, abort).await.map_err(lost(name));
        }
        let answer = match &request.connection {
            None => self.open().await.map_err(lost(name))?.exchange(&message).await,
            Some(connection) => self.exchange_on(connection, &message, request.reconnects).await,
        };
        let answer = answer.map_err(lost(name))?;
        self.judge(name, expect, &answer);
        self.answers.insert(name.clone(), answer);
        Ok(())
    }

    /// Sends on a connection that has a name, and keeps it unless the server says that it ends.
    async fn exchange_on(&mut self, name: &str, message: &Message, reconnects: bool) -> Result<Answer, Lost> {
        let (mut connection, is_new) = match self.connections.remove(name) {
            Some(open) => (open, false),
            None => (self.open().await?, true),
        };
        let mut answer = connection.exchange(message).await;
        if let Err(Lost::Closed { received: 0 }) = answer
            && reconnects
            && !is_new
        {
            connection = self.open().await?;
            answer = connection.exchange(message).await;
        }
        if !answer.as_ref().is_ok_and(Answer::ends_its_connection) {
            self.connections.insert(name.to_owned(), connection);
        }
        answer
    }

    /// Sends and goes away.
    async fn leave(&self, message: &Message, abort: Abort) -> Result<(), Lost> {
        let mut connection = self.open().await?;
        match abort {
            Abort::AfterBytes(bytes) => connection.send_part(message, bytes).await,
            Abort::AfterMs(ms) | Abort::ResetAfterMs(ms) => {
                connection.send_part(message, usize::MAX).await?;
                sleep(Duration::from_millis(self.words.number(ms))).await;
                if let Abort::ResetAfterMs(_) = abort {
                    connection.reset();
                }
                Ok(())
            }
        }
    }

    async fn start(&mut self, Start { name, request, parallel }: &Start) -> Result<(), Trouble> {
        let message = self.message(self.request(request)?);
        for _ in 0..*parallel {
            let mut connection = self.open().await.map_err(lost(name))?;
            let message = message.clone();
            let pending = self.pending.entry(name.clone()).or_default();
            pending.spawn(async move { connection.exchange(&message).await });
        }
        Ok(())
    }

    async fn receive(&mut self, Await { answer: name, expect }: &Await) -> Result<(), Trouble> {
        let mut pending = self.pending.remove(name).ok_or_else(|| Trouble::Dangling(name.clone()))?;
        let (so_far, copies) = (self.wrong.len(), pending.len());
        while let Some(answer) = pending.join_next().await {
            // It is not aborted while somebody awaits it.
            let answer = answer.map_err(|_| Trouble::Dangling(name.clone()))?.map_err(lost(name))?;
            self.judge(name, expect, &answer);
            self.answers.insert(name.clone(), answer);
        }
        if copies > 1 {
            let wrong: BTreeSet<String> = self.wrong.drain(so_far..).collect();
            self.wrong.extend(wrong.into_iter().take(TOLD));
        }
        Ok(())
    }

    fn agree(&mut self, Agree { answers }: &Agree) -> Result<(), Trouble> {
        let mut first: Option<(&String, &Answer)> = None;
        for name in answers {
            let answer = self.answers.get(name).ok_or_else(|| Trouble::Dangling(name.clone()))?;
            match first {
                _ if !answer.is_success() => {}
                None => first = Some((name, answer)),
                Some((_, told)) if told.body == answer.body => {}
                Some((other, _)) => {
                    self.wrong
                        .push(format!("{name}: expected the same body as in {other:?}, got another one"));
                }
            }
        }
        Ok(())
    }

    async fn runs(&mut self, runs: Runs) -> Result<(), Trouble> {
        let count = self.count().await?;
        // A reset by somebody else, or a restart.
        let ran = count.checked_sub(self.before).unwrap_or(count);
        match runs {
            Runs::Exactly(wanted) if ran != wanted => {
                self.wrong.push(format!("runs: expected {wanted}, got {ran}"));
            }
            Runs::AtMost(wanted) if ran > wanted => {
                self.wrong.push(format!("runs: expected at most {wanted}, got {ran}"));
            }
            Runs::Exactly(_) | Runs::AtMost(_) => {}
        }
        Ok(())
    }

    fn request<'b>(&self, asked: &'b Asked) -> Result<&'b Request, Trouble>
    where
        'a: 'b,
    {
        match asked {
            Asked::Written(request) => Ok(request),
            Asked::Named(name) => {
                self.vector.requests.get(name).ok_or_else(|| Trouble::Dangling(name.clone()))
            }
        }
    }

    fn message(&self, request: &Request) -> Message {
        render(request, &self.words, self.target, self.options)
    }

    async fn open(&self) -> Result<Connection, Lost> {
        Connection::open(self.target, self.options.timeout).await
    }

    fn judge(&mut self, name: &str, expect: &crate::vector::Expect, answer: &Answer) {
        let bench = Bench { words: &self.words, earlier: &self.answers };
        let wrong = bench.judge(expect, answer);
        self.wrong.extend(wrong.into_iter().map(|wrong| format!("{name}: {wrong}")));
    }
}

fn lost(step: &str) -> impl FnOnce(Lost) -> Trouble + use<> {
    let step = step.to_owned();
    move |source| Trouble::Lost { step, source }
}
