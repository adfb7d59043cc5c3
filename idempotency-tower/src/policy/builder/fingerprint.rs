//! The options of a policy about fingerprints.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, request::Parts};
use idempotency_core::{
    Secret,
    policy::PolicyError,
    profile::http::{BodyReading, SelectedHeaders},
};

use super::PolicyBuilder;
use crate::policy::fingerprint::{BodyRule, Fingerprints, OwnReading, Previous};

/// What a builder was told, before it is known whether it makes sense.
#[derive(Default)]
pub(super) struct FingerprintOptions {
    reading: BodyReading,
    own: Option<OwnReading>,
    left_out: bool,
    headers: SelectedHeaders,
    secret: Option<Secret>,
    previous_secret: Option<Secret>,
    previously_without: bool,
}

impl PolicyBuilder {
    /// Compares JSON bodies by what they say: white space, the order of members and the spelling of numbers and strings
    /// do not count. See [`BodyReading::canonical_json`]. By default every byte counts.
    #[must_use]
    pub fn canonical_json(mut self) -> Self {
        self.fingerprint.reading = self.fingerprint.reading.canonical_json();
        self
    }

    /// Compares `multipart/form-data` bodies part by part, so that a retry may draw a new boundary. See
    /// [`BodyReading::multipart_by_part`]. By default every byte counts, and such a retry is refused.
    #[must_use]
    pub fn multipart_by_part(mut self) -> Self {
        self.fingerprint.reading = self.fingerprint.reading.multipart_by_part();
        self
    }

    /// Compares what `meaning` makes of a request's body in place of the body. Bytes that it returns unchanged are not
    /// copied.
    #[must_use]
    pub fn fingerprint_body<F>(mut self, meaning: F) -> Self
    where
        F: Fn(&Parts, &Bytes) -> Bytes + Send + Sync + 'static,
    {
        self.fingerprint.own = Some(Arc::new(meaning));
        self
    }

    /// Compares no body at all, for uploads too large to digest. **Dangerous**: a second request under the same key gets
    /// the answer to the first one's body, whatever its own says. Have another part tell them apart: a digest of the
    /// body in the query, or in a header named to [`fingerprint_headers`](Self::fingerprint_headers).
    #[must_use]
    pub fn body_left_out_of_the_fingerprint(mut self) -> Self {
        self.fingerprint.left_out = true;
        self
    }

    /// Compares these headers too, whole values and all lines. None by default, since many are made for one try: request
    /// ids, dates, signatures.
    #[must_use]
    pub fn fingerprint_headers<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.fingerprint.headers = SelectedHeaders::new(names);
        self
    }

    /// Keys every fingerprint, so that whoever reads the store cannot find out by trying what was asked. None by default.
    /// Every host needs the same secrets.
    ///
    /// A record made under a secret that the policy does not know is refused with 422, and never run. So change secrets
    /// in two steps, each on every host before the next: first accept the new one beside the old
    /// (`.secret(old).previous_secret(new)`), then use it (`.secret(new).previous_secret(old)`). Drop the old one when
    /// the retention has passed.
    ///
    /// ```
    /// use idempotency_tower::{Policy, Secret};
    /// # let (old, new) = ([1; 32], [2; 32]);
    ///
    /// let policy = Policy::builder()
    ///     .secret(Secret::new(2, new))
    ///     .previous_secret(Secret::new(1, old))
    ///     .build()?;
    /// # Ok::<(), idempotency_tower::PolicyError>(())
    /// ```
    #[must_use]
    pub fn secret(mut self, secret: Secret) -> Self {
        self.fingerprint.secret = Some(secret);
        self
    }

    /// Accepts records made under this secret too. Each request is then digested twice.
    #[must_use]
    pub fn previous_secret(mut self, secret: Secret) -> Self {
        self.fingerprint.previous_secret = Some(secret);
        self
    }

    /// Accepts records made before there was a secret too. Each request is then digested twice.
    #[must_use]
    pub fn previously_without_secret(mut self) -> Self {
        self.fingerprint.previously_without = true;
        self
    }
}

impl FingerprintOptions {
    /// The rules, if they make sense for keys in the header `key`.
    pub(super) fn rules(self, key: &HeaderName) -> Result<Fingerprints, PolicyError> {
        if self.headers.names().any(|name| HeaderName::try_from(name).is_err()) {
            return Err(PolicyError::Door("fingerprint_headers names what no header can be called"));
        }
        if self.headers.names().any(|name| name == key.as_str()) {
            return Err(PolicyError::Door("fingerprint_headers names the key's own header"));
        }
        let (body, headers, secret) = (self.body()?, self.headers.clone(), self.secret.clone());
        Ok(Fingerprints { body, headers, secret, previous: self.previous()? })
    }

    fn body(&self) -> Result<BodyRule, PolicyError> {
        match (self.reading == BodyReading::default(), &self.own, self.left_out) {
            (_, None, false) => Ok(BodyRule::Read(self.reading)),
            (true, Some(own), false) => Ok(BodyRule::Own(Arc::clone(own))),
            (true, None, true) => Ok(BodyRule::LeftOut),
            _ => Err(PolicyError::Door("a body is read, given to a function or left out, one of them")),
        }
    }

    fn previous(self) -> Result<Option<Previous>, PolicyError> {
        match (self.secret, self.previous_secret, self.previously_without) {
            (_, None, false) => Ok(None),
            (None, ..) => Err(PolicyError::Door("a previous secret, or none, precedes a secret")),
            (_, Some(_), true) => {
                Err(PolicyError::Door("previously_without_secret contradicts previous_secret"))
            }
            (Some(secret), Some(previous), false) if secret.id() == previous.id() => {
                Err(PolicyError::Door("two secrets have the same id"))
            }
            (Some(_), Some(previous), false) => Ok(Some(Previous::Secret(previous))),
            (Some(_), None, true) => Ok(Some(Previous::NoSecret)),
        }
    }
}

#[cfg(test)]
mod tests {
    use idempotency_core::policy::PolicyError;

    use super::*;
    use crate::Policy;

    fn rule(builder: PolicyBuilder) -> &'static str {
        match builder.build().unwrap_err() {
            PolicyError::Door(rule) => rule,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn contradictions_about_a_body_are_refused() {
        let rules = [
            Policy::builder().canonical_json().body_left_out_of_the_fingerprint(),
            Policy::builder().multipart_by_part().fingerprint_body(|_, body| body.clone()),
            Policy::builder().body_left_out_of_the_fingerprint().fingerprint_body(|_, body| body.clone()),
        ];
        for builder in rules {
            assert_eq!(rule(builder), "a body is read, given to a function or left out, one of them");
        }
        assert!(Policy::builder().canonical_json().multipart_by_part().build().is_ok());
    }

    #[test]
    fn secrets_that_cannot_be_told_apart_or_follow_nothing_are_refused() {
        let secret = |id| Secret::new(id, [id as u8; 32]);
        let new = Policy::builder;
        assert_eq!(rule(new().previous_secret(secret(1))), "a previous secret, or none, precedes a secret");
        assert_eq!(rule(new().previously_without_secret()), "a previous secret, or none, precedes a secret");
        let twice = new().secret(secret(1)).previous_secret(Secret::new(1, [9; 32]));
        assert_eq!(rule(twice), "two secrets have the same id");
        let both = new().secret(secret(2)).previous_secret(secret(1)).previously_without_secret();
        assert_eq!(rule(both), "previously_without_secret contradicts previous_secret");
        assert!(new().secret(secret(2)).previous_secret(secret(1)).build().is_ok());
    }

    #[test]
    fn the_key_s_own_header_and_what_is_none_are_not_compared() {
        let own = Policy::builder().fingerprint_headers(["X-Shop", "Idempotency-Key"]);
        assert_eq!(rule(own), "fingerprint_headers names the key's own header");
        let none = Policy::builder().fingerprint_headers(["X Shop"]);
        assert_eq!(rule(none), "fingerprint_headers names what no header can be called");
    }
}
