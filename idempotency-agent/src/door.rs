//! The ledger as agents use it.

use std::{fmt, sync::Arc, time::Duration};

use idempotency_core::{LedgerStore, clock::Clock};

use crate::{
    Classifier, Compat, EffectBuilder, EffectKey, Intent, LedgerError, LedgerScope, NameError, Observer,
    Policy, PolicyError, Reconciler, RunBuilder,
    desk::{Desk, Needs},
    event::{EventKind, Notices},
    ledger::{self, Checked, Effect, End, Raw, Resolution, Resolve, Status},
};

/// A ledger of side effects on a store. Clones share everything.
pub struct Ledger<S>(pub(crate) Arc<Inner<S>>);

pub(crate) struct Inner<S> {
    pub(crate) desk: Desk<S>,
    pub(crate) policy: Policy,
    pub(crate) notices: Notices,
    pub(crate) classifier: Option<Arc<dyn Classifier>>,
    pub(crate) reconciler: Option<Arc<dyn Reconciler>>,
}

impl<S> Clone for Ledger<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Ledger<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("policy", &self.0.policy).finish_non_exhaustive()
    }
}

impl<S: LedgerStore> Ledger<S> {
    /// A ledger on `store` with the defaults of [`Policy::new`].
    pub fn new(store: S) -> Self {
        LedgerBuilder::new(store).assembled()
    }

    /// Starts a ledger on `store` with something else than the defaults.
    pub const fn builder(store: S) -> LedgerBuilder<S> {
        LedgerBuilder::new(store)
    }

    /// The store.
    pub fn store(&self) -> &S {
        self.0.desk.store()
    }

    /// Asks for an effect outside of runs: once for its scope, its intent and its identity.
    pub fn effect(&self, scope: impl Into<String>, intent: impl Into<String>) -> EffectBuilder<S> {
        let intent = Intent::under(intent, self.0.policy.compat);
        let named = LedgerScope::new(scope).and_then(|scope| Ok((scope, intent?)));
        EffectBuilder::new(self.clone(), named)
    }

    /// Asks for an effect under a text of the caller's own, which is its scope and its key.
    pub fn once(&self, key: impl Into<String>) -> EffectBuilder<S> {
        let key = key.into();
        let named = LedgerScope::new(key.clone()).and_then(|scope| Ok((scope, Intent::new(Intent::ONCE)?)));
        EffectBuilder::new(self.clone(), named).under(EffectKey::plain(key))
    }

    /// Prepares a run in `scope`: one unit of work, a job or a message.
    pub fn run(&self, scope: impl Into<String>) -> RunBuilder<S> {
        RunBuilder::new(self.clone(), LedgerScope::new(scope))
    }

    /// Withdraws a run, whatever its token, and says whether there is such a run. It may write no more; what it wrote stands.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails.
    pub async fn cancel(&self, scope: &LedgerScope, run_id: &str) -> Result<bool, LedgerError> {
        let input = End::cancel(run_id);
        let needs = Needs { run: Some(run_id), ..Needs::default() };
        let law = |document, now, terms: &_| ledger::end(document, &input, now, terms);
        Ok(self.0.desk.apply(scope, needs, law).await?.is_some())
    }

    /// What is known of an effect.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails.
    pub async fn check(&self, scope: &LedgerScope, key: &EffectKey) -> Result<Checked, LedgerError> {
        let (document, now) = self.0.desk.read(scope, Some(key.as_str())).await?;
        Ok(ledger::check(&document, key.as_str(), now, &self.0.desk.terms))
    }

    /// Every effect of a scope by the time of its first claim, each with where it is.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails.
    pub async fn history(&self, scope: &LedgerScope) -> Result<Vec<(Effect, Status)>, LedgerError> {
        let (document, now) = self.0.desk.read(scope, None).await?;
        Ok(ledger::history(&document, now, &self.0.desk.terms))
    }

    /// Says how an effect in doubt turned out, and answers its entry, or nothing when it is not in doubt. `attempt_id` is
    /// the attempt that was looked into; without it, whichever stands there is resolved.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails.
    pub async fn resolve(
        &self,
        scope: &LedgerScope,
        key: &EffectKey,
        resolution: Resolution,
        result: Option<Raw>,
        attempt_id: Option<&str>,
    ) -> Result<Option<Effect>, LedgerError> {
        let (key, attempt_id) = (key.as_str().to_owned(), attempt_id.map(str::to_owned));
        let input = Resolve { key, resolution, result, attempt_id };
        let needs = Needs { key: Some(&input.key), ..Needs::default() };
        let law = |document, now, terms: &_| ledger::resolve(document, &input, now, terms);
        let resolved = self.0.desk.apply(scope, needs, law).await?;
        if resolved.is_some() {
            self.0.notices.tell(scope.as_str(), &input.key, EventKind::Reconciled(resolution));
        }
        Ok(resolved)
    }

    /// Removes at most `at_most` scopes of which nothing is pending or in doubt and to which nobody has written for `idle`.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails.
    pub async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, LedgerError> {
        Ok(self.store().forget(idle, at_most).await?)
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.0.policy.compat == Compat::Strict
    }
}

/// What may be chosen before a [`Ledger`] is used.
#[must_use]
pub struct LedgerBuilder<S> {
    store: S,
    policy: Policy,
    clock: Option<Arc<dyn Clock>>,
    notices: Notices,
    classifier: Option<Arc<dyn Classifier>>,
    reconciler: Option<Arc<dyn Reconciler>>,
}

impl<S: LedgerStore> LedgerBuilder<S> {
    const fn new(store: S) -> Self {
        let notices = Notices::none();
        Self { store, policy: Policy::new(), clock: None, notices, classifier: None, reconciler: None }
    }

    /// Works by these bounds.
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Reads the time from `clock`, before each call, instead of from the store within it. For tests.
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Some(Arc::new(clock)), ..self }
    }

    /// Tells `observer` what happens to effects.
    pub fn observer(self, observer: impl Observer) -> Self {
        Self { notices: Notices::to(observer), ..self }
    }

    /// Has `classifier` say which errors mean that nothing happened. Without one no error does, but for those that are
    /// marked.
    pub fn classifier(self, classifier: impl Classifier) -> Self {
        Self { classifier: Some(Arc::new(classifier)), ..self }
    }

    /// Has `reconciler` find out how effects in doubt turned out, when they are asked for.
    pub fn reconciler(self, reconciler: impl Reconciler) -> Self {
        Self { reconciler: Some(Arc::new(reconciler)), ..self }
    }

    /// The ledger.
    ///
    /// # Errors
    /// [`PolicyError`] when a bound bounds nothing.
    pub fn build(self) -> Result<Ledger<S>, PolicyError> {
        self.policy.checked()?;
        Ok(self.assembled())
    }

    fn assembled(self) -> Ledger<S> {
        let Self { store, policy, clock, notices, classifier, reconciler } = self;
        let desk = Desk::new(store, policy.terms(), clock);
        Ledger(Arc::new(Inner { desk, policy, notices, classifier, reconciler }))
    }
}

impl<S> fmt::Debug for LedgerBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerBuilder").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// A scope and an intent that are both names, or why not.
pub(crate) type Named = Result<(LedgerScope, Intent), NameError>;
