//! A model that follows a script.

use serde_json::Value;

/// What a model wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// To call a tool, under an id that is another each time, as models' APIs have it.
    Call {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: Value,
    },
    /// To say something, and be done.
    Say(String),
}

/// Whatever says what to do next.
pub trait Model {
    /// The next turn, given the answers to all calls so far.
    fn next(&mut self, answers: &[Value]) -> Turn;
}

/// A model that takes turns as they are written down, whatever it is answered.
#[derive(Debug)]
pub struct Script(std::vec::IntoIter<Turn>);

impl Script {
    /// A model that takes these turns and then says nothing more.
    pub fn new(turns: Vec<Turn>) -> Self {
        Self(turns.into_iter())
    }
}

impl Model for Script {
    fn next(&mut self, _: &[Value]) -> Turn {
        self.0.next().unwrap_or_else(|| Turn::Say(String::new()))
    }
}
