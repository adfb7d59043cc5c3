//! What is to be done at most once, and where its record stands.

use std::fmt;

use crate::{Fingerprint, Key, Parts};

/// Which kind of door an operation came through. One key used at two doors is two operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Door {
    /// HTTP and gRPC requests.
    Http,
    /// Messages of a queue.
    Queue,
    /// Verified webhook deliveries.
    Webhook,
    /// Effects of an agent.
    Agent,
    /// HTTP requests seen by a policy in the shadow: their records never answer anybody.
    Shadow,
}

impl Door {
    const fn tag(self) -> u8 {
        match self {
            Self::Http => 1,
            Self::Queue => 2,
            Self::Webhook => 3,
            Self::Agent => 4,
            Self::Shadow => 5,
        }
    }
}

/// Whose key space an operation belongs to: structured, never glued text, so that no tenant and principal can be
/// read as another pair.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Scope {
    tenant: Option<Box<str>>,
    principal: Option<Box<str>>,
}

impl Scope {
    /// The one key space all callers share.
    pub const fn shared() -> Self {
        Self { tenant: None, principal: None }
    }

    /// The key space of one principal: a user, an account, a consumer group.
    pub fn principal(principal: impl Into<Box<str>>) -> Self {
        Self { tenant: None, principal: Some(principal.into()) }
    }

    /// The same scope inside one tenant (organisation, shop, queue).
    #[must_use]
    pub fn in_tenant(mut self, tenant: impl Into<Box<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Whether its principal or its tenant is set to nothing, as one is that was read from where it is missing. A door
    /// refuses such a scope: all callers without a name would share it.
    pub fn names_nobody(&self) -> bool {
        [&self.principal, &self.tenant].into_iter().flatten().any(|part| part.is_empty())
    }
}

impl From<&str> for Scope {
    fn from(principal: &str) -> Self {
        Self::principal(principal)
    }
}

impl From<String> for Scope {
    fn from(principal: String) -> Self {
        Self::principal(principal)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |part: &Option<Box<str>>| if part.is_some() { "set" } else { "none" };
        write!(f, "Scope(tenant {}, principal {})", shown(&self.tenant), shown(&self.principal))
    }
}

/// What stores index by: a 32-byte digest of door, scope and key, each framed by its length.
///
/// It is never keyed by a secret, so that hosts with different secrets meet on one record. Printed, it is its first
/// 8 bytes in hex: enough to find a record, too little to be the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address([u8; 32]);

impl Address {
    /// Room for what most addresses are the digest of.
    const USUAL: usize = 192;

    /// The digest of `key` within `scope` at `door`.
    pub fn new(door: Door, scope: &Scope, key: &Key) -> Self {
        // In one piece: most addresses are of fewer bytes than a hasher's state has.
        let mut framed = Vec::with_capacity(Self::USUAL);
        // So short that a UUID without a scope is digested in one block.
        framed.extend_from_slice(b"address 1");
        framed.push(door.tag());
        for part in [scope.tenant.as_deref(), scope.principal.as_deref(), Some(key.as_str())] {
            framed.push(u8::from(part.is_some()));
            if let Some(text) = part {
                framed.extend_from_slice(&(text.len() as u64).to_le_bytes());
                framed.extend_from_slice(text.as_bytes());
            }
        }
        Self(*blake3::hash(&framed).as_bytes())
    }

    /// An address read back from a store.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes a store indexes by.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// One thing to be done at most once: where its record stands and what was asked.
///
/// Scope and key are digested when it is made and are not kept, so no store, log or event can show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    address: Address,
    fingerprint: Fingerprint,
    /// In a box: few services change their secret, and an operation goes from future to future.
    previous: Option<Box<Fingerprint>>,
}

impl Operation {
    /// The operation that asks `fingerprint` at `address`.
    pub const fn new(address: Address, fingerprint: Fingerprint) -> Self {
        Self { address, fingerprint, previous: None }
    }

    /// The same operation, known by `previous` too: what is asked, under the secret that was in use before.
    #[must_use]
    pub fn with_previous(self, previous: Fingerprint) -> Self {
        Self { previous: Some(Box::new(previous)), ..self }
    }

    /// Where its record stands.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// What was asked, as a grant records it.
    pub const fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// What was asked, as a record from before a change of secrets may have it.
    pub fn previous(&self) -> Option<&Fingerprint> {
        self.previous.as_deref()
    }

    /// Whether a record with this fingerprint is of the same payload.
    pub fn accepts(&self, recorded: &Fingerprint) -> bool {
        self.fingerprint == *recorded || self.previous().is_some_and(|previous| previous == recorded)
    }

    /// The parts in which a record's payload differs; [`Part::Secret`](crate::Part::Secret) alone when it was recorded
    /// under a secret that this operation was not digested with.
    pub fn differing_parts(&self, recorded: &Fingerprint) -> Parts {
        let comparable = self.previous().filter(|previous| previous.shares_secret(recorded));
        comparable.unwrap_or(&self.fingerprint).differing_parts(recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Part, Secret};

    fn address(scope: &Scope, key: &str) -> Address {
        Address::new(Door::Http, scope, &Key::new(key).unwrap())
    }

    #[test]
    fn scope_and_key_cannot_be_split_another_way() {
        let glued = [
            address(&Scope::principal("a"), "b:k"),
            address(&Scope::principal("a:b"), "k"),
            address(&Scope::principal("k").in_tenant("a:b"), "k"),
            address(&Scope::shared().in_tenant("a:b"), "k"),
            address(&Scope::shared(), "a:b:k"),
        ];
        for (i, one) in glued.iter().enumerate() {
            assert!(glued[i + 1..].iter().all(|other| one != other), "address {i} repeats");
        }
    }

    #[test]
    fn an_empty_name_is_nobody_s_and_an_absent_one_is_everybody_s() {
        assert!(Scope::principal("").names_nobody());
        assert!(Scope::principal("alice").in_tenant("").names_nobody());
        assert!(!Scope::principal("alice").in_tenant("acme").names_nobody());
        assert!(!Scope::shared().names_nobody());
    }

    #[test]
    fn doors_have_key_spaces_of_their_own() {
        let key = Key::new("k").unwrap();
        let of = |door| Address::new(door, &Scope::shared(), &key);
        assert_ne!(of(Door::Http), of(Door::Webhook));
        assert_eq!(of(Door::Http), of(Door::Http));
    }

    #[test]
    fn nothing_printed_holds_scope_or_key() {
        let scope = Scope::principal("alice").in_tenant("acme");
        let shown = format!("{scope:?} {:?}", address(&scope, "order-1"));
        assert!(!shown.contains("alice") && !shown.contains("acme") && !shown.contains("order-1"), "{shown}");
    }

    #[test]
    fn a_record_is_known_under_the_current_and_the_previous_secret() {
        let asked = |id: u32, body: &[u8]| {
            Fingerprint::keyed(&Secret::new(id, [id as u8; 32])).part(Part::Body, body).build()
        };
        let op = Operation::new(address(&Scope::shared(), "k"), asked(2, b"a")).with_previous(asked(1, b"a"));
        assert!(op.accepts(&asked(2, b"a")) && op.accepts(&asked(1, b"a")));
        for (recorded, part) in
            [(asked(2, b"b"), Part::Body), (asked(1, b"b"), Part::Body), (asked(3, b"a"), Part::Secret)]
        {
            assert!(!op.accepts(&recorded));
            assert_eq!(op.differing_parts(&recorded), Parts::from_iter([part]), "{recorded:?}");
        }
    }
}
