//! A password, which no message, document or log ever shows.

use std::fmt;

/// The longest password of the standard. Unit: bytes.
const BYTES_MAX: usize = 16;

/// The shared secret of host and card: 1 to 16 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Vec<u8>);

/// Bytes that are no password. It has none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// None but perhaps an end of line.
    #[error("nothing; expected 1 to 16 bytes, and perhaps an end of line, which does not count")]
    Empty,
    /// More than a password has.
    #[error("more than 16 bytes; expected 1 to 16 bytes, and perhaps an end of line, which does not count")]
    TooLong,
}

impl Password {
    /// Bytes that are read for a password at most: more is no password.
    pub const READ_BYTES_MAX: u64 = BYTES_MAX as u64 + 2;

    /// From the content of a file: its bytes without the end of line at its end.
    ///
    /// Errors: none, or more than 16.
    pub fn from_file(content: &[u8]) -> Result<Self, PasswordError> {
        let text = content.strip_suffix(b"\n").map_or(content, |text| text.strip_suffix(b"\r").unwrap_or(text));
        match text.len() {
            0 => Err(PasswordError::Empty),
            1..=BYTES_MAX => Ok(Self(text.to_vec())),
            _ => Err(PasswordError::TooLong),
        }
    }

    /// The secret.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(secret)")
    }
}

/// Overwrites it, as far as that is possible without unsafe code: copies that were moved remain.
impl Drop for Password {
    fn drop(&mut self) {
        self.0.fill(0);
        std::hint::black_box(&self.0);
    }
}
