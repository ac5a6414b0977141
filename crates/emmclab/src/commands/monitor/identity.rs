//! Identities in a fleet: hashes, because a CID has a serial number.

use std::path::Path;

use anyhow::{Context, ensure};
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Shortest secret. Unit: bytes.
const SALT_BYTES_MIN: usize = 8;
/// Longest secret. Unit: bytes.
const SALT_BYTES_MAX: usize = 4096;
/// Digits of a hash that are printed: with a million cards two are equal with a probability of 3e-8.
const HASH_BYTES: usize = 8;

/// What all machines of a fleet hash identities with.
pub(super) struct Salt(Vec<u8>);

impl Salt {
    /// The file's content without blanks at its ends; empty without a file.
    ///
    /// Errors: it cannot be read; it is too short or too long.
    pub(super) fn read(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self(Vec::new())) };
        let name = path.display();
        let bytes =
            crate::source::read_limited(&path.to_string_lossy()).with_context(|| format!("{name}: the salt"))?;
        let salt = bytes.trim_ascii();
        let is_fit = (SALT_BYTES_MIN..=SALT_BYTES_MAX).contains(&salt.len());
        ensure!(is_fit, "{name}: expected a salt of {SALT_BYTES_MIN} to {SALT_BYTES_MAX} bytes, found {}", salt.len());
        Ok(Self(salt.to_vec()))
    }

    /// HMAC-SHA-256 of an identity, its first 16 digits.
    pub(super) fn hash(&self, identity: &[u8]) -> String {
        // Every length of key is good.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(identity);
        mac.finalize().into_bytes().iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_the_salt() {
        // Source: RFC 4231, test case 2.
        assert_eq!(Salt(b"Jefe".to_vec()).hash(b"what do ya want for nothing?"), "5bdcc146bf60754e");
        assert_ne!(Salt(b"one".to_vec()).hash(b"x"), Salt(b"two".to_vec()).hash(b"x"));
    }
}
