//! The files of the suite's own vectors.

macro_rules! files {
    ($($id:literal),* $(,)?) => {
        &[$(($id, include_str!(concat!("../../vectors/", $id, ".json")))),*]
    };
}

/// Id and text of each.
pub(super) const FILES: &[(&str, &str)] = files!["core/first-request-runs", "core/retry-replays",];
