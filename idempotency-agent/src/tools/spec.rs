//! What a model is told of a tool, in the words of each API.

use serde_json::{Value, json};

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its arguments, as a JSON Schema of an object.
    pub parameters: Value,
}

impl ToolSpec {
    /// A tool of this name.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }

    /// For `OpenAI`'s Chat Completions.
    pub fn openai_chat(&self) -> Value {
        let Self { name, description, parameters } = self;
        json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
    }

    /// For `OpenAI`'s Responses.
    pub fn openai_responses(&self) -> Value {
        let Self { name, description, parameters } = self;
        json!({"type": "function", "name": name, "description": description, "parameters": parameters})
    }

    /// For Anthropic's Messages.
    pub fn anthropic(&self) -> Value {
        let Self { name, description, parameters } = self;
        json!({"name": name, "description": description, "input_schema": parameters})
    }
}
