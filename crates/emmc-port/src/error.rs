use std::fmt;

/// Why a source told nothing: what, where, what was expected and what was found.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Reading failed.
    #[error("{name}: cannot read: {reason}")]
    Read {
        /// The source, as the user called it.
        name: String,
        /// The operating system's reason.
        reason: String,
    },
    /// The content is not what its form requires.
    #[error("{name}: at {at}: expected {expected}, found {found}")]
    Malformed {
        /// The source, as the user called it.
        name: String,
        /// Byte offset or line.
        at: Place,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The source is no card that this can ask, or the card cannot do it.
    #[error("{name}: not supported: {reason}")]
    Unsupported {
        /// The source, as the user called it.
        name: String,
        /// Why.
        reason: String,
    },
    /// Two sources were given for one card and are of two.
    #[error("{name}: not the same card as {other}: expected {expected}, found {found}")]
    OtherCard {
        /// The source that was added, as the user called it.
        name: String,
        /// The sources before it.
        other: String,
        /// What those tell.
        expected: String,
        /// What this one tells.
        found: String,
    },
}

impl SourceError {
    pub(crate) fn malformed(name: &str, at: Place, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Malformed { name: name.into(), at, expected: expected.into(), found: found.into() }
    }
}

/// Where in a source something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Offset in bytes from the start.
    Byte(u64),
    /// Line, counted from 1.
    Line(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte(offset) => write!(f, "byte {offset}"),
            Self::Line(line) => write!(f, "line {line}"),
        }
    }
}
