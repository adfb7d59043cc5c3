//! The list of laws, and the ways to run it.
//!
//! One macro owns the list. The table of laws and the test functions are both made from it, so neither can hold a
//! law the other does not.

use std::{fmt, future::Future, pin::Pin};

use crate::{Candidate, Violation, history, laws::*, scene::Scene};

type Verdict<'a> = Pin<Box<dyn Future<Output = Result<(), Violation>> + Send + 'a>>;

/// Expands every law of the suite to a `#[test]` of its own that grades `$candidate`.
///
/// Put two candidates of one file into two modules, since the tests bear the names of the laws.
#[macro_export]
macro_rules! store_contract {
    ($candidate:expr) => {
        $crate::for_each_law!(law_tests($candidate));
    };
}

/// One law of the suite, for one kind of candidate.
pub struct Law<C> {
    /// The law in a few words: the name of its function and of its test.
    pub name: &'static str,
    run: for<'a> fn(&'a C) -> Verdict<'a>,
}

impl<C: Candidate> Law<C> {
    /// The suite.
    pub const ALL: &'static [Self] = crate::for_each_law!(law_table(C));

    /// Grades a fresh store of `candidate` by this law.
    ///
    /// # Errors
    /// The [`Violation`] that was seen.
    pub async fn check(&self, candidate: &C) -> Result<(), Violation> {
        (self.run)(candidate).await
    }
}

impl<C> fmt::Debug for Law<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Law").field(&self.name).finish()
    }
}

/// How a candidate stands under one law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grade {
    /// The name of the law.
    pub law: &'static str,
    /// Whether the store keeps it.
    pub result: Result<(), Violation>,
}

/// Grades `candidate` by every law, one after the other.
pub fn grade<C: Candidate>(candidate: &C) -> Vec<Grade> {
    grade_laws(candidate, |_| true)
}

/// Grades `candidate` by the laws whose name is `selected`.
pub fn grade_laws<C: Candidate>(candidate: &C, selected: impl Fn(&str) -> bool) -> Vec<Grade> {
    let chosen = Law::<C>::ALL.iter().filter(|law| selected(law.name));
    chosen.map(|law| Grade { law: law.name, result: block_on(law.check(candidate)) }).collect()
}

/// Grades `candidate` by the law called `name`; what the tests of [`store_contract!`] call.
///
/// # Errors
/// The [`Violation`] that was seen.
///
/// # Panics
/// When there is no law of that name.
pub fn prove<C: Candidate>(candidate: &C, name: &str) -> Result<(), Violation> {
    let law = Law::<C>::ALL.iter().find(|law| law.name == name);
    block_on(law.expect("the suite has a law of this name").check(candidate))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("the operating system gives threads").block_on(future)
}

#[doc(hidden)]
#[macro_export]
macro_rules! for_each_law {
    ($callback:ident($arg:expr)) => {
        $crate::$callback! { $arg =>
            grants::first_claim_is_attempt_one,
            grants::second_holder_sees_the_lease_left,
            grants::lost_claim_reply_is_adopted,
            endings::first_completion_stands,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! law_tests {
    ($candidate:expr => $($module:ident :: $law:ident,)+) => {
        $(
            #[test]
            fn $law() -> ::std::result::Result<(), $crate::Violation> {
                $crate::prove(&$candidate, stringify!($law))
            }
        )+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! law_table {
    ($candidate:expr => $($module:ident :: $law:ident,)+) => {
        &[$(Law {
            name: stringify!($law),
            run: |candidate| Box::pin(async move { $module::$law(Scene::open(candidate).await).await }),
        }),+]
    };
}
