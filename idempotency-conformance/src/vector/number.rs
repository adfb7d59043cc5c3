//! A number, or what follows from a duration that the server under test was set up with.

use serde::{Deserialize, Deserializer, de};

/// How many, or how long in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// As it stands.
    Plain(u64),
    /// `"125% ttl"`: so many hundredths of the retention.
    OfTtl(u64),
    /// `"250% lease"`: so many hundredths of the lease.
    OfLease(u64),
    /// `"lease seconds"`: the lease in whole seconds, rounded up.
    LeaseSeconds,
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Plain(u64),
            Part(String),
        }

        let text = match Written::deserialize(deserializer)? {
            Written::Plain(number) => return Ok(Self::Plain(number)),
            Written::Part(text) => text,
        };
        if text == "lease seconds" {
            return Ok(Self::LeaseSeconds);
        }
        let unknown =
            || de::Error::custom(format!("{text:?} is neither a number nor a part such as \"125% ttl\""));
        let (percent, whole) = text.split_once("% ").ok_or_else(unknown)?;
        let percent = percent.parse().map_err(|_| unknown())?;
        match whole {
            "ttl" => Ok(Self::OfTtl(percent)),
            "lease" => Ok(Self::OfLease(percent)),
            _ => Err(unknown()),
        }
    }
}
