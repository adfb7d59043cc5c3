//! What must be true of an answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Bytes, Number};

/// What must be true of an answer. What is not named may be anything.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The status.
    pub status: Option<StatusRule>,
    /// Header fields by name, whatever its case. `null`: the field is absent.
    #[serde(deserialize_with = "rules")]
    pub headers: BTreeMap<String, FieldRule>,
    /// The body.
    pub body: Option<BodyRule>,
    /// Members of a JSON object in the body.
    pub json: BTreeMap<String, Value>,
    /// Whether it is marked as a replay. Only for demands that the marker is a part of.
    pub replayed: Option<bool>,
    /// Whether it is a problem document: its media type, and type, title and status in it.
    pub problem: bool,
    /// Whether it says where the documentation is: a Link field, or a link in its body.
    pub documented: bool,
    /// Whether nothing follows the head, and nothing in the head says that something would.
    pub bodiless: bool,
    /// How many fields delimit the body.
    pub framing_fields: Option<usize>,
    /// Whether the body came to its end as its framing says. True, unless that is left to `any_of`.
    pub whole: Option<bool>,
    /// The statuses before the last one, such as 100.
    pub interim: Option<Vec<u16>>,
    /// The time by which all of it is here, in milliseconds.
    pub within_ms: Option<Number>,
    /// The time before which not all of it is here, in milliseconds.
    pub no_sooner_than_ms: Option<Number>,
    /// The time by which the first byte of the body is here, in milliseconds.
    pub first_byte_within_ms: Option<Number>,
    /// One of these has to be true as well.
    pub any_of: Vec<Expect>,
}

impl Expect {
    /// The names of the earlier answers that it is compared with.
    pub(crate) fn answers(&self) -> Vec<&str> {
        let of_fields = self.headers.values().filter_map(FieldRule::answer);
        let of_body = self.body.as_ref().and_then(BodyRule::answer);
        of_fields.chain(of_body).chain(self.any_of.iter().flat_map(Self::answers)).collect()
    }
}

/// A status, or several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum StatusRule {
    /// This one.
    One(u16),
    /// One of these.
    OneOf(Vec<u16>),
    /// `"2xx"`: a class of them.
    Class(String),
}

/// What a header field has to say.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum FieldRule {
    /// Exactly this, its lines joined by a comma.
    Exactly(String),
    /// Anything else.
    Rule(FieldShape),
    /// Nothing: it must not be there.
    #[serde(skip)]
    Absent,
}

impl FieldRule {
    fn answer(&self) -> Option<&str> {
        match self {
            Self::Rule(FieldShape::SameAs(answer)) => Some(answer),
            _ => None,
        }
    }
}

/// A rule for a header field. Exactly one member.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldShape {
    /// It is there.
    Present(bool),
    /// A pattern is found in it.
    Matches(String),
    /// These lines, in this order.
    Lines(Vec<String>),
    /// The same lines as in that answer.
    SameAs(String),
    /// A whole number from the first to the second, both included.
    Between(Number, Number),
}

/// What a body has to be.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum BodyRule {
    /// A rule.
    Rule(BodyShape),
    /// Exactly these bytes.
    Exactly(Bytes),
}

impl BodyRule {
    fn answer(&self) -> Option<&str> {
        match self {
            Self::Rule(BodyShape::SameAs(answer) | BodyShape::DiffersFrom(answer)) => Some(answer),
            _ => None,
        }
    }
}

/// A rule for a body. Exactly one member.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyShape {
    /// The same bytes as in that answer.
    SameAs(String),
    /// Other bytes than in that answer.
    DiffersFrom(String),
    /// So many bytes.
    Length(usize),
}

/// `null` is a rule here: the field must not be there.
fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, FieldRule>, D::Error> {
    let written = BTreeMap::<String, Option<FieldRule>>::deserialize(deserializer)?;
    Ok(written.into_iter().map(|(name, rule)| (name, rule.unwrap_or(FieldRule::Absent))).collect())
}
