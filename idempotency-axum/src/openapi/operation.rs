//! One covered operation: its parameters and responses.

use std::collections::BTreeMap;

use idempotency_tower::{Code, KeySyntax, Oversized, Promise};
use serde_json::{Map, Value, json};

use super::{Undescribed, object_in, problem, reference::References};

/// What is added to the operations of one path.
#[derive(Debug)]
pub(super) struct Description<'a> {
    pub(super) promise: &'a Promise,
    pub(super) references: &'a References,
    /// The parameters that all operations of the path share.
    pub(super) shared: Option<&'a Value>,
}

impl Description<'_> {
    pub(super) fn add_to(&self, operation: &mut Map<String, Value>) -> Result<(), Undescribed> {
        self.add_parameter(operation, self.key())?;
        if self.promise.wait.is_some() {
            self.add_parameter(operation, prefer())?;
        }
        let responses = object_in(operation, "responses")?;
        for (_, response) in responses.iter_mut().filter(|(status, _)| self.keeps(status)) {
            if let Some(mut said) = self.said(response) {
                add_headers(&mut said, self.markers())?;
                *response = said.into();
            }
        }
        for (status, codes) in self.refusals() {
            let range = format!("{}XX", status / 100);
            let status = status.to_string();
            let standing = [&status, &range, "default"].into_iter().find_map(|name| responses.get(name));
            if let Some(mut response) = standing.map_or_else(|| Some(Map::new()), |said| self.said(said)) {
                self.add_refusals(&mut response, &codes)?;
                responses.insert(status, response.into());
            }
        }
        Ok(())
    }

    fn key(&self) -> Value {
        let mut schema = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
        let mut spelling = "";
        if self.promise.syntax == KeySyntax::Strict {
            // The quotes are a part of what the header holds.
            schema = json!({ "type": "string", "minLength": 3, "maxLength": 257, "pattern": "^\".+\"$" });
            spelling = ", in quotes (RFC 9651)";
        }
        json!({
            "name": self.promise.header.as_str(),
            "in": "header",
            "required": self.promise.required,
            "description": format!(
                "Names this operation{spelling}: a retry with the same key and request gets the first answer, \
                 and nothing runs twice. Draw a new one, a UUID say, for every new operation."
            ),
            "schema": schema,
        })
    }

    fn add_parameter(&self, operation: &mut Map<String, Value>, parameter: Value) -> Result<(), Undescribed> {
        let own = operation.entry("parameters").or_insert_with(|| json!([]));
        let own = own.as_array_mut().ok_or(Undescribed::Malformed("parameters"))?;
        let shared = self.shared.and_then(Value::as_array).into_iter().flatten();
        let mut all = own.iter().chain(shared).filter_map(|parameter| self.references.resolve(parameter));
        if !all.any(|known| names_the_same(known, &parameter)) {
            own.push(parameter);
        }
        Ok(())
    }

    /// Whether a response under this name can be a replay.
    fn keeps(&self, status: &str) -> bool {
        let last = status.strip_suffix("XX").map(|class| format!("{class}99"));
        status == "default"
            || last.as_deref().unwrap_or(status).parse().is_ok_and(|it| self.promise.keeps(it))
    }

    /// What a response says, itself or by reference. What is said out of reach can only be left as it is.
    fn said(&self, response: &Value) -> Option<Map<String, Value>> {
        self.references.resolve(response)?.as_object().cloned()
    }

    /// What the layer marks answers with.
    fn markers(&self) -> Vec<(&str, Value)> {
        let mark = |value: &str, description: &str| json!({ "description": description, "schema": { "type": "string", "enum": [value] } });
        let replayed = "There on a replay of the first answer, absent on the first answer.";
        let mut markers = vec![(self.promise.replayed_header.as_str(), mark("true", replayed))];
        if self.promise.oversized == Oversized::OmitBody {
            let omitted = "There on a replay whose body was too long to be kept.";
            markers.push(("idempotency-replay", mark("omitted", omitted)));
        }
        if self.promise.fails_open {
            let degraded = "There on an answer that is not remembered: a retry runs again.";
            markers.push(("idempotency-degraded", mark("true", degraded)));
        }
        if self.promise.wait.is_some() {
            let applied = "How long the request waited at most for the first one's answer.";
            let header = json!({ "description": applied, "schema": { "type": "string" } });
            markers.push(("preference-applied", header));
        }
        markers
    }

    /// The codes of every status that the policy refuses with. 500 is no promise.
    fn refusals(&self) -> BTreeMap<u16, Vec<Code>> {
        let mut refusals = BTreeMap::<_, Vec<_>>::new();
        for code in self.promise.codes().into_iter().filter(|code| *code != Code::Internal) {
            refusals.entry(code.status()).or_default().push(code);
        }
        refusals
    }

    fn add_refusals(&self, response: &mut Map<String, Value>, codes: &[Code]) -> Result<(), Undescribed> {
        response.entry("description").or_insert_with(|| problem::description(codes).into());
        if self.promise.problem_base.is_some() {
            let content = object_in(response, "content")?;
            content
                .entry("application/problem+json")
                .or_insert_with(|| json!({ "schema": problem::schema_of(codes) }));
        }
        let mut headers = Vec::new();
        if codes.iter().any(|code| matches!(code, Code::Conflict | Code::StoreUnavailable | Code::Overloaded))
        {
            let description = "How many seconds to wait before the same request is sent again.";
            let schema = json!({ "type": "integer", "minimum": 1 });
            headers.push(("retry-after", json!({ "description": description, "schema": schema })));
        }
        if self.promise.docs.is_some() {
            let description = "Where the service's use of keys is explained.";
            headers.push(("link", json!({ "description": description, "schema": { "type": "string" } })));
        }
        add_headers(response, headers)
    }
}

fn prefer() -> Value {
    json!({
        "name": "prefer",
        "in": "header",
        "required": false,
        "description": "`wait=N` (RFC 7240): how many seconds to wait at most for the answer of a running request \
                        with the same key.",
        "schema": { "type": "string" },
    })
}

/// Whether two parameters are one header: those have no case.
fn names_the_same(one: &Value, other: &Value) -> bool {
    let name = |parameter: &Value| parameter["name"].as_str().map(str::to_ascii_lowercase);
    one["in"] == other["in"] && name(one) == name(other)
}

fn add_headers<'a>(
    response: &mut Map<String, Value>,
    headers: impl IntoIterator<Item = (&'a str, Value)>,
) -> Result<(), Undescribed> {
    for (name, header) in headers {
        let said = object_in(response, "headers")?;
        if !said.keys().any(|known| known.eq_ignore_ascii_case(name)) {
            said.insert(name.to_owned(), header);
        }
    }
    Ok(())
}
