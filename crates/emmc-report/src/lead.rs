use crate::{Bars, Tone};

/// The verdict of a report in a few lines, and in HTML one picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lead {
    /// At most seven, so that with the title they are eight.
    pub lines: Vec<LeadLine>,
    /// Bars that HTML draws side by side: life, speed, capacity.
    pub pictures: Vec<Bars>,
}

/// One line of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadLine {
    /// What it is about: `HEALTH`.
    pub label: &'static str,
    /// Its severity.
    pub tone: Tone,
    /// The answer.
    pub text: String,
    /// A remark after it; for a command, the reason to run it.
    pub note: Option<String>,
    /// Whether `text` is a command to copy, which is never wrapped.
    pub is_command: bool,
}

impl LeadLine {
    /// A line of words.
    pub fn words(label: &'static str, tone: Tone, text: impl Into<String>) -> Self {
        Self { label, tone, text: text.into(), note: None, is_command: false }
    }

    /// A line with a command.
    pub fn command(label: &'static str, command: impl Into<String>, why: impl Into<String>) -> Self {
        Self { label, tone: Tone::Plain, text: command.into(), note: Some(why.into()), is_command: true }
    }
}
