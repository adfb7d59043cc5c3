//! Asking for an effect.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use idempotency_core::LedgerStore;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Classifier, EffectError, EffectKey, Ledger, LedgerError, Outcome, Reconciler, Refusal,
    door::Named,
    json::{PayloadError, Tree},
    key::digest,
    ledger::{Asker, Busy, ConflictMode},
    told::Told,
};

mod admission;
mod attempt;
mod context;

pub use context::EffectContext;

/// How long a call that waits lets pass between two looks.
const INTERVAL: Duration = Duration::from_millis(100);

/// An effect that is asked for, and how.
#[must_use]
pub struct EffectBuilder<S> {
    ledger: Ledger<S>,
    named: Named,
    key: Option<EffectKey>,
    identity: Option<Result<Tree, PayloadError>>,
    payload: Option<Result<Tree, PayloadError>>,
    summary: Option<String>,
    asker: Option<Asker>,
    told: Option<Arc<Told>>,
    busy: Option<Busy>,
    lease: Duration,
    conflict: ConflictMode,
    acknowledges: bool,
    wait: Duration,
    marks_point_of_no_return: bool,
    classifier: Option<Arc<dyn Classifier>>,
    reconciler: Option<Arc<dyn Reconciler>>,
}

impl<S: LedgerStore> EffectBuilder<S> {
    pub(crate) fn new(ledger: Ledger<S>, named: Named) -> Self {
        let lease = ledger.0.policy.lease;
        let (classifier, reconciler) = (ledger.0.classifier.clone(), ledger.0.reconciler.clone());
        Self {
            ledger,
            named,
            key: None,
            identity: None,
            payload: None,
            summary: None,
            asker: None,
            told: None,
            busy: None,
            lease,
            conflict: ConflictMode::None,
            acknowledges: false,
            wait: Duration::ZERO,
            marks_point_of_no_return: false,
            classifier,
            reconciler,
        }
    }

    pub(crate) fn under(mut self, key: EffectKey) -> Self {
        self.key = Some(key);
        self
    }

    pub(crate) fn of_run(mut self, asker: Asker, lease: Duration, told: Arc<Told>) -> Self {
        self.asker = Some(asker);
        self.told = Some(told);
        self.lease = lease;
        self.conflict = ConflictMode::Any;
        self.acknowledges = true;
        self
    }

    pub(crate) fn of_busy(mut self, holder: Busy) -> Self {
        self.busy = Some(holder);
        self
    }

    /// What tells this effect from others of its intent: the order's id, the messages a reply answers. The business's own
    /// words, never a model's. Without one it is the only effect of its intent in its scope.
    pub fn identity(mut self, identity: &(impl Serialize + ?Sized)) -> Self {
        self.identity = Some(Tree::of(identity));
        self
    }

    /// All that the effect is asked to do, where that is more than its identity: the refund's amount besides its order.
    /// While the effect happens, may have happened or has happened, who asks for it with another payload is refused. Only a
    /// digest is recorded.
    pub fn payload(mut self, payload: &(impl Serialize + ?Sized)) -> Self {
        self.payload = Some(Tree::of(payload));
        self
    }

    /// What the effect does, in words for others who meet it: at most 2,000 UTF-16 units are kept.
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Which effects of others, written since the run looked, stand in the way. Any, unless set; outside of runs none.
    pub fn conflict(mut self, conflict: ConflictMode) -> Self {
        self.conflict = conflict;
        self
    }

    /// Does not count being told of others' effects as having seen them. It is asked for again after the run has begun anew.
    pub fn without_acknowledging(mut self) -> Self {
        self.acknowledges = false;
        self
    }

    /// How long to wait for another attempt that runs. Not at all unless set.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Has the attempt mark the point from which on it may have happened: [`EffectContext::point_of_no_return`]. What is
    /// given up before that point is known not to have happened, and is attempted again.
    pub fn with_point_of_no_return(mut self) -> Self {
        self.marks_point_of_no_return = true;
        self
    }

    /// Has `classifier` say which errors mean that nothing happened, in the place of the ledger's.
    pub fn classifier(mut self, classifier: impl Classifier) -> Self {
        self.classifier = Some(Arc::new(classifier));
        self
    }

    /// Has `reconciler` find out how the effect turned out if it is in doubt, in the place of the ledger's.
    pub fn reconciler(mut self, reconciler: impl Reconciler) -> Self {
        self.reconciler = Some(Arc::new(reconciler));
        self
    }

    /// The key the effect has.
    ///
    /// # Errors
    /// [`LedgerError`] when the scope, the intent or the identity is none.
    pub fn key(&self) -> Result<EffectKey, LedgerError> {
        let (_, intent) = self.named.clone()?;
        match (&self.key, &self.identity) {
            (Some(key), _) => Ok(key.clone()),
            (None, None) => Ok(EffectKey::of_intent(&intent)),
            (None, Some(identity)) => {
                let identity = identity.as_ref().map_err(Clone::clone)?;
                let policy = &self.ledger.0.policy;
                if policy.portable && !identity.is_portable() {
                    return Err(PayloadError::NotPortable.into());
                }
                Ok(EffectKey::of_tree(&intent, identity, policy.compat)?)
            }
        }
    }

    fn payload_digest(&self) -> Result<Option<String>, LedgerError> {
        let Some(payload) = &self.payload else { return Ok(None) };
        let payload = payload.as_ref().map_err(Clone::clone)?;
        Ok(Some(digest(payload, self.ledger.0.policy.compat)?))
    }

    /// Does the effect, once, or says what became of it.
    ///
    /// If this call is dropped while the effect runs, the effect is dropped with it, and recorded as ambiguous at once, or as
    /// failed when it had not come to its point of no return. What has run is recorded whether anybody waits for it or not.
    ///
    /// # Errors
    /// [`LedgerError`] when there is no answer. What fails before the effect began did not begin it.
    pub async fn execute<T, E, F, Fut>(self, effect: F) -> Result<Outcome<T>, LedgerError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<EffectError>,
        F: FnOnce(EffectContext) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        if let Some(holder) = self.busy {
            return Ok(Outcome::Refused(Refusal::Busy(holder)));
        }
        attempt::perform(self, effect).await
    }

    /// As [`execute`](Self::execute), in a task of its own: if this call is dropped, the effect goes on.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and [`LedgerError::ShutDown`] when the runtime ends before the effect.
    pub async fn execute_detached<T, E, F, Fut>(self, effect: F) -> Result<Outcome<T>, LedgerError>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Into<EffectError> + 'static,
        F: FnOnce(EffectContext) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let executed = tokio::spawn(
            self.execute(move |context| async move { effect(context).await.map_err(Into::into) }),
        );
        match executed.await {
            Ok(outcome) => outcome,
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            Err(_) => Err(LedgerError::ShutDown),
        }
    }
}

impl<S> fmt::Debug for EffectBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EffectBuilder")
            .field("named", &self.named)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
