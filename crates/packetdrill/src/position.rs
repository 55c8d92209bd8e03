//! Positions in a script, and errors of its syntax.

use std::fmt;

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl Position {
    /// The position of the character with the index `at` of a text that begins here.
    pub(crate) fn after(self, text: &str) -> Self {
        let lines = text.matches('\n').count() as u32;
        let last = text.rsplit('\n').next().unwrap_or_default().chars().count() as u32;
        let column = if lines == 0 { self.column + last } else { last + 1 };
        Self { line: self.line + lines, column }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A script that does not follow the language.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct SyntaxError {
    /// Where.
    pub at: Position,
    /// What is wrong, and what is valid there.
    pub problem: String,
}

impl SyntaxError {
    pub(crate) fn new(at: Position, problem: impl Into<String>) -> Self {
        Self { at, problem: problem.into() }
    }
}
