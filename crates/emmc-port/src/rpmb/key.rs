//! The key of an RPMB, which no message, document or log ever shows.

use std::fmt;

/// The shared secret of host and card.
#[derive(Clone, PartialEq, Eq)]
pub struct RpmbKey([u8; 32]);

/// Bytes that are no key. It has none of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Neither 32 bytes nor 64 characters.
    #[error("{found} bytes; expected exactly 32 bytes, or 64 hexadecimal digits")]
    Length {
        /// Bytes that were found, an end of line excluded where the rest is text.
        found: usize,
    },
    /// 64 characters, of which one is no digit.
    #[error("character {at} is no hexadecimal digit; expected exactly 32 bytes, or 64 hexadecimal digits")]
    Digit {
        /// Counted from 1.
        at: usize,
    },
}

impl RpmbKey {
    /// Bytes that are read for a key at most: more is no key.
    pub const READ_BYTES_MAX: u64 = 66;

    /// From the content of a file: 32 bytes as they are, or 64 hexadecimal digits with or without an end of line.
    ///
    /// Errors: anything else.
    pub fn from_file(content: &[u8]) -> Result<Self, KeyError> {
        if let Ok(key) = content.try_into() {
            return Ok(Self(key));
        }
        let text = content.strip_suffix(b"\n").unwrap_or(content);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() != 64 {
            return Err(KeyError::Length { found: content.len() });
        }
        let mut key = [0; 32];
        for (at, character) in text.iter().enumerate() {
            let digit = char::from(*character).to_digit(16).ok_or(KeyError::Digit { at: at + 1 })?;
            key[at / 2] = key[at / 2] << 4 | digit as u8;
        }
        Ok(Self(key))
    }

    /// The secret.
    pub(super) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RpmbKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RpmbKey(secret)")
    }
}

/// Overwrites it, as far as that is possible without unsafe code: copies that were moved or are in frames remain.
impl Drop for RpmbKey {
    fn drop(&mut self) {
        self.0 = [0; 32];
        std::hint::black_box(&self.0);
    }
}
