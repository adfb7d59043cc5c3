//! The cases, as types. A word that is not known here is refused: a case of which a part is not played would pass for
//! the wrong reason.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{expect::Expect, words::Body};
use crate::server::Setting;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) id: String,
    bug: Vec<u16>,
    title: String,
    #[serde(rename = "split")]
    _split: Split,
    tier: Tier,
    #[serde(default)]
    pub(crate) config: Map<String, Value>,
    #[serde(default)]
    pub(crate) needs: Vec<Need>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Split {
    Public,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tier {
    Core,
    Policy,
}

impl Case {
    /// The cases of a file.
    pub(crate) fn all_in(text: &str) -> Vec<Self> {
        let cases: Vec<Value> = serde_json::from_str(text).unwrap();
        let read = |case: Value| {
            let id = case["id"].to_string();
            serde_json::from_value(case).unwrap_or_else(|error| panic!("case {id}: {error}"))
        };
        cases.into_iter().map(read).collect()
    }

    pub(crate) fn can_be_played(&self, setting: &Setting) -> bool {
        self.needs.iter().all(|need| match need {
            Need::Hook => false,
            Need::TwoServers | Need::DurableStore | Need::ServerHook => setting.outlives_a_process(),
            Need::StoreHook
            | Need::CounterMs
            | Need::Panic
            | Need::MultiHeaders
            | Need::CounterGet
            | Need::StreamParams
            | Need::RequestDecompression
            | Need::UnkeyedCounterWithoutScope => true,
        })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}, bugs {:?}): {}", self.id, self.tier, self.bug, self.title)
    }
}

/// What a server under test must be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Need {
    CounterMs,
    CounterGet,
    StreamParams,
    RequestDecompression,
    UnkeyedCounterWithoutScope,
    TwoServers,
    DurableStore,
    #[serde(rename = "route:/panic")]
    Panic,
    #[serde(rename = "route:/hook")]
    Hook,
    #[serde(rename = "headers:x-multi")]
    MultiHeaders,
    #[serde(rename = "hook:store")]
    StoreHook,
    #[serde(rename = "hook:server")]
    ServerHook,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Step {
    Send {
        send: Box<Request>,
        #[serde(rename = "as")]
        name: Option<String>,
        #[serde(default)]
        expect: Box<Expect>,
    },
    /// In the background, until it is awaited.
    Start {
        start: Box<Request>,
        #[serde(rename = "as")]
        name: String,
    },
    Await {
        #[serde(rename = "await")]
        name: String,
        #[serde(default)]
        expect: Box<Expect>,
    },
    /// All at once.
    Burst {
        burst: Vec<Copies>,
        #[serde(default)]
        expect_all: Box<Expect>,
        #[serde(default)]
        expect_group: Group,
    },
    /// Reads the counter.
    Counter {
        counter: String,
    },
    /// How often the counter ran between two readings, which run it too.
    Executions {
        executions: Executions,
    },
    Sleep {
        sleep_ms: u64,
    },
    Hook {
        hook: Hook,
    },
    /// With fresh keys each turn, unless they are kept.
    Repeat {
        repeat: usize,
        vary: Option<Vec<Map<String, Value>>>,
        #[serde(default)]
        keep_keys: bool,
        steps: Vec<Self>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Copies {
    pub(crate) request: Request,
    #[serde(default = "once")]
    pub(crate) count: usize,
}

const fn once() -> usize {
    1
}

/// What holds of a burst as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Group {
    pub(crate) fresh: Option<usize>,
    pub(crate) distinct_2xx_bodies: Option<usize>,
    /// As text, the way JSON has its keys: inside an untagged enum no number is read from one.
    pub(crate) status_counts: BTreeMap<String, usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Executions {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) equals: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) enum Hook {
    #[serde(rename = "store.down")]
    StoreDown,
    #[serde(rename = "store.up")]
    StoreUp,
    #[serde(rename = "server.kill9")]
    ServerKill,
    #[serde(rename = "server.start")]
    ServerStart,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) key: Option<String>,
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    #[serde(default)]
    pub(crate) body: Body,
    #[serde(default)]
    pub(crate) framing: Framing,
    pub(crate) chunks: Option<Vec<Body>>,
    pub(crate) declared_length: Option<usize>,
    pub(crate) send_bytes: Option<usize>,
    #[serde(default)]
    pub(crate) no_terminator: bool,
    #[serde(default)]
    pub(crate) expect_continue: bool,
    /// The name of the connection.
    pub(crate) conn: Option<String>,
    #[serde(default)]
    pub(crate) server: usize,
    pub(crate) close_after_ms: Option<u64>,
    pub(crate) close_after_bytes: Option<usize>,
    /// A stream is reset in any case.
    #[serde(default, rename = "rst")]
    _rst: bool,
    /// A refused stream is no failure to send.
    #[serde(default, rename = "tolerate_send_error")]
    _tolerate_send_error: bool,
    pub(crate) timeout_ms: Option<u64>,
    /// For the webhook door, which the fixture has not got.
    #[serde(rename = "sign")]
    _sign: Option<Sign>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Framing {
    #[default]
    Length,
    Chunked,
    None,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sign {
    #[serde(rename = "secret")]
    _secret: String,
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "signature")]
    _signature: Option<String>,
    #[serde(rename = "timestamp")]
    _timestamp: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(steps: &str) -> Result<Case, serde_json::Error> {
        let text = r#"{"id":"x","bug":[1],"title":"t","split":"public","tier":"core","steps":"#;
        serde_json::from_str(&format!("{text}{steps}}}"))
    }

    #[test]
    fn unknown_words_are_refused() {
        let request = r#""method":"POST","target":"/""#;
        assert!(read(&format!(r#"[{{"send":{{{request}}},"expect":{{"status":200}}}}]"#)).is_ok());
        for steps in [
            r#"[{"wait":1}]"#.to_owned(),
            format!(r#"[{{"send":{{{request},"verb":1}}}}]"#),
            format!(r#"[{{"send":{{{request}}},"expects":{{}}}}]"#),
            format!(r#"[{{"send":{{{request}}},"expect":{{"state":1}}}}]"#),
            format!(r#"[{{"send":{{{request}}},"expect":{{"headers":{{"a":{{"is":1}}}}}}}}]"#),
            format!(r#"[{{"send":{{{request}}},"expect":{{"body":{{"is":1}}}}}}]"#),
            format!(r#"[{{"burst":[{{"request":{{{request}}},"times":2}}]}}]"#),
            r#"[{"sleep_ms":1,"as":"a"}]"#.to_owned(),
            r#"[{"hook":"store.gone"}]"#.to_owned(),
        ] {
            assert!(read(&steps).is_err(), "{steps}");
        }
    }
}
