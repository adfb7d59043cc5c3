//! What the words of a vector stand for in one turn: keys that nobody used before, and durations of the target.

use std::hash::{DefaultHasher, Hash, Hasher};

use uuid::{Variant, Version};

use crate::{
    run::Options,
    vector::{Bytes, Capability, Number},
};

/// The words of one turn of one vector.
#[derive(Debug, Clone)]
pub(super) struct Words {
    vector: String,
    suffix: String,
    turn: u32,
    counts_apart: bool,
    ttl_ms: u64,
    lease_ms: u64,
}

impl Words {
    pub(super) fn new(vector: &str, options: &Options, turn: u32) -> Self {
        let ms = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            vector: vector.to_owned(),
            suffix: options.suffix.clone(),
            turn,
            counts_apart: options.capabilities.contains(&Capability::Counters),
            ttl_ms: ms(options.ttl),
            lease_ms: ms(options.lease),
        }
    }

    pub(super) fn suffix(&self) -> &str {
        &self.suffix
    }

    /// The name that this turn's runs are counted under, where they are counted apart.
    pub(super) fn count_as(&self) -> Option<String> {
        self.counts_apart.then(|| self.key("count"))
    }

    pub(super) fn number(&self, number: Number) -> u64 {
        match number {
            Number::Plain(number) => number,
            Number::LeaseSeconds => self.lease_ms.div_ceil(1_000),
            Number::OfTtl(percent) => self.ttl_ms.saturating_mul(percent).div_ceil(100),
            Number::OfLease(percent) => self.lease_ms.saturating_mul(percent).div_ceil(100),
        }
    }

    pub(super) fn bytes(&self, bytes: &Bytes) -> Vec<u8> {
        match bytes {
            Bytes::Text(text) => self.text(text).into_bytes(),
            Bytes::Encoded(encoded) => encoded.base64.clone(),
            Bytes::Repeated(repeated) => repeated.repeat.0.repeat(repeated.repeat.1).into_bytes(),
            Bytes::Padded(padded) => {
                let mut text = self.text(&padded.pad.0).into_bytes();
                text.resize(padded.pad.1.max(text.len()), b'a');
                text
            }
        }
    }

    /// `text` with `{{300% lease}}` replaced by a number of milliseconds, and any other `{{word}}` by a UUID of this
    /// turn's own: a random one, or with `{{word v7}}` one of that version.
    pub(super) fn text(&self, text: &str) -> String {
        let mut parts = text.split("{{");
        let mut replaced = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (word, rest) = part.split_once("}}").unwrap_or((part, ""));
            match serde_json::from_value::<Number>(word.into()) {
                Ok(number) => replaced.push_str(&self.number(number).to_string()),
                Err(_) => replaced.push_str(&self.key(word)),
            }
            replaced.push_str(rest);
        }
        replaced
    }

    /// The same for the same suffix, vector, turn and word, and else another one. In the form of a random UUID, since
    /// that is what the draft recommends and what some servers insist on.
    fn key(&self, word: &str) -> String {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &self.suffix, &self.vector, self.turn, word).hash(&mut hasher);
            hasher.finish()
        };
        let bytes = (u128::from(half(0)) << 64 | u128::from(half(1))).to_be_bytes();
        let version = match word.rsplit_once(" v").map(|(_, version)| version) {
            Some("6") => Version::SortMac,
            Some("7") => Version::SortRand,
            Some("8") => Version::Custom,
            _ => Version::Random,
        };
        let builder = uuid::Builder::from_bytes(bytes).with_variant(Variant::RFC4122);
        builder.with_version(version).into_uuid().hyphenated().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(suffix: &str, turn: u32) -> Words {
        let options = Options { suffix: suffix.to_owned(), ..Options::default() };
        Words::new("core/a", &options, turn)
    }

    #[test]
    fn a_word_is_the_same_within_a_turn_and_another_one_outside() {
        let key = words("s", 1).text("{{k}}");
        assert_eq!(key, words("s", 1).text("{{k}}"));
        assert_eq!(key.len(), 36);
        for other in [words("s", 2).text("{{k}}"), words("t", 1).text("{{k}}"), words("s", 1).text("{{k2}}")]
        {
            assert_ne!(key, other);
        }
        assert_eq!(words("s", 1).text("a {{k}} b"), format!("a {key} b"));
    }

    #[test]
    fn a_word_can_be_of_another_version() {
        for (word, version) in [("k", 4), ("k v5", 4), ("k v6", 6), ("k v7", 7), ("k v8", 8)] {
            let uuid: uuid::Uuid = words("s", 1).text(&format!("{{{{{word}}}}}")).parse().unwrap();
            assert_eq!((uuid.get_version_num(), uuid.get_variant()), (version, Variant::RFC4122), "{word}");
        }
    }

    #[test]
    fn a_part_of_a_duration_is_a_number() {
        assert_eq!(words("s", 1).text("/slow?ms={{250% lease}}"), "/slow?ms=2500");
        assert_eq!(words("s", 1).number(Number::OfTtl(125)), 2_500);
    }

    #[test]
    fn padding_fills_and_never_cuts() {
        let pad = |length| serde_json::from_value(serde_json::json!({ "pad": ["ab", length] })).unwrap();
        assert_eq!(words("s", 1).bytes(&pad(4)), b"abaa");
        assert_eq!(words("s", 1).bytes(&pad(1)), b"ab");
    }
}
