//! The HTTP profile: what every HTTP door reads, keeps and answers, as pure functions over bytes and text.
//!
//! | step of a request | here |
//! |---|---|
//! | which operation | [`KeySyntax`] reads the `Idempotency-Key` lines |
//! | whose, without a scope | [`Credentials`] picks what tells one caller from another |
//! | what it says | [`Payload`] is the request without what changes from try to try; its fingerprint |
//! | what its body says | [`BodyReading`] makes one [`BodyContent`] of all spellings, where a policy asks for it |
//! | how the run ended | [`Ending`], by the handler's word or by [`ending_of`] a status |
//! | what a replay gives back | [`ReplayedFields`] of an [`Answer`], read back as [`Stored`] |
//! | what is answered instead | [`Refusal`], one [`Code`] each, explained in [`problems`] |
//! | what is promised of all that | the words of a [`contract`] |
//!
//! Nothing here knows the `http` crate: names are lower-case text, values are bytes.

mod answer;
mod credentials;
mod ending;
mod payload;
mod prefer;
mod reading;
mod refusal;
mod selected;
mod syntax;

pub mod contract;
pub mod headers;
pub mod problems;

pub use answer::{Answer, AnswerError, Fields, Head, Stored, Tombstone};
pub use credentials::{CREDENTIAL_HEADERS, Credentials};
pub use ending::{Ending, OnServerError, ending_of};
pub use headers::ReplayedFields;
pub use payload::Payload;
pub use prefer::preferred_wait;
pub use reading::{BodyContent, BodyReading};
pub use refusal::{Code, RETRY_AFTER_CAP, Refusal};
pub use selected::SelectedHeaders;
pub use syntax::{KeyRule, KeySyntax};
