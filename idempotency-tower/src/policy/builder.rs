//! Builds a policy, option by option.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Method};
use idempotency_core::{
    OnLapse,
    policy::PolicyError,
    profile::http::{KeySyntax, OnServerError, headers::ReplayedFields},
};

use self::{callers::CallerOptions, fingerprint::FingerprintOptions};
use super::{Force, Oversized, Policy, RunFuture, StoreDown};
use crate::refusal::Render;

mod callers;
mod fingerprint;

/// Builds a [`Policy`]; [`build`](Self::build) says which rule it breaks.
#[derive(Default)]
pub struct PolicyBuilder {
    policy: Policy,
    callers: CallerOptions,
    docs_url: Option<String>,
    fingerprint: FingerprintOptions,
}

impl PolicyBuilder {
    /// The methods that are guarded. POST and PATCH. This is the whole list: a method that is not named is not guarded,
    /// those two included. Safe methods cannot be: their answers must stay fresh.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.policy.methods = methods.into_iter().collect();
        self
    }

    /// The header that carries the key. `Idempotency-Key`.
    #[must_use]
    pub fn header(mut self, name: HeaderName) -> Self {
        self.policy.header = name;
        self
    }

    /// Which spellings of a key are read. [`KeySyntax::Lenient`].
    #[must_use]
    pub const fn key_syntax(mut self, syntax: KeySyntax) -> Self {
        self.policy.syntax = syntax;
        self
    }

    /// Refuses requests without a key, with 400 `missing-key`. They pass unguarded by default.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.policy.required = true;
        self
    }

    /// The longest body of a keyed request, in bytes. 1 MiB.
    #[must_use]
    pub const fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.policy.max_request_bytes = bytes;
        self
    }

    /// The longest response body that is kept, in bytes; the store's own limit lowers it. 1 MiB.
    #[must_use]
    pub const fn max_response_bytes(mut self, bytes: usize) -> Self {
        self.policy.max_response_bytes = bytes;
        self
    }

    /// What becomes of a longer one. [`Oversized::Tombstone`].
    #[must_use]
    pub const fn oversized(mut self, oversized: Oversized) -> Self {
        self.policy.oversized = oversized;
        self
    }

    /// What a 5xx, a panic, an error of the inner service or a broken body means. [`OnServerError::Release`].
    #[must_use]
    pub const fn on_server_error(mut self, on_server_error: OnServerError) -> Self {
        self.policy.on_server_error = on_server_error;
        self
    }

    /// What a lapsed lease means. [`OnLapse::TakeOver`].
    #[must_use]
    pub const fn on_lapse(mut self, on_lapse: OnLapse) -> Self {
        self.policy.terms.on_lapse = on_lapse;
        self
    }

    /// How long a claim is exclusive without a renewal, which a live run gets every third of it. 30 s.
    #[must_use]
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.policy.terms.lease = lease;
        self
    }

    /// How long a run is renewed; a hung handler holds its key no longer. 10 min.
    #[must_use]
    pub const fn max_run(mut self, max_run: Duration) -> Self {
        self.policy.terms.max_run = max_run;
        self
    }

    /// How long an answer is replayed, counted from its completion. 24 h.
    #[must_use]
    pub const fn retention(mut self, retention: Duration) -> Self {
        self.policy.terms.retention = retention;
        self
    }

    /// How long the ending of a run is tried again while the store does not answer. 10 min.
    #[must_use]
    pub const fn completion_retry(mut self, limit: Duration) -> Self {
        self.policy.terms.completion_retry = limit;
        self
    }

    /// How long a client waits for its answer to be stored before it gets it all the same. 2 s.
    #[must_use]
    pub const fn settle_wait(mut self, wait: Duration) -> Self {
        self.policy.settle_wait = wait;
        self
    }

    /// How long one store call may take. 2 s.
    #[must_use]
    pub const fn store_timeout(mut self, timeout: Duration) -> Self {
        self.policy.bounds.store_timeout = timeout;
        self
    }

    /// How many runs may be live at once, those whose caller has left and pending endings included; beyond it keyed
    /// requests get 503 `overloaded`. 10,000.
    #[must_use]
    pub const fn max_live_runs(mut self, runs: usize) -> Self {
        self.policy.bounds.max_live_runs = runs;
        self
    }

    /// Runs keyed requests while the store does not answer, in place of 503 `store-unavailable`. Their effects can happen
    /// twice: only copies that arrive in one process at one time are held apart, and nothing is remembered.
    ///
    /// Such an answer carries `Idempotency-Degraded: true`, and its handler sees no attempt.
    #[must_use]
    pub const fn fail_open(mut self) -> Self {
        self.policy.store_down = StoreDown::FailOpen;
        self
    }

    /// Changes nothing: every request runs and every answer passes as if there were no layer, while the observer is told
    /// what the policy would have done with each copy. For trying a policy on live traffic.
    ///
    /// It costs a claim before each keyed request. Its records stand apart from those of a policy in force. A handler sees
    /// no attempt, so one that cannot do without is refused by its extractor.
    #[must_use]
    pub const fn in_the_shadow(mut self) -> Self {
        self.policy.force = Force::Shadow;
        self
    }

    /// Lets a copy of a running request wait up to this long for the first one's answer, in place of 409 `conflict` at
    /// once. A caller may prefer less (`Prefer: wait=N`, RFC 7240). Off by default.
    ///
    /// A waiting copy holds no readiness of the inner service, no connection and no place among the live runs. One whose
    /// caller leaves stops waiting.
    #[must_use]
    pub const fn wait(mut self, up_to: Duration) -> Self {
        self.policy.wait = Some(up_to);
        self
    }

    /// How many copies may wait at once, all keys together; the next gets 409 `conflict` at once. 1,024.
    #[must_use]
    pub const fn max_waiters(mut self, waiters: usize) -> Self {
        self.policy.bounds.max_waiters = waiters;
        self
    }

    /// How many copies may wait for one key. 64.
    #[must_use]
    pub const fn max_waiters_per_key(mut self, waiters: usize) -> Self {
        self.policy.bounds.max_waiters_per_key = waiters;
        self
    }

    /// Refuses a key with 410 `key-expired` for this long after its answer stopped being replayed. By default an expired
    /// key is new again at once, with any payload.
    #[must_use]
    pub const fn reject_expired_keys_for(mut self, duration: Duration) -> Self {
        self.policy.terms.then_reject = duration;
        self
    }

    /// Makes the responses of refusals, in place of problem documents.
    #[must_use]
    pub fn render(mut self, render: impl Render) -> Self {
        self.policy.render = Some(Arc::new(render));
        self
    }

    /// What a problem's `type` starts with; its code follows. The crate's own page by default.
    #[must_use]
    pub fn problem_base(mut self, base: impl Into<Cow<'static, str>>) -> Self {
        self.policy.problem_base = base.into();
        self
    }

    /// Links every refusal to your documentation (`Link: <url>; rel="describedby"`, section 2.7 of the draft).
    #[must_use]
    pub fn docs_url(mut self, url: impl Into<String>) -> Self {
        self.docs_url = Some(url.into());
        self
    }

    /// The longest `Retry-After` of a conflict. 30 s.
    #[must_use]
    pub const fn retry_after_cap(mut self, cap: Duration) -> Self {
        self.policy.retry_after_cap = cap;
        self
    }

    /// The header that marks a replay. `Idempotency-Replayed`.
    #[must_use]
    pub fn replayed_header(mut self, name: HeaderName) -> Self {
        self.policy.replayed_header = name;
        self
    }

    /// Which header and trailer fields a replay repeats, beyond or below what [`ReplayedFields`] says by default.
    #[must_use]
    pub fn replayed_fields(mut self, fields: ReplayedFields) -> Self {
        self.policy.replayed_fields = fields;
        self
    }

    /// Wraps every guarded run in the context of the task it began in: `carry` is called there and may read its
    /// task-locals. Without it a run whose caller went away loses them. The tracing span is carried in any case.
    ///
    /// ```
    /// tokio::task_local! { static TENANT: u32; }
    ///
    /// let policy = idempotency_tower::Policy::builder()
    ///     .carry(|run| match TENANT.try_with(|tenant| *tenant) {
    ///         Ok(tenant) => Box::pin(TENANT.scope(tenant, run)),
    ///         Err(_) => run,
    ///     })
    ///     .build()?;
    /// # Ok::<(), idempotency_tower::PolicyError>(())
    /// ```
    #[must_use]
    pub fn carry(mut self, carry: impl Fn(RunFuture) -> RunFuture + Send + Sync + 'static) -> Self {
        self.policy.carry = Some(Arc::new(carry));
        self
    }

    /// The policy, if it makes sense.
    ///
    /// # Errors
    /// [`PolicyError`] names the rule it breaks.
    pub fn build(mut self) -> Result<Policy, PolicyError> {
        let policy = &self.policy;
        policy.terms.check()?;
        policy.bounds.check()?;
        if policy.methods.is_empty() {
            return Err(PolicyError::Door("no method is guarded"));
        }
        if policy.methods.iter().any(|method| method.is_safe() || *method == Method::CONNECT) {
            return Err(PolicyError::Door("a safe method or CONNECT is among the guarded ones"));
        }
        if policy.max_request_bytes == 0 {
            return Err(PolicyError::Door("max_request_bytes is zero: every body would be refused"));
        }
        if policy.retry_after_cap < Duration::from_secs(1) {
            return Err(PolicyError::Door(
                "retry_after_cap is below one second, the least Retry-After can say",
            ));
        }
        let holds = policy.terms.on_lapse == OnLapse::Hold || policy.on_server_error == OnServerError::Hold;
        if policy.store_down == StoreDown::FailOpen && holds {
            return Err(PolicyError::Door(
                "fail_open contradicts Hold: without a record nothing can be held",
            ));
        }
        if let Some(url) = &self.docs_url {
            self.policy.docs_link = Some(docs_link(url)?);
        }
        self.policy.callers = self.callers.rules()?;
        self.policy.fingerprints = self.fingerprint.rules(&self.policy.header)?;
        Ok(self.policy)
    }
}

/// The link target stands between angle brackets, so it can hold none.
fn docs_link(url: &str) -> Result<HeaderValue, PolicyError> {
    let unusable = || PolicyError::Door("docs_url is not a URL that a Link header can hold");
    if url.is_empty() || url.contains(['<', '>', ' ']) {
        return Err(unusable());
    }
    HeaderValue::try_from(format!("<{url}>; rel=\"describedby\"")).map_err(|_| unusable())
}

impl fmt::Debug for PolicyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyBuilder").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(builder: PolicyBuilder) -> PolicyError {
        builder.build().unwrap_err()
    }

    #[test]
    fn senseless_policies_are_refused_by_rule() {
        let door = |text| PolicyError::Door(text);
        let new = Policy::builder;
        assert_eq!(refusal(new().methods([])), door("no method is guarded"));
        for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::CONNECT] {
            let rule = "a safe method or CONNECT is among the guarded ones";
            assert_eq!(refusal(new().methods([Method::POST, method])), door(rule));
        }
        assert_eq!(refusal(new().lease(Duration::ZERO)), PolicyError::LeaseTooShort);
        assert_eq!(refusal(new().max_live_runs(0)), PolicyError::NoLiveRuns);
        assert!(matches!(refusal(new().retry_after_cap(Duration::ZERO)), PolicyError::Door(_)));
        assert!(matches!(refusal(new().fail_open().on_lapse(OnLapse::Hold)), PolicyError::Door(_)));
        assert!(matches!(
            refusal(new().fail_open().on_server_error(OnServerError::Hold)),
            PolicyError::Door(_)
        ));
    }
}
