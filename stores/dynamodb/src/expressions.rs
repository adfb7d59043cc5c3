//! The expressions that decide, each of them a row of the law.
//!
//! `#name` stands for the attribute `name`, `:name` for a value: see [`constant`](crate::write) and the functions of
//! [`write`](crate::write) that bind the others. A condition need not cover its whole row, for what it refuses is
//! decided once more by the machine; but whatever it lets through has to be of its row. So each of them checks first
//! that the item can be read, down to types and lengths: one that cannot is not granted and not changed. (That a number
//! is whole is more than a condition can ask.)

/// A number that is not negative and at most what the column holds.
macro_rules! natural {
    ($name:literal) => {
        natural!($name, ":most")
    };
    ($name:literal, $most:literal) => {
        concat!("attribute_type(", $name, ", :number) AND ", $name, " BETWEEN :zero AND ", $most)
    };
}

macro_rules! absent {
    ($first:literal $(, $other:literal)*) => {
        concat!("attribute_not_exists(", $first, ")" $(, " AND attribute_not_exists(", $other, ")")*)
    };
}

/// What every phase has.
macro_rules! common {
    () => {
        concat!(
            "attribute_type(#holder, :binary) AND size(#holder) = :holder_size",
            " AND #on_lapse IN (:zero, :one) AND ",
            natural!("#fence"),
            " AND ",
            natural!("#retention")
        )
    };
}

macro_rules! fingerprint {
    () => {
        concat!(
            "attribute_type(#fingerprint, :binary) AND size(#fingerprint) = :fingerprint_size",
            " AND #fingerprint BETWEEN :format AND :format_end"
        )
    };
}

/// A run that has not ended: in flight, lapsed or not, or in doubt.
macro_rules! held {
    () => {
        concat!(
            common!(),
            " AND ",
            fingerprint!(),
            " AND ",
            natural!("#attempt", ":attempt_most"),
            " AND ",
            absent!("#last_attempt", "#gone", "#form", "#media", "#outcome"),
            " AND (#phase = :in_flight AND ",
            natural!("#until"),
            " OR #phase = :in_doubt AND attribute_not_exists(#until))"
        )
    };
}

/// Rows 3 and 8, for a fence that is the time. Not here, and so decided by the machine: a fence that is not below the
/// time, a lapsed record that is past its retention or whose retention is shorter than the bid's, and row 1.
pub(crate) const GRANT_IF: &str = concat!(
    "attribute_not_exists(#address) OR ",
    common!(),
    " AND #fence < :now AND ",
    natural!("#until"),
    " AND (#phase = :in_flight AND #on_lapse = :take_over AND #holder <> :holder AND ",
    natural!("#attempt", ":attempt_most"),
    " AND #attempt < :attempt_most AND #until <= :now AND #until > :abandoned AND #retention >= :retention",
    " AND #fingerprint IN (:fingerprint, :previous) AND ",
    absent!("#last_attempt", "#gone", "#form", "#media", "#outcome"),
    " OR ",
    natural!("#last_attempt", ":attempt_most"),
    " AND attribute_not_exists(#attempt) AND (#phase = :released AND #holder <> :holder AND ",
    absent!("#fingerprint", "#gone", "#form", "#media", "#outcome"),
    " OR #phase = :completed AND ",
    natural!("#gone", ":now"),
    " AND #form IN (:zero, :one) AND ",
    natural!("#media", ":media_most"),
    " AND attribute_type(#outcome, :binary) AND ",
    fingerprint!(),
    "))"
);

macro_rules! grant {
    () => {
        "SET #phase = :in_flight, #holder = :holder, #fence = :now, #attempt = if_not_exists(#attempt, :zero) + :one, \
         #on_lapse = :on_lapse, #retention = :retention, #retention_seconds = :retention_seconds, \
         #fingerprint = :fingerprint, #until = :until"
    };
}

/// A grant that a lapse leaves to be taken over.
pub(crate) const GRANT_TAKE_OVER: &str =
    concat!(grant!(), ", #expires_at = :expires_at REMOVE #last_attempt, #gone, #form, #media, #outcome");

/// A grant that a lapse leaves in doubt: nothing may remove its record.
pub(crate) const GRANT_HOLD: &str =
    concat!(grant!(), " REMOVE #last_attempt, #gone, #form, #media, #outcome, #expires_at");

/// Row 10, as long as the record expires late enough. A renewal that would not extend the lease changes nothing, and
/// the machine says that it counts.
pub(crate) const RENEW_IF: &str = concat!(
    "#holder = :holder AND #phase = :in_flight AND ",
    held!(),
    " AND #until < :until AND (#on_lapse = :hold OR #fence >= :fence_least)"
);
pub(crate) const RENEW: &str = "SET #until = :until";

/// Row 11.
pub(crate) const COMPLETE_IF: &str = concat!("#holder = :holder AND ", held!());

macro_rules! complete {
    () => {
        "SET #phase = :completed, #until = :until, #gone = :gone, #form = :form, #media = :media, #outcome = :outcome, \
         #last_attempt = #attempt, #expires_at = :expires_at"
    };
}

pub(crate) const COMPLETE: &str = concat!(complete!(), " REMOVE #attempt");

macro_rules! retained {
    () => {
        concat!(" AND #retention <= :retention_most AND ", natural!("#retention_seconds"))
    };
}

/// Row 13, but for a retention that never ends.
pub(crate) const RELEASE_IF: &str =
    concat!("#holder = :holder AND #phase = :in_flight AND ", held!(), retained!());
pub(crate) const RELEASE: &str = "SET #phase = :released, #until = :now + #retention, #last_attempt = #attempt, \
     #expires_at = :now_seconds + #retention_seconds REMOVE #attempt, #fingerprint";

/// Row 15.
pub(crate) const DOUBT_IF: &str = concat!("#holder = :holder AND #phase = :in_flight AND ", held!());
pub(crate) const DOUBT: &str = "SET #phase = :in_doubt REMOVE #until, #expires_at";

macro_rules! resolve_if {
    () => {
        concat!(
            "#fence = :fence AND ",
            held!(),
            " AND (#phase = :in_doubt OR #on_lapse = :hold AND #until <= :now)"
        )
    };
}

/// Row 16.
pub(crate) const RESOLVE_APPLIED_IF: &str = resolve_if!();
pub(crate) const RESOLVE_APPLIED: &str = concat!(complete!(), ", #holder = :resolved REMOVE #attempt");

/// Row 17, but for a retention that never ends; what it changes is [`RELEASE`].
pub(crate) const RESOLVE_NOT_APPLIED_IF: &str = concat!(resolve_if!(), retained!());

/// The records after an address.
pub(crate) const AFTER: &str = "#address > :after";

/// The records in doubt.
pub(crate) const IN_DOUBT: &str = "(#phase = :in_doubt OR #phase = :in_flight AND #on_lapse = :hold \
     AND attribute_type(#until, :number) AND #until <= :now)";
