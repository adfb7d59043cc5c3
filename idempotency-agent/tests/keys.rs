//! Keys of the original, recorded: every payload has to come to the same bytes.
//!
//! `KEY_VECTORS` names another file of keys.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{env, fs, path::PathBuf};

use idempotency_agent::{Compat, EffectKey, Intent, LedgerScope, instant, json::Tree};
use idempotency_core::clock::Timestamp;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
    #[serde(default)]
    special: Vec<Special>,
    #[serde(default)]
    intents: Vec<Named>,
    #[serde(default)]
    scopes: Vec<Scoped>,
    #[serde(default, rename = "rejectedPayloads")]
    rejected: Vec<Rejected>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vector {
    id: String,
    scope: String,
    intent: String,
    payload_json: Option<String>,
    effect_key: String,
    provider_key: String,
    portable: bool,
    #[serde(default)]
    risks: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Special {
    value: String,
    wrap: Option<String>,
    epoch_micros: Option<u64>,
    effect_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    intent: String,
    accepted: bool,
    accepted_by_python: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scoped {
    scope: Option<String>,
    repeat: Option<(String, usize)>,
    accepted_by_python: bool,
    accepted_by_js: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rejected {
    payload_json: String,
}

fn file() -> File {
    let path: PathBuf = env::var_os("KEY_VECTORS").map_or_else(
        || [env!("CARGO_MANIFEST_DIR"), "tests/vectors/keys-public.json"].iter().collect(),
        Into::into,
    );
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// All of them, not the portable ones alone: where languages differ, the choice is Python's bytes.
#[test]
fn every_payload_has_the_keys_of_the_original() {
    let vectors = file().vectors;
    assert!(vectors.iter().any(|vector| vector.portable), "nothing was compared");
    for Vector { id, scope, intent, payload_json, effect_key, provider_key, .. } in &vectors {
        let (scope, intent) = (LedgerScope::new(scope).unwrap(), Intent::new(intent).unwrap());
        let key = match payload_json {
            None => EffectKey::of_intent(&intent),
            Some(text) => EffectKey::of_tree(&intent, &Tree::read(text).unwrap(), Compat::Mended).unwrap(),
        };
        assert_eq!(key.as_str(), effect_key, "{id}: {payload_json:?}");
        assert_eq!(key.provider_key(&scope).as_str(), provider_key, "{id}");
    }
}

/// What serializes comes to the same keys as its text.
#[test]
fn a_value_has_the_keys_of_its_text() {
    let mut compared = 0;
    for Vector { id, intent, payload_json, effect_key, portable, .. } in file().vectors {
        let Some(text) = payload_json.filter(|_| portable) else { continue };
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let key = EffectKey::identified(&Intent::new(intent).unwrap(), &value).unwrap();
        assert_eq!(key.as_str(), effect_key, "{id}: {text}");
        compared += 1;
    }
    assert!(compared > 0);
}

#[test]
fn what_languages_write_differently_is_known_not_to_be_portable() {
    for Vector { id, payload_json, portable, risks, .. } in file().vectors {
        let Some(text) = payload_json else { continue };
        let is_portable = Tree::read(&text).unwrap().is_portable();
        if portable {
            // Some numbers beyond the safe ones agree by luck.
            assert!(is_portable || text.contains(['e', 'E', '0']), "{id}: {text}");
        }
        if risks.iter().any(|risk| risk == "js-differs" || risk == "int-beyond-u64") {
            assert!(!is_portable, "{id}: {text}");
        }
    }
}

#[test]
fn a_number_that_is_none_is_refused_and_hashed_only_as_the_original_does() {
    let intent = Intent::new("a").unwrap();
    for Special { value, wrap, epoch_micros, effect_key } in file().special {
        let key = match epoch_micros {
            Some(micros) => EffectKey::identified(&intent, &instant(Timestamp::from_micros(micros))).unwrap(),
            None => {
                let text = if wrap.as_deref() == Some("array") { format!("[{value}, 1]") } else { value };
                let tree = Tree::read(&text).unwrap();
                assert!(EffectKey::of_tree(&intent, &tree, Compat::Mended).is_err(), "{text}");
                EffectKey::of_tree(&intent, &tree, Compat::Strict).unwrap()
            }
        };
        assert_eq!(key.as_str(), effect_key);
    }
    assert!(EffectKey::identified(&intent, &f64::NAN).is_err());
}

#[test]
fn an_intent_ends_without_a_line_break_except_in_the_original() {
    for Named { intent, accepted, accepted_by_python } in file().intents {
        assert_eq!(Intent::new(intent.clone()).is_ok(), accepted, "{intent:?}");
        assert_eq!(Intent::under(intent.clone(), Compat::Strict).is_ok(), accepted_by_python, "{intent:?}");
    }
}

#[test]
fn a_scope_is_within_the_bounds_of_every_language() {
    for Scoped { scope, repeat, accepted_by_python, accepted_by_js } in file().scopes {
        let name = scope.or_else(|| repeat.map(|(text, times)| text.repeat(times))).unwrap();
        assert_eq!(LedgerScope::new(name.clone()).is_ok(), accepted_by_python && accepted_by_js, "{name:?}");
    }
}

#[test]
fn half_a_pair_identifies_nothing() {
    for Rejected { payload_json } in file().rejected {
        assert!(Tree::read(&payload_json).is_err(), "{payload_json}");
    }
}

/// A number as `serde_json` hands it over where some crate of the build has it keep all digits.
struct Kept(&'static str);

impl Serialize for Kept {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = "$serde_json::private::Number";
        let mut number = serializer.serialize_struct(name, 1)?;
        number.serialize_field(name, self.0)?;
        number.end()
    }
}

#[test]
fn no_feature_of_serde_json_changes_a_key() {
    let intent = Intent::new("refund").unwrap();
    let key = |kept: &'static str| EffectKey::identified(&intent, &(Kept(kept), "order")).unwrap();
    assert_eq!(key("7"), EffectKey::identified(&intent, &(7, "order")).unwrap());
    assert_eq!(key("1.5"), EffectKey::identified(&intent, &(1.5, "order")).unwrap());
    let raw = serde_json::value::RawValue::from_string("{\"b\":[1, null],\"a\":2}".to_owned()).unwrap();
    let value = serde_json::json!({"a": 2, "b": [1, null]});
    assert_eq!(
        EffectKey::identified(&intent, &[raw]).unwrap(),
        EffectKey::identified(&intent, &[value]).unwrap()
    );
}
