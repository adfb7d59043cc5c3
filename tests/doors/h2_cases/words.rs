//! The templates in a case, and the bodies they stand in.

use std::{
    collections::HashMap,
    io::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

/// What the names in a case stand for.
#[derive(Debug, Default, Clone)]
pub(crate) struct Words(HashMap<String, String>);

impl Words {
    /// The text with each `{{name}}` replaced: by a word of the case, drawn when it is first met; `{{uuid}}` by another
    /// one each time, `{{now-400}}` by seconds since 1970.
    pub(crate) fn fill(&mut self, text: &str) -> String {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, name, after)) = next_name(rest) {
            filled.push_str(before);
            filled.push_str(&self.word(name));
            rest = after;
        }
        filled + rest
    }

    fn word(&mut self, name: &str) -> String {
        let fresh = || Uuid::new_v4().simple().to_string();
        match (name, name.strip_prefix("now")) {
            ("uuid", _) => fresh(),
            (_, Some(shift)) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
                let shift = if shift.is_empty() { 0 } else { shift.parse().unwrap() };
                now.checked_add_signed(shift).unwrap().to_string()
            }
            _ => self.0.entry(name.to_owned()).or_insert_with(|| format!("t-{}", &fresh()[..12])).clone(),
        }
    }

    /// Drops the keys `k`, `k1`, `k2`, so that they are drawn anew.
    pub(crate) fn without_keys(&self) -> Self {
        let is_key = |name: &str| {
            name.strip_prefix('k').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        Self(self.0.clone().into_iter().filter(|(name, _)| !is_key(name)).collect())
    }

    pub(crate) fn define(&mut self, words: &Map<String, Value>) {
        for (name, value) in words {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.0.insert(name.clone(), value);
        }
    }
}

fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (name, after) = rest.split_once("}}")?;
    Some((before, name, after))
}

/// A body, as a case writes it.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Body {
    Text(String),
    Repeat {
        repeat: (String, usize),
    },
    /// Every byte there is, so many times.
    AllBytes {
        allbytes: usize,
    },
    Gzip {
        gzip: String,
        #[serde(default)]
        mtime: u32,
    },
}

impl Default for Body {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Body {
    pub(crate) fn bytes(&self, words: &mut Words) -> Bytes {
        match self {
            Self::Text(text) => words.fill(text).into(),
            Self::Repeat { repeat: (text, count) } => text.repeat(*count).into(),
            Self::AllBytes { allbytes } => (0..=u8::MAX).collect::<Vec<_>>().repeat(*allbytes).into(),
            Self::Gzip { gzip, mtime } => {
                let mut encoder = GzBuilder::new().mtime(*mtime).write(Vec::new(), Compression::default());
                encoder.write_all(gzip.as_bytes()).unwrap();
                encoder.finish().unwrap().into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_the_same_until_keys_are_drawn_anew() {
        let mut words = Words::default();
        words.define(&Map::from_iter([("n".to_owned(), 500.into())]));
        assert_eq!(words.fill("/status/{{n}}"), "/status/500");
        let first = words.fill("{{k}}");
        assert_eq!(words.fill("\"{{k}}\""), format!("\"{first}\""));
        assert_ne!(words.fill("{{k2}}"), first);
        assert_ne!(words.fill("{{uuid}}"), words.fill("{{uuid}}"));
        let mut later = words.without_keys();
        assert_ne!(later.fill("{{k}}"), first);
        assert_eq!(later.fill("{{n}}"), "500");
        let [early, late] =
            ["{{now-400}}", "{{now+400}}"].map(|text| words.fill(text).parse::<u64>().unwrap());
        assert!((800..810).contains(&(late - early)));
        assert_eq!(words.fill("{\"a\":{\"b\":1}}"), "{\"a\":{\"b\":1}}");
    }
}
