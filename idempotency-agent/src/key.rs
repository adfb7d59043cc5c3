//! What names an effect: its scope, its intent, and the keys that follow from them.

use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{
    Compat,
    json::{PayloadError, Tree, canonical},
};

/// The longest scope, in UTF-16 units.
const SCOPE_UNITS: usize = 512;
/// The longest intent.
const INTENT_CHARS: usize = 100;

/// What an agent's effects are recorded under: usually a conversation. 1 to 512 UTF-16 units, which is within the bounds of
/// workers in any language.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerScope(String);

/// Why a text names no scope or no intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// An empty scope.
    #[error("a scope is not empty")]
    EmptyScope,
    /// A scope of more than 512 UTF-16 units.
    #[error("a scope has at most 512 UTF-16 units")]
    LongScope,
    /// An empty id of a job or an event: all that have none would be taken for one.
    #[error("the id of a job or an event is not empty")]
    EmptyId,
    /// An intent that is not 1 to 100 of the characters `A-Z a-z 0-9 _ . : -`.
    #[error("an intent is 1 to 100 of the characters A-Z a-z 0-9 _ . : -")]
    Intent,
}

impl LedgerScope {
    /// The scope that `name` names.
    ///
    /// # Errors
    /// [`NameError`] when it is empty or too long.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        if name.is_empty() {
            return Err(NameError::EmptyScope);
        }
        if name.encode_utf16().count() > SCOPE_UNITS {
            return Err(NameError::LongScope);
        }
        Ok(Self(name))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LedgerScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What kind of effect: `reply`, `refund`. 1 to 100 of the characters `A-Z a-z 0-9 _ . : -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Intent(String);

impl Intent {
    /// What effects under a plain key have.
    pub(crate) const ONCE: &str = "once";

    /// The intent that `name` names.
    ///
    /// # Errors
    /// [`NameError::Intent`] when it is none.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        Self::under(name, Compat::Mended)
    }

    /// As [`new`](Self::new), by the rules of `compat`: the original also takes one line break at the end.
    ///
    /// # Errors
    /// [`NameError::Intent`] when it is none.
    pub fn under(name: impl Into<String>, compat: Compat) -> Result<Self, NameError> {
        let name = name.into();
        let core = match compat {
            Compat::Mended => &name,
            Compat::Strict => name.strip_suffix('\n').unwrap_or(&name),
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-');
        if (1..=INTENT_CHARS).contains(&core.len()) && core.bytes().all(is_plain) {
            Ok(Self(name))
        } else {
            Err(NameError::Intent)
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an effect is recorded under within its scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EffectKey(String);

impl EffectKey {
    /// The only effect of its intent in its scope: the key is the intent.
    pub fn of_intent(intent: &Intent) -> Self {
        Self(intent.0.clone())
    }

    /// One of many effects of an intent, told apart by `identity`: an order's id, the messages a reply answers. Null is an
    /// identity too.
    ///
    /// # Errors
    /// [`PayloadError`] when JSON cannot hold the identity.
    pub fn identified(intent: &Intent, identity: &(impl Serialize + ?Sized)) -> Result<Self, PayloadError> {
        Self::of_tree(intent, &Tree::of(identity)?, Compat::Mended)
    }

    /// As [`identified`](Self::identified), of a payload already read, by the rules of `compat`.
    ///
    /// # Errors
    /// [`PayloadError::NotFinite`], unless `compat` is strict.
    pub fn of_tree(intent: &Intent, identity: &Tree, compat: Compat) -> Result<Self, PayloadError> {
        Ok(Self(format!("{intent}:{}", digest(identity, compat)?)))
    }

    /// A key that is the caller's own text.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A key for a provider that takes idempotency keys: the same for all attempts and all workers.
    pub fn provider_key(&self, scope: &LedgerScope) -> ProviderKey {
        ProviderKey::digest(&[scope.as_str(), &self.0])
    }

    /// A key for a provider that remembers failures under a key: another for each attempt. It protects a request that is
    /// sent twice within one attempt, and no more.
    pub fn provider_key_of_attempt(&self, scope: &LedgerScope, attempt: u64) -> ProviderKey {
        ProviderKey::digest(&[scope.as_str(), &self.0, &attempt.to_string()])
    }
}

impl fmt::Display for EffectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What to send to a provider as its idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProviderKey(String);

impl ProviderKey {
    fn digest(parts: &[&str]) -> Self {
        let digest = hex(&Sha256::digest(parts.join("\0")));
        Self(format!("ro_{}", &digest[..40]))
    }

    /// Its text: 43 characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProviderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// 128 bits of what `payload` says, as 32 digits.
pub(crate) fn digest(payload: &Tree, compat: Compat) -> Result<String, PayloadError> {
    let mut digest = hex(&Sha256::digest(canonical(payload, compat)?));
    digest.truncate(32);
    Ok(digest)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
