//! The header: which card a clone is of, its areas, and how much of them was allocated.

use emmc_port::Snapshot;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{FormatError, VERSION};
use crate::allocation::Part;

const MAGIC: &[u8; 8] = b"EMMCLONE";
/// Magic, version, length of the text, its SHA-256.
pub const HEAD_BYTES: usize = 48;
/// The longest text. Unit: bytes.
pub const HEADER_BYTES_MAX: u32 = 16 << 20;

/// What was cloned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SourceKind {
    /// A block device of a machine.
    Device,
    /// An image in a file.
    File,
    /// A virtual card in a folder.
    VirtualCard,
}

/// An area of the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AreaShape {
    /// `user`, `boot0`, `boot1`, `gp1` to `gp4`.
    pub name: String,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// Its logical sectors. Unit: bytes.
    pub sector_bytes: u32,
    /// Its parts and what of them is allocated.
    pub parts: Vec<Part>,
}

/// What the header says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Header {
    /// The program that wrote it.
    pub tool: String,
    /// The source as it was named.
    pub source: String,
    /// Its kind.
    pub kind: SourceKind,
    /// The areas, in the order of their numbers in records.
    pub areas: Vec<AreaShape>,
    /// SHA-256 of the tables, superblocks and bitmaps that said what is allocated.
    pub fingerprint: String,
    /// The largest content of a data record. Unit: bytes.
    pub piece_bytes: u32,
    /// The registers of the card, where it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Snapshot>,
    /// What the file does not hold: a sentence each.
    pub not_carried: Vec<String>,
    /// The commands that plan the settings of this card for another one.
    pub plans: Vec<String>,
}

impl Header {
    /// The first bytes of the file.
    ///
    /// Errors: a text that cannot be written as JSON.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let text = serde_json::to_vec(self)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(Sha256::digest(&text));
        bytes.extend(text);
        Ok(bytes)
    }
}

/// The bytes before the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Unit: bytes.
    pub text_bytes: u32,
    sha256: [u8; 32],
}

impl Head {
    /// Reads the first bytes of a file.
    ///
    /// Errors: another file, another version, a length that cannot be.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let start = &bytes[..bytes.len().min(MAGIC.len())];
        if start != &MAGIC[..start.len()] || start.is_empty() {
            return Err(FormatError::Other);
        }
        let Some(bytes) = bytes.get(..HEAD_BYTES) else { return Err(FormatError::Cut { at: bytes.len() as u64 }) };
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let version = number(8);
        if version != VERSION {
            return Err(FormatError::Version { found: version });
        }
        let text_bytes = number(12);
        if text_bytes > HEADER_BYTES_MAX {
            return Err(FormatError::damaged(12, format!("a header of {text_bytes} bytes")));
        }
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(&bytes[16..48]);
        Ok(Self { text_bytes, sha256 })
    }

    /// Reads the text behind it.
    ///
    /// Errors: other bytes than its checksum says; a text that is no header.
    pub fn header(&self, text: &[u8]) -> Result<Header, FormatError> {
        if Sha256::digest(text).as_slice() != self.sha256 {
            return Err(FormatError::damaged(HEAD_BYTES as u64, "the header differs from its checksum"));
        }
        let header: Header = serde_json::from_slice(text)
            .map_err(|error| FormatError::damaged(HEAD_BYTES as u64, format!("the header: {error}")))?;
        let fits = |area: &AreaShape| {
            area.size_bytes > 0 && area.sector_bytes >= 512 && area.size_bytes % u64::from(area.sector_bytes) == 0
        };
        let is_plain = (1..=16).contains(&header.areas.len()) && header.areas.iter().all(fits);
        if !is_plain {
            return Err(FormatError::damaged(HEAD_BYTES as u64, "the header: sizes of areas that cannot be"));
        }
        Ok(header)
    }
}
