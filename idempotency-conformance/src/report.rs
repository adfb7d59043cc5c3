//! What a grading found, for programs, for people and for CI.

mod json;
mod junit;
mod markdown;

use serde::Serialize;

use crate::{
    run::{Options, Spelling},
    suite::Suite,
    vector::Vector,
    wire::Target,
};

/// What a grading found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The version of this form. 1.
    pub format: u32,
    /// Which vectors were run.
    pub suite: String,
    /// Where the target is.
    pub target: String,
    /// What the target was declared to have.
    pub capabilities: Vec<&'static str>,
    /// How keys were spelled: `quoted` or `bare`.
    pub keys: &'static str,
    /// Why the target was not asked any more, if it was not.
    pub gone: Option<String>,
    /// How many vectors ended how.
    pub totals: Totals,
    /// One entry a vector, by tier and id.
    pub results: Vec<Graded>,
}

/// How many vectors ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// The target keeps the claim.
    pub pass: usize,
    /// It breaks it.
    pub fail: usize,
    /// It was not declared to have what the vector needs.
    pub not_applicable: usize,
    /// Nothing could be judged.
    pub error: usize,
}

/// How one vector ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Graded {
    /// Its id.
    pub id: String,
    /// Its tier.
    pub tier: &'static str,
    /// The section of the draft it reads.
    pub section: Option<String>,
    /// Where its demand comes from.
    pub kind: &'static str,
    /// Its claim.
    pub title: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it did not pass.
    pub reason: Option<String>,
}

/// How a vector ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The target keeps the claim.
    Pass,
    /// It breaks it.
    Fail,
    /// It was not declared to have what the vector needs.
    NotApplicable,
    /// Nothing could be judged.
    Error,
}

impl Report {
    pub(crate) fn new(
        suite: &Suite,
        target: &Target,
        options: &Options,
        gone: Option<String>,
        results: Vec<Graded>,
    ) -> Self {
        let mut totals = Totals::default();
        for graded in &results {
            match graded.outcome {
                Outcome::Pass => totals.pass += 1,
                Outcome::Fail => totals.fail += 1,
                Outcome::NotApplicable => totals.not_applicable += 1,
                Outcome::Error => totals.error += 1,
            }
        }
        Self {
            format: 1,
            suite: suite.name.clone(),
            target: target.to_string(),
            capabilities: options.capabilities.iter().map(|capability| capability.as_str()).collect(),
            keys: match options.spelling {
                Spelling::Quoted => "quoted",
                Spelling::Bare => "bare",
            },
            gone,
            totals,
            results,
        }
    }

    /// Whether nothing failed and everything could be judged.
    pub fn is_clean(&self) -> bool {
        self.totals.fail == 0 && self.totals.error == 0
    }

    /// For programs.
    pub fn json(&self) -> String {
        json::render(self)
    }

    /// For people.
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// For CI.
    pub fn junit(&self) -> String {
        junit::render(self)
    }
}

impl Totals {
    /// The sentence that sums up.
    pub fn sentence(&self) -> String {
        let Self { pass, fail, not_applicable, error } = self;
        format!("{pass} passed, {fail} failed, {not_applicable} not applicable, {error} errors")
    }
}

impl Graded {
    pub(crate) fn new(vector: &Vector, outcome: Outcome, reason: Option<String>) -> Self {
        Self {
            id: vector.id.clone(),
            tier: vector.tier.as_str(),
            section: vector.section.clone(),
            kind: vector.kind.as_str(),
            title: vector.title.clone(),
            outcome,
            reason,
        }
    }
}

impl Outcome {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotApplicable => "not_applicable",
            Self::Error => "error",
        }
    }
}

#[cfg(test)]
mod tests;
