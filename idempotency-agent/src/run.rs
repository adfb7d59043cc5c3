//! A run: one unit of work on a scope, held by whoever does it.

use std::{fmt, sync::Arc, time::Duration};

use idempotency_core::{LedgerStore, clock::Timestamp};

use crate::{
    EffectBuilder, EffectKey, Intent, Ledger, LedgerError, LedgerScope, NameError,
    desk::{Beyond, Needs},
    ledger::{
        self, Asker, Begin, BeginState, Begun, Busy, Checked, Effect, End, Number, Renew, RunMode, Status,
        Superseder,
    },
    policy::millis,
    told::Told,
};

/// What may be chosen before a run begins.
#[must_use]
pub struct RunBuilder<S> {
    ledger: Ledger<S>,
    scope: Result<LedgerScope, NameError>,
    id: Option<String>,
    mode: RunMode,
    read_at: Option<Timestamp>,
    lease: Duration,
}

impl<S: LedgerStore> RunBuilder<S> {
    pub(crate) fn new(ledger: Ledger<S>, scope: Result<LedgerScope, NameError>) -> Self {
        let lease = ledger.0.policy.lease;
        Self { ledger, scope, id: None, mode: RunMode::Supersede, read_at: None, lease }
    }

    /// Refuses to begin, as its name is none.
    pub(crate) fn refused(self, error: NameError) -> Self {
        Self { scope: Err(error), ..self }
    }

    /// The run's id: the job's, or the message's, so that its redelivery is known as such. A fresh one unless set.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into()).filter(|id| !id.is_empty());
        self
    }

    /// Begins only while no other run lives in the scope, instead of taking the place of older ones.
    pub fn exclusive(mut self) -> Self {
        self.mode = RunMode::Exclusive;
        self
    }

    /// What the run knows of the conversation was read at `read_at`. Without it, it reads from its beginning on.
    pub fn context_at(mut self, read_at: Timestamp) -> Self {
        self.read_at = Some(read_at);
        self
    }

    /// How long the run lives unless it is renewed: the policy's unless set.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Begins the run, or takes it up again where an earlier delivery of it left off.
    ///
    /// # Errors
    /// [`LedgerError`] when the scope is none or the store fails.
    pub async fn begin(self) -> Result<Run<S>, LedgerError> {
        let Self { ledger, scope, id, mode, read_at, lease } = self;
        let scope = scope?;
        let input = Begin {
            run_id: id.unwrap_or_else(fresh_id),
            mode,
            lease: millis(lease),
            context_at: read_at.map(|at| Number::from(at.as_micros() / 1_000)),
        };
        let needs = Needs { run: Some(&input.run_id), beyond: Beyond::Own, ..Needs::default() };
        let law = |document, now, terms: &_| ledger::begin(document, &input, now, terms);
        let begun = ledger.0.desk.apply(&scope, needs, law).await?;
        let (id, told) = (input.run_id, Arc::default());
        Ok(match begun {
            Begun::Busy(holder) => Run {
                ledger,
                scope,
                id,
                lease,
                state: RunState::Busy(holder),
                token: None,
                prior: Vec::new(),
                told,
            },
            Begun::Run { state, run, prior } => {
                let state = match state {
                    BeginState::New => RunState::New,
                    BeginState::Resumed => RunState::Resumed,
                    BeginState::Superseded => RunState::Superseded,
                    BeginState::Ended => RunState::Ended,
                };
                Run { ledger, scope, id, lease, state, token: Some(run.token), prior, told }
            }
        })
    }
}

impl<S> fmt::Debug for RunBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunBuilder").field("scope", &self.scope).field("id", &self.id).finish_non_exhaustive()
    }
}

/// The name of a run or an attempt that nobody gave one.
pub(crate) fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// How a run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// Its first delivery.
    New,
    /// A later delivery; the earlier ones may write no more.
    Resumed,
    /// A newer run has taken its place: it may not write.
    Superseded,
    /// It ended before: it may not write.
    Ended,
    /// Another run lives in the scope: it may not write.
    Busy(Busy),
}

/// A run that began.
pub struct Run<S> {
    ledger: Ledger<S>,
    scope: LedgerScope,
    id: String,
    lease: Duration,
    state: RunState,
    token: Option<Number>,
    prior: Vec<Effect>,
    told: Arc<Told>,
}

impl<S: LedgerStore> Run<S> {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The ledger it is of.
    pub const fn ledger(&self) -> &Ledger<S> {
        &self.ledger
    }

    /// Its scope.
    pub const fn scope(&self) -> &LedgerScope {
        &self.scope
    }

    /// How it began.
    pub const fn state(&self) -> &RunState {
        &self.state
    }

    /// Its fencing token: higher for each run and each delivery of one. None while another run lives in its place.
    pub fn token(&self) -> Option<u64> {
        self.token.map(Number::as_u64)
    }

    /// Whether it may write. Whether it still may, each effect finds out anew.
    pub const fn can_write(&self) -> bool {
        matches!(self.state, RunState::New | RunState::Resumed)
    }

    /// What earlier deliveries of it attempted.
    pub fn prior(&self) -> &[Effect] {
        &self.prior
    }

    /// Whether an earlier delivery did something, or may have.
    pub fn already_wrote(&self) -> bool {
        self.prior.iter().any(|effect| effect.status != Status::Failed)
    }

    /// Asks for an effect: once for the scope, the intent and the identity, and only while the run may write and has seen
    /// what others wrote.
    pub fn effect(&self, intent: impl Into<String>) -> EffectBuilder<S> {
        let intent = Intent::under(intent, self.ledger.0.policy.compat);
        let named = intent.map(|intent| (self.scope.clone(), intent));
        let builder = EffectBuilder::new(self.ledger.clone(), named);
        match (&self.state, self.token) {
            (RunState::Busy(holder), _) => builder.of_busy(holder.clone()),
            (_, token) => {
                builder.of_run(Asker { run_id: self.id.clone(), token }, self.lease, Arc::clone(&self.told))
            }
        }
    }

    pub(crate) fn told(&self) -> &Told {
        &self.told
    }

    /// Who has taken its place.
    pub(crate) async fn superseder(&self) -> Result<Option<Superseder>, LedgerError> {
        let desk = &self.ledger.0.desk;
        let (document, now) = desk.read(&self.scope, None).await?;
        Ok(Superseder::of(&self.id, &document, now, &desk.terms))
    }

    /// What is known of an effect of the scope.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails.
    pub async fn check(&self, key: &EffectKey) -> Result<Checked, LedgerError> {
        self.ledger.check(&self.scope, key).await
    }

    /// Says that the run lives, and answers whether it still may write.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails.
    pub async fn heartbeat(&self) -> Result<bool, LedgerError> {
        let Some(token) = self.token else { return Ok(false) };
        let input = Renew { run_id: self.id.clone(), token, lease: millis(self.lease) };
        let needs = Needs { run: Some(&input.run_id), ..Needs::default() };
        let law = |document, now, terms: &_| ledger::renew(document, &input, now, terms);
        Ok(self.ledger.0.desk.apply(&self.scope, needs, law).await?.is_ok())
    }

    /// Ends the run, for `reason`: a redelivery of it then does nothing. Not to be called because of an error that a
    /// redelivery is to make good. Answers whether it is ended: a later delivery is not, by an earlier one.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails.
    pub async fn end(&self, reason: impl Into<String>) -> Result<bool, LedgerError> {
        let Some(token) = self.token else { return Ok(false) };
        let input = End { run_id: self.id.clone(), reason: reason.into(), token: Some(token) };
        let needs = Needs { run: Some(&input.run_id), ..Needs::default() };
        let law = |document, now, terms: &_| ledger::end(document, &input, now, terms);
        Ok(self.ledger.0.desk.apply(&self.scope, needs, law).await?.is_some())
    }
}

impl<S> fmt::Debug for Run<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("scope", &self.scope)
            .field("id", &self.id)
            .field("state", &self.state)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
