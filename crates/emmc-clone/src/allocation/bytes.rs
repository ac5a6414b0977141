//! Reading of structures on a card: numbers at their offsets, and the bytes behind a trait.

use std::fmt;

use sha2::{Digest, Sha256};

/// Bytes that can be read at any place.
pub trait ReadAt {
    /// Fills `into` from `offset` on.
    ///
    /// Errors: outside, unreadable.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<(), String>;
}

impl ReadAt for &[u8] {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<(), String> {
        let from = usize::try_from(offset).ok();
        let part = from.and_then(|from| self.get(from..from.checked_add(into.len())?));
        part.map(|part| into.copy_from_slice(part)).ok_or_else(|| format!("byte {offset} lies outside"))
    }
}

/// Why a structure is not followed; what it describes then counts as allocated as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The bytes cannot be read at all.
    Failed(String),
    /// They can, and are not consistent or not supported.
    Odd(String),
}

impl Unread {
    pub(super) fn odd(what: impl fmt::Display) -> Self {
        Self::Odd(what.to_string())
    }
}

/// The largest structure that is read at once: a bitmap, a table. Unit: bytes.
const STRUCTURE_BYTES_MAX: usize = 64 << 20;

/// A reader that hashes everything it reads, so that a later reading can be compared with it.
pub(super) struct Reader<'a> {
    inner: &'a mut dyn ReadAt,
    size_bytes: u64,
    hash: Sha256,
}

impl<'a> Reader<'a> {
    pub(super) fn new(inner: &'a mut dyn ReadAt, size_bytes: u64) -> Self {
        Self { inner, size_bytes, hash: Sha256::new() }
    }

    /// Reads a structure.
    pub(super) fn read(&mut self, offset: u64, bytes: usize) -> Result<Bytes, Unread> {
        if bytes > STRUCTURE_BYTES_MAX || offset.checked_add(bytes as u64).is_none_or(|end| end > self.size_bytes) {
            return Err(Unread::odd(format_args!("a structure of {bytes} bytes at byte {offset} lies outside")));
        }
        let mut found = vec![0; bytes];
        self.inner.read_at(offset, &mut found).map_err(Unread::Failed)?;
        self.hash.update(offset.to_le_bytes());
        self.hash.update(&found);
        Ok(Bytes(found))
    }

    /// The hash of everything that was read.
    pub(super) fn fingerprint(self) -> [u8; 32] {
        self.hash.finalize().into()
    }
}

/// Bytes of a structure; what lies outside reads as zero.
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Bytes {
    fn number<const N: usize>(&self, at: usize) -> [u8; N] {
        let part = self.0.get(at..at.saturating_add(N));
        part.and_then(|part| part.try_into().ok()).unwrap_or([0; N])
    }

    pub(super) fn u8(&self, at: usize) -> u8 {
        self.number::<1>(at)[0]
    }

    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.number(at))
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.number(at))
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.number(at))
    }

    pub(super) fn has(&self, at: usize, text: &[u8]) -> bool {
        self.0.get(at..at.saturating_add(text.len())) == Some(text)
    }

    pub(super) fn part(&self, at: usize, bytes: usize) -> &[u8] {
        self.0.get(at..at.saturating_add(bytes)).unwrap_or_default()
    }

    /// Bit `index` of a bitmap whose bytes have the lowest bit first.
    pub(super) fn bit(&self, index: usize) -> bool {
        self.u8(index / 8) >> (index % 8) & 1 == 1
    }
}
