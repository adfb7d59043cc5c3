//! One conditional write: its expressions, and the values they name.

use std::{borrow::Cow, collections::HashMap};

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use idempotency_core::{
    Address, Bid, Fence, Fingerprint, Holder, Keep, OnLapse, Operation, Outcome, Phase, PhaseName, Record,
    clock::{Timestamp, as_micros},
    columns::{form_code, integer, on_lapse_code, phase_code},
};

use crate::{
    expressions::{
        AFTER, COMPLETE, COMPLETE_IF, DOUBT, DOUBT_IF, GRANT_HOLD, GRANT_IF, GRANT_TAKE_OVER, IN_DOUBT,
        RELEASE, RELEASE_IF, RENEW, RENEW_IF, RESOLVE_APPLIED, RESOLVE_APPLIED_IF, RESOLVE_NOT_APPLIED_IF,
    },
    item::{RENEWED_FREELY, attributes, b, expires_at, n, seconds},
};

/// The first byte of a fingerprint that this store reads.
const FORMAT: u8 = 2;

type Text = Cow<'static, str>;

/// A conditional write to one item.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) condition: Text,
    pub(crate) update: Text,
    pub(crate) returns: ReturnValue,
    values: Values,
}

impl Write {
    fn new(condition: impl Into<Text>, update: impl Into<Text>, values: Values) -> Self {
        Self { condition: condition.into(), update: update.into(), returns: ReturnValue::None, values }
    }

    /// The grant that `op` and `bid` would get at `now`. It returns what it changed, the attempt among it.
    pub(crate) fn grant(op: &Operation, bid: &Bid, now: Timestamp) -> Self {
        let asked = b(&op.fingerprint().to_bytes());
        let granted = Record {
            phase: Phase::InFlight { fingerprint: *op.fingerprint(), until: now.plus(bid.lease) },
            holder: bid.holder,
            fence: Fence::from_u64(now.as_micros()),
            attempt: 1,
            on_lapse: bid.on_lapse,
            retention: bid.retention,
        };
        let retention = integer(as_micros(bid.retention));
        let values = Values::new()
            .with(":holder", b(bid.holder.as_bytes()))
            .with(":now", n(integer(now.as_micros())))
            .with(":until", n(integer(now.plus(bid.lease).as_micros())))
            .with(":abandoned", n(integer(now.as_micros()).saturating_sub(retention)))
            .with(":on_lapse", n(on_lapse_code(bid.on_lapse)))
            .with(":retention", n(retention))
            .with(":retention_seconds", n(seconds(as_micros(bid.retention))))
            .with(":previous", op.previous().map_or(asked.clone(), |previous| b(&previous.to_bytes())))
            .with(":fingerprint", asked);
        let (update, values) = match expires_at(&granted) {
            Some(at) => (GRANT_TAKE_OVER, values.with(":expires_at", n(at))),
            None => (GRANT_HOLD, values),
        };
        Self { returns: ReturnValue::UpdatedNew, ..Self::new(GRANT_IF, update, values) }
    }

    /// Extends the lease to `until`.
    pub(crate) fn renew(holder: &Holder, until: Timestamp) -> Self {
        let freely = integer(as_micros(RENEWED_FREELY));
        let until = integer(until.as_micros());
        let values = Values::new()
            .with(":holder", b(holder.as_bytes()))
            .with(":until", n(until))
            .with(":fence_least", n(until.saturating_sub(freely)));
        Self::new(RENEW_IF, RENEW, values)
    }

    /// Ends the run with `outcome` at `now`.
    pub(crate) fn complete(holder: &Holder, outcome: &Outcome, keep: Keep, now: Timestamp) -> Self {
        let values = Values::kept(outcome, keep, now).with(":holder", b(holder.as_bytes()));
        Self::new(COMPLETE_IF, COMPLETE, values)
    }

    /// Frees the key at `now`.
    pub(crate) fn release(holder: &Holder, now: Timestamp) -> Self {
        let values = Values::freed(now).with(":holder", b(holder.as_bytes()));
        Self::new(RELEASE_IF, RELEASE, values)
    }

    /// Puts the run in doubt.
    pub(crate) fn doubt(holder: &Holder) -> Self {
        Self::new(DOUBT_IF, DOUBT, Values::new().with(":holder", b(holder.as_bytes())))
    }

    /// Ends the doubt under `fence` with `outcome`, at `now`.
    pub(crate) fn resolve_applied(fence: Fence, outcome: &Outcome, keep: Keep, now: Timestamp) -> Self {
        let values = Values::kept(outcome, keep, now)
            .with(":fence", whole(fence))
            .with(":now", n(integer(now.as_micros())));
        Self::new(RESOLVE_APPLIED_IF, RESOLVE_APPLIED, values)
    }

    /// Ends the doubt under `fence` by freeing the key, at `now`.
    pub(crate) fn resolve_not_applied(fence: Fence, now: Timestamp) -> Self {
        Self::new(RESOLVE_NOT_APPLIED_IF, RELEASE, Values::freed(now).with(":fence", whole(fence)))
    }

    /// Puts `after` in the place of exactly `before`.
    ///
    /// Phase, holder, fence and until are the version of a record: no input of the law changes anything else and leaves
    /// these four as they were.
    pub(crate) fn replace(before: Option<&Record>, after: &Record) -> Self {
        let mut values = Values::new();
        let mut unchanged = Vec::new();
        match before {
            None => unchanged.push("attribute_not_exists(#address)".to_owned()),
            Some(before) => {
                for (name, value) in attributes(before) {
                    if !["phase", "holder", "fence", "until"].contains(&name) {
                        continue;
                    }
                    unchanged.push(match value {
                        Some(value) => {
                            values.0.insert(format!(":old_{name}").into(), value);
                            format!("#{name} = :old_{name}")
                        }
                        None => format!("attribute_not_exists(#{name})"),
                    });
                }
            }
        }
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        for (name, value) in attributes(after) {
            match value {
                Some(value) => {
                    values.0.insert(format!(":new_{name}").into(), value);
                    set.push(format!("#{name} = :new_{name}"));
                }
                None => remove.push(format!("#{name}")),
            }
        }
        let update = format!("SET {} REMOVE {}", set.join(", "), remove.join(", "));
        Self::new(unchanged.join(" AND "), update, values)
    }

    /// What the names in the expressions stand for.
    pub(crate) fn names(&self) -> HashMap<String, String> {
        names(&[&self.condition, &self.update])
    }

    /// What the values in the expressions are.
    pub(crate) fn values(&self) -> HashMap<String, AttributeValue> {
        self.values.in_expressions(&[&self.condition, &self.update])
    }
}

/// The filter of a listing: an expression and what it names, or nothing where every record passes.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) expression: Option<String>,
    values: Values,
}

impl Filter {
    /// What comes after `after`, and is in doubt at that time where one is given.
    pub(crate) fn new(after: Option<&Address>, in_doubt_at: Option<Timestamp>) -> Self {
        let (mut parts, mut values) = (Vec::new(), Values::new());
        if let Some(after) = after {
            parts.push(AFTER);
            values = values.with(":after", b(after.as_bytes()));
        }
        if let Some(now) = in_doubt_at {
            parts.push(IN_DOUBT);
            values = values.with(":now", n(integer(now.as_micros())));
        }
        Self { expression: (!parts.is_empty()).then(|| parts.join(" AND ")), values }
    }

    /// What the names in the expression stand for.
    pub(crate) fn names(&self) -> Option<HashMap<String, String>> {
        self.expression.as_ref().map(|expression| names(&[expression]))
    }

    /// What the values in the expression are.
    pub(crate) fn values(&self) -> Option<HashMap<String, AttributeValue>> {
        self.expression.as_ref().map(|expression| self.values.in_expressions(&[expression]))
    }
}

#[derive(Debug, Clone)]
struct Values(HashMap<Text, AttributeValue>);

impl Values {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn kept(outcome: &Outcome, keep: Keep, now: Timestamp) -> Self {
        let until = now.plus(keep.replay);
        let gone = until.plus(keep.then_reject);
        Self::new()
            .with(":until", n(integer(until.as_micros())))
            .with(":gone", n(integer(gone.as_micros())))
            .with(":form", n(form_code(outcome.form)))
            .with(":media", n(i64::from(outcome.media.0)))
            .with(":outcome", b(&outcome.bytes))
            .with(":expires_at", n(seconds(gone.as_micros())))
    }

    fn freed(now: Timestamp) -> Self {
        let left = Timestamp::NEVER.since(now);
        Self::new()
            .with(":now", n(integer(now.as_micros())))
            .with(":now_seconds", n(seconds(now.as_micros())))
            .with(":retention_most", n(integer(as_micros(left))))
    }

    fn with(mut self, name: &'static str, value: AttributeValue) -> Self {
        self.0.insert(name.into(), value);
        self
    }

    /// The service refuses a request with a value that its expressions do not name.
    fn in_expressions(&self, expressions: &[&str]) -> HashMap<String, AttributeValue> {
        let used = placeholders(expressions, ':');
        used.filter_map(|name| {
            let value = self.0.get(name).cloned().or_else(|| constant(name))?;
            Some((name.to_owned(), value))
        })
        .collect()
    }
}

/// The values that are the same in every write.
fn constant(name: &str) -> Option<AttributeValue> {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    Some(match name {
        ":number" => text("N"),
        ":binary" => text("B"),
        ":zero" => n(0),
        ":one" => n(1),
        ":most" => n(integer(Timestamp::NEVER.as_micros())),
        ":attempt_most" => n(i64::from(u32::MAX)),
        ":media_most" => n(i64::from(u16::MAX)),
        ":holder_size" => n(Holder::RESOLVED.as_bytes().len() as i64),
        ":fingerprint_size" => n(Fingerprint::BYTES as i64),
        ":format" => b(&[FORMAT]),
        ":format_end" => b(&format_end()),
        ":in_flight" => n(phase_code(PhaseName::InFlight)),
        ":completed" => n(phase_code(PhaseName::Completed)),
        ":released" => n(phase_code(PhaseName::Released)),
        ":in_doubt" => n(phase_code(PhaseName::InDoubt)),
        ":take_over" => n(on_lapse_code(OnLapse::TakeOver)),
        ":hold" => n(on_lapse_code(OnLapse::Hold)),
        ":resolved" => b(Holder::RESOLVED.as_bytes()),
        _ => return None,
    })
}

/// No fingerprint of the format comes after these bytes.
fn format_end() -> [u8; Fingerprint::BYTES] {
    let mut end = [u8::MAX; Fingerprint::BYTES];
    end[0] = FORMAT;
    end
}

fn whole(fence: Fence) -> AttributeValue {
    AttributeValue::N(fence.to_string())
}

fn names(expressions: &[&str]) -> HashMap<String, String> {
    placeholders(expressions, '#').map(|name| (name.to_owned(), name[1..].to_owned())).collect()
}

fn placeholders<'e>(expressions: &'e [&'e str], mark: char) -> impl Iterator<Item = &'e str> {
    let of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    expressions.iter().flat_map(move |expression| {
        expression.match_indices(mark).map(move |(start, _)| {
            let rest = &expression[start + 1..];
            let length = rest.find(|letter| !of_name(letter)).unwrap_or(rest.len());
            &expression[start..=start + length]
        })
    })
}

#[cfg(test)]
mod tests;
