//! Whether an answer is what was expected; if not, in which ways.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    run::words::Words,
    vector::{BodyRule, BodyShape, Expect, FieldRule, FieldShape, StatusRule},
    wire::Answer,
};

const MARKER: &str = "idempotency-replayed";
/// How much of a body is shown.
const SHOWN: usize = 60;

/// What is known when an answer is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bench<'a> {
    pub(super) words: &'a Words,
    pub(super) earlier: &'a HashMap<String, Answer>,
}

impl Bench<'_> {
    /// In which ways the answer is not what was expected. None: it is.
    pub(super) fn judge(&self, expect: &Expect, answer: &Answer) -> Vec<String> {
        let mut wrong = Vec::new();
        if let Some(rule) = &expect.status
            && !status_fits(rule, answer.status)
        {
            wrong.push(format!("status: expected {}, got {}", status_text(rule), answer.status));
        }
        for (name, rule) in &expect.headers {
            wrong.extend(self.field(name, rule, answer));
        }
        wrong.extend(expect.body.as_ref().and_then(|rule| self.body(rule, answer)));
        if !expect.json.is_empty() {
            wrong.extend(members(&expect.json, answer));
        }
        wrong.extend(marks(expect, answer));
        wrong.extend(self.times(expect, answer));
        if !expect.any_of.is_empty() {
            let each: Vec<_> = expect.any_of.iter().map(|expect| self.judge(expect, answer)).collect();
            if each.iter().all(|wrong| !wrong.is_empty()) {
                let each: Vec<_> = each.iter().map(|wrong| format!("({})", wrong.join(", "))).collect();
                wrong.push(format!("none of {} is so: {}", each.len(), each.join(" or ")));
            }
        }
        wrong
    }

    fn field(&self, name: &str, rule: &FieldRule, answer: &Answer) -> Option<String> {
        let got = answer.field(name);
        let shown = got.as_ref().map_or("nothing".to_owned(), |text| format!("{text:?}"));
        let wanted = match rule {
            FieldRule::Absent => got.is_some().then(|| "nothing".to_owned()),
            FieldRule::Exactly(text) => {
                let text = self.words.text(text);
                (got.as_deref() != Some(text.as_str())).then(|| format!("{text:?}"))
            }
            FieldRule::Rule(FieldShape::Present(present)) => {
                (got.is_some() != *present).then(|| if *present { "any value" } else { "nothing" }.to_owned())
            }
            FieldRule::Rule(FieldShape::Matches(pattern)) => match regex_lite::Regex::new(pattern) {
                Ok(regex) if got.is_some_and(|text| regex.is_match(&text)) => None,
                Ok(_) => Some(format!("/{pattern}/")),
                Err(error) => Some(format!("a pattern, which {pattern:?} is not ({error})")),
            },
            FieldRule::Rule(FieldShape::Lines(lines)) => {
                (answer.lines(name) != *lines).then(|| format!("the lines {lines:?}"))
            }
            FieldRule::Rule(FieldShape::SameAs(step)) => match self.earlier.get(step) {
                Some(earlier) if earlier.lines(name) == answer.lines(name) => None,
                Some(earlier) => Some(format!("as in {step:?}: {:?}", earlier.lines(name))),
                None => Some(format!("as in {step:?}, which has no answer")),
            },
            FieldRule::Rule(FieldShape::Between(least, most)) => {
                let (least, most) = (self.words.number(*least), self.words.number(*most));
                let number = got.and_then(|text| text.parse::<u64>().ok());
                (!number.is_some_and(|number| (least..=most).contains(&number)))
                    .then(|| format!("a number from {least} to {most}"))
            }
        };
        wanted.map(|wanted| format!("header {}: expected {wanted}, got {shown}", name.to_lowercase()))
    }

    fn body(&self, rule: &BodyRule, answer: &Answer) -> Option<String> {
        let got = || shown(&answer.body);
        match rule {
            BodyRule::Exactly(bytes) => {
                let bytes = self.words.bytes(bytes);
                (bytes != answer.body).then(|| format!("body: expected {}, got {}", shown(&bytes), got()))
            }
            BodyRule::Rule(BodyShape::Length(length)) => (answer.body.len() != *length)
                .then(|| format!("body: expected {length} bytes, got {}", answer.body.len())),
            BodyRule::Rule(BodyShape::SameAs(step)) => match self.earlier.get(step) {
                Some(earlier) if earlier.body == answer.body => None,
                Some(earlier) => {
                    let earlier = shown(&earlier.body);
                    Some(format!("body: expected as in {step:?}, {earlier}, got {}", got()))
                }
                None => Some(format!("body: expected as in {step:?}, which has no answer")),
            },
            BodyRule::Rule(BodyShape::DiffersFrom(step)) => match self.earlier.get(step) {
                Some(earlier) if earlier.body != answer.body => None,
                _ => Some(format!("body: expected another one than in {step:?}, got {}", got())),
            },
        }
    }

    fn times(&self, expect: &Expect, answer: &Answer) -> Vec<String> {
        let mut wrong = Vec::new();
        let took = answer.took.as_millis();
        if let Some(most) = expect.within_ms.map(|most| u128::from(self.words.number(most)))
            && took > most
        {
            wrong.push(format!("time: expected at most {most} ms, got {took}"));
        }
        if let Some(least) = expect.no_sooner_than_ms.map(|least| u128::from(self.words.number(least)))
            && took < least
        {
            wrong.push(format!("time: expected at least {least} ms, got {took}"));
        }
        if let Some(most) = expect.first_byte_within_ms.map(|most| u128::from(self.words.number(most))) {
            match answer.first_byte.map(|first| first.as_millis()) {
                Some(first) if first <= most => {}
                Some(first) => {
                    wrong.push(format!(
                        "first byte of the body: expected within {most} ms, got it after {first}"
                    ));
                }
                None => wrong.push(format!("first byte of the body: expected within {most} ms, got none")),
            }
        }
        wrong
    }
}

/// What is expected of the message as a whole.
fn marks(expect: &Expect, answer: &Answer) -> Vec<String> {
    let mut wrong = Vec::new();
    let unless_left_open = expect.any_of.is_empty().then_some(true);
    if let Some(is_whole) = expect.whole.or(unless_left_open)
        && answer.is_whole != is_whole
    {
        let (wanted, got) = if is_whole { ("whole", "cut off") } else { ("cut off", "whole") };
        wrong.push(format!("body: expected it {wanted}, got it {got}"));
    }
    if let Some(replayed) = expect.replayed {
        let marker = answer.field(MARKER);
        if (marker.as_deref() == Some("true")) != replayed {
            let wanted = if replayed { "\"true\"" } else { "no mark" };
            let got = marker.map_or("nothing".to_owned(), |text| format!("{text:?}"));
            wrong.push(format!("header {MARKER}: expected {wanted}, got {got}"));
        }
    }
    if expect.problem {
        wrong.extend(problem(answer));
    }
    if expect.documented && !is_documented(answer) {
        wrong.push("documentation: expected a Link field or a link in the body, got neither".to_owned());
    }
    if expect.bodiless {
        let framing = answer.fields.iter().filter(|(name, value)| {
            name.eq_ignore_ascii_case("transfer-encoding")
                || (name.eq_ignore_ascii_case("content-length") && value != b"0")
        });
        wrong.extend(framing.map(|(name, _)| format!("header {}: expected nothing", name.to_lowercase())));
        if answer.surplus > 0 {
            wrong.push(format!("body: expected none, got {} bytes after the head", answer.surplus));
        }
    }
    if let Some(fields) = expect.framing_fields
        && answer.framing_fields() != fields
    {
        wrong.push(format!(
            "fields that delimit the body: expected {fields}, got {}",
            answer.framing_fields()
        ));
    }
    if let Some(interim) = &expect.interim
        && *interim != answer.interim
    {
        wrong.push(format!("interim answers: expected {interim:?}, got {:?}", answer.interim));
    }
    wrong
}

fn members<'a>(expected: impl IntoIterator<Item = (&'a String, &'a Value)>, answer: &Answer) -> Vec<String> {
    let Ok(Value::Object(object)) = serde_json::from_slice(&answer.body) else {
        return vec![format!("body: expected a JSON object, got {}", shown(&answer.body))];
    };
    let wrong = expected.into_iter().filter(|(name, value)| object.get(*name) != Some(value));
    wrong
        .map(|(name, value)| {
            let got = object.get(name).map_or("nothing".to_owned(), Value::to_string);
            format!("body.{name}: expected {value}, got {got}")
        })
        .collect()
}

fn problem(answer: &Answer) -> Vec<String> {
    let media_type = answer.field("content-type").unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/problem+json") {
        return vec![format!("header content-type: expected application/problem+json, got {media_type:?}")];
    }
    let mut wrong = members([(&"status".to_owned(), &Value::from(answer.status))], answer);
    let object: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    for member in ["type", "title"] {
        if !object[member].is_string() {
            wrong.push(format!("body.{member}: expected a text, got {}", object[member]));
        }
    }
    wrong
}

fn is_documented(answer: &Answer) -> bool {
    let body = String::from_utf8_lossy(&answer.body);
    answer.field("link").is_some() || body.contains("http://") || body.contains("https://")
}

fn status_fits(rule: &StatusRule, status: u16) -> bool {
    match rule {
        StatusRule::One(wanted) => *wanted == status,
        StatusRule::OneOf(wanted) => wanted.contains(&status),
        StatusRule::Class(class) => class.strip_suffix("xx") == Some((status / 100).to_string().as_str()),
    }
}

fn status_text(rule: &StatusRule) -> String {
    match rule {
        StatusRule::One(status) => status.to_string(),
        StatusRule::OneOf(statuses) => statuses.iter().map(u16::to_string).collect::<Vec<_>>().join(" or "),
        StatusRule::Class(class) => class.clone(),
    }
}

fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.len() <= SHOWN => format!("{text:?}"),
        _ => format!("{} bytes", bytes.len()),
    }
}

#[cfg(test)]
mod tests;
