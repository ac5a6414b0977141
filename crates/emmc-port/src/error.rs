use std::fmt;

/// Why a source cannot be read: the kind, the place, the expected and the found content.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Reading failed.
    #[error("{name}: cannot read: {reason}")]
    Read {
        /// The source, as the user named it.
        name: String,
        /// The operating system's reason.
        reason: String,
    },
    /// The content violates its form.
    #[error("{name}: at {at}: expected {expected}, found {found}")]
    Malformed {
        /// The source, as the user named it.
        name: String,
        /// Byte offset or line.
        at: Place,
        /// The expected content.
        expected: String,
        /// The content found.
        found: String,
    },
    /// The source is not a card that can be read, or the card does not support it.
    #[error("{name}: not supported: {reason}")]
    Unsupported {
        /// The source, as the user named it.
        name: String,
        /// Why.
        reason: String,
    },
    /// Two sources belong to two different cards.
    #[error("{name}: not the same card as {other}: expected {expected}, found {found}")]
    OtherCard {
        /// The added source, as the user named it.
        name: String,
        /// The sources before it.
        other: String,
        /// Their value.
        expected: String,
        /// The value of the added source.
        found: String,
    },
}

impl SourceError {
    pub(crate) fn malformed(name: &str, at: Place, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Malformed { name: name.into(), at, expected: expected.into(), found: found.into() }
    }
}

/// The place of an error in a source.
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
