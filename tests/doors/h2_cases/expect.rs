//! What a case expects of an answer.

use std::{
    collections::{BTreeMap, HashMap},
    io::Read,
    time::Duration,
};

use flate2::read::GzDecoder;
use regex_lite::RegexBuilder;
use serde::Deserialize;
use serde_json::Value;

use super::{
    connection::{Broken, Seen},
    words::Words,
};

/// Fields that belong to one HTTP/1.1 connection, and make an HTTP/2 answer malformed.
const OF_A_CONNECTION: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// The answers of a case so far, by their names.
pub(crate) type Others = HashMap<String, Seen>;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expect {
    status: Option<Status>,
    not_status: Vec<u16>,
    replayed: Option<bool>,
    not_fresh: bool,
    headers: BTreeMap<String, Option<Field>>,
    body: Option<Body>,
    /// How many fields frame the body over HTTP/1.1. Here the same holds of every answer.
    #[serde(rename = "framing_headers")]
    _framing_headers: Option<u8>,
    problem: bool,
    max_ms: Option<u64>,
    min_ms: Option<u64>,
    first_byte_max_ms: Option<u64>,
    /// The body is compared as it was before it was compressed.
    decode: bool,
    /// The answer may break off.
    closed_ok: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Status {
    Is(u16),
    OneOf(Vec<u16>),
    Within { range: (u16, u16) },
}

impl Status {
    fn allows(&self, status: u16) -> bool {
        match self {
            Self::Is(expected) => *expected == status,
            Self::OneOf(expected) => expected.contains(&status),
            Self::Within { range: (first, last) } => (*first..=*last).contains(&status),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Field {
    Is(String),
    Obeys(FieldRules),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FieldRules {
    count: Option<usize>,
    max_count: Option<usize>,
    re: Option<String>,
    same_as: Option<String>,
    int_range: Option<(u64, u64)>,
}

impl Field {
    fn complaint(&self, found: &[String], same: impl Fn(&str) -> Vec<String>) -> Option<String> {
        let rules = match self {
            Self::Is(value) => return (found != [value.as_str()]).then(|| format!("not {value:?}")),
            Self::Obeys(rules) => rules,
        };
        let FieldRules { count, max_count, re, same_as, int_range } = rules;
        let matches = |pattern: &String| {
            let pattern = RegexBuilder::new(pattern).case_insensitive(true).build().unwrap();
            !found.is_empty() && found.iter().all(|value| pattern.is_match(value))
        };
        let within = |(first, last): &(u64, u64)| matches!(found, [value] if value.parse().is_ok_and(|number| (*first..=*last).contains(&number)));
        let obeyed = count.is_none_or(|count| found.len() == count)
            && max_count.is_none_or(|count| found.len() <= count)
            && re.as_ref().is_none_or(matches)
            && same_as.as_ref().is_none_or(|other| found == same(other))
            && int_range.as_ref().is_none_or(within);
        (!obeyed).then(|| format!("not {rules:?}"))
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Body {
    Is(String),
    Obeys(BodyRules),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BodyRules {
    same_as: Option<String>,
    not_same_as: Option<String>,
    len: Option<usize>,
    empty: bool,
    lacks: Option<String>,
}

impl Body {
    fn is_kept_by(&self, found: &[u8], others: &Others, words: &mut Words) -> bool {
        let BodyRules { same_as, not_same_as, len, empty, lacks } = match self {
            Self::Is(text) => return found == words.fill(text).as_bytes(),
            Self::Obeys(rules) => rules,
        };
        let has = |text: &String| found.windows(text.len()).any(|part| part == text.as_bytes());
        same_as.as_ref().is_none_or(|other| found == others[other].body)
            && not_same_as.as_ref().is_none_or(|other| found != others[other].body)
            && len.is_none_or(|len| found.len() == len)
            && (!empty || found.is_empty())
            && !lacks.as_ref().is_some_and(has)
    }
}

impl Expect {
    /// What is wrong with an answer.
    pub(crate) fn complaints(&self, seen: &Seen, others: &Others, words: &mut Words) -> Vec<String> {
        if let Some(broken) = &seen.broken
            && !self.closed_ok
        {
            return vec![format!("the answer is not whole: {broken}")];
        }
        let mut complaints = Vec::new();
        if seen.status().is_some() {
            self.head(seen, others, &mut complaints);
        }
        if seen.broken.is_none() {
            self.whole(seen, others, words, &mut complaints);
        }
        if matches!(seen.broken.as_deref(), Some(Broken::TooLate)) {
            complaints.push("no answer in time".to_owned());
        }
        complaints
    }

    /// What the head says; it holds of an answer that broke off as well.
    fn head(&self, seen: &Seen, others: &Others, complaints: &mut Vec<String>) {
        let mut complain = |found: bool, what: String| complaints.extend(found.then_some(what));
        let status = seen.status().unwrap().as_u16();
        if let Some(expected) = &self.status {
            complain(!expected.allows(status), format!("the status is not {expected:?}"));
        }
        complain(self.not_status.contains(&status), format!("the status is among {:?}", self.not_status));
        let wrong_marker = self.replayed.is_some_and(|replayed| replayed != seen.is_replay());
        complain(wrong_marker, format!("a replay, or not: expected {:?}", self.replayed));
        complain(self.not_fresh && seen.is_fresh(), "the handler ran again".to_owned());
        for name in OF_A_CONNECTION {
            complain(!seen.values(name).is_empty(), format!("{name} over HTTP/2"));
        }
        complain(seen.values("content-length").len() > 1, "two lengths".to_owned());
        for (name, rule) in &self.headers {
            let found = seen.values(name);
            let complaint = match rule {
                None => (!found.is_empty() && !says_nothing(name, &found)).then(|| "not absent".to_owned()),
                Some(field) => field.complaint(&found, |other| others[other].values(name)),
            };
            complain(complaint.is_some(), format!("{name}: {found:?} is {}", complaint.unwrap_or_default()));
        }
    }

    /// What only a whole answer says.
    fn whole(&self, seen: &Seen, others: &Others, words: &mut Words, complaints: &mut Vec<String>) {
        let mut complain = |found: bool, what: String| complaints.extend(found.then_some(what));
        let body = if self.decode { decoded(seen) } else { seen.body.to_vec() };
        if let Some(expected) = &self.body {
            let kept = expected.is_kept_by(&body, others, words);
            complain(!kept, format!("the body ({} bytes) is not {expected:?}", body.len()));
        }
        complain(self.problem && !is_problem(seen), "not a problem document".to_owned());
        let ms = Duration::from_millis;
        let (took, first) = (seen.took, seen.first);
        complain(self.max_ms.is_some_and(|max| took > ms(max)), format!("it took {took:?}"));
        complain(self.min_ms.is_some_and(|min| took < ms(min)), format!("it took {took:?} only"));
        let late = self.first_byte_max_ms.is_some_and(|max| first > ms(max));
        complain(late, format!("its first byte took {first:?}"));
    }
}

/// A length of 0 beside `END_STREAM` frames nothing, and not every framework leaves it out where HTTP/1.1 forbids it.
fn says_nothing(name: &str, found: &[String]) -> bool {
    name == "content-length" && found == ["0"]
}

fn decoded(seen: &Seen) -> Vec<u8> {
    if seen.values("content-encoding") != ["gzip"] {
        return seen.body.to_vec();
    }
    let mut body = Vec::new();
    GzDecoder::new(&*seen.body).read_to_end(&mut body).unwrap();
    body
}

fn is_problem(seen: &Seen) -> bool {
    let problem: Option<Value> = serde_json::from_slice(&seen.body).ok();
    let status = seen.status().map(|status| u64::from(status.as_u16()));
    let is_of = |media: &String| media.to_ascii_lowercase().starts_with("application/problem+json");
    seen.values("content-type").iter().any(is_of)
        && problem.is_some_and(|problem| problem.get("status").is_none_or(|found| found.as_u64() == status))
}
