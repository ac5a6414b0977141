//! A card's data as a JSON file; keys are only added.
//!
//! Registers are hexadecimal digits, lowest byte first for EXT_CSD and highest bit first for the others, as Linux
//! prints them. Absent on purpose: decoded values, because a later version may decode more.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd};
use serde::{Deserialize, Serialize};

use crate::{BlockLayer, CardData, Host, Origin, SavedReport, Stated, VendorFormat};

/// The first key of every snapshot; its number rises if old readers would misread a new file.
pub const SNAPSHOT_SCHEMA: &str = "emmclab.snapshot/1";

/// A card's data in the form of a saved file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// [`SNAPSHOT_SCHEMA`].
    pub schema: String,
    /// Version of the tool that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// When it was taken: RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<String>,
    /// Where the data came from.
    #[serde(default)]
    pub origins: Vec<Origin>,
    /// eMMC or SD, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<CardKind>,
    /// CID, 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cid: Option<String>,
    /// CSD, 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csd: Option<String>,
    /// SCR, 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scr: Option<String>,
    /// SD status, 128 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssr: Option<String>,
    /// EXT_CSD, 1024 hexadecimal digits, byte 0 first; unknown bits are 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext_csd: Option<String>,
    /// The mask of known bits of `ext_csd`, as many digits; absent when all are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext_csd_known: Option<String>,
    /// Offsets of the bytes of `ext_csd` that were inferred from words and sizes instead of read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ext_csd_inferred: Vec<u16>,
    /// OCR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ocr: Option<u32>,
    /// Relative card address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rca: Option<u16>,
    /// Card status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u32>,
    /// Attributes of sysfs, as printed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysfs: BTreeMap<String, String>,
    /// The host controller's side.
    #[serde(default, skip_serializing_if = "Host::is_empty")]
    pub host: Host,
    /// Disks, partitions and filesystems of the card in Linux.
    #[serde(default, skip_serializing_if = "BlockLayer::is_empty")]
    pub blocks: BlockLayer,
    /// Values from text that does not print the register.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stated: Stated,
    /// Vendor health replies and texts, undecoded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<SnapshotReport>,
    /// Disagreements of the sources: one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
}

/// A vendor health report in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotReport {
    /// Its form.
    pub format: VendorFormat,
    /// Its content, in hexadecimal digits.
    pub content: String,
}

/// Why a snapshot cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Another version's file.
    #[error("schema {found:?} is not {SNAPSHOT_SCHEMA:?}, the one that this version reads; a newer emmclab may")]
    Schema {
        /// The file's schema.
        found: String,
    },
    /// Bytes that are not a plausible EXT_CSD.
    #[error("ext_csd, byte {offset}, has {found}; expected {expected}")]
    Implausible {
        /// The implausible byte.
        offset: u64,
        /// The expected value.
        expected: &'static str,
        /// The value found.
        found: String,
    },
    /// Digits that are not a register.
    #[error("{key} has {found}; expected {expected} hexadecimal digits")]
    Digits {
        /// The key in the file.
        key: &'static str,
        /// How many digits it should have.
        expected: Cow<'static, str>,
        /// What the file has.
        found: String,
    },
}

impl Snapshot {
    /// The snapshot of `data` that a tool of version `tool` takes now, `taken_at` in RFC 3339.
    pub fn new(data: &CardData, tool: impl Into<String>, taken_at: Option<String>) -> Self {
        Self { tool: Some(tool.into()), taken_at, ..Self::from(data) }
    }
}

impl From<&CardData> for Snapshot {
    fn from(data: &CardData) -> Self {
        let partial = data.ext_csd.as_ref().filter(|ext_csd| !ext_csd.is_complete());
        let report = |report: &SavedReport| SnapshotReport {
            format: report.format.clone(),
            content: digits_of(&report.content),
        };
        Self {
            schema: SNAPSHOT_SCHEMA.into(),
            tool: None,
            taken_at: None,
            origins: data.origins.clone(),
            kind: data.kind,
            cid: data.cid.map(|cid| digits_of(&cid.0)),
            csd: data.csd.map(|csd| digits_of(&csd)),
            scr: data.scr.map(|scr| digits_of(&scr)),
            ssr: data.ssr.map(|ssr| digits_of(&ssr)),
            ext_csd: data.ext_csd.as_ref().map(|ext_csd| digits_of(ext_csd.bytes())),
            ext_csd_known: partial.map(|ext_csd| digits_of(ext_csd.mask())),
            ext_csd_inferred: data.inferred.clone(),
            ocr: data.ocr,
            rca: data.rca,
            status: data.status,
            sysfs: data.sysfs.clone(),
            host: data.host.clone(),
            blocks: data.blocks.clone(),
            stated: data.stated.clone(),
            reports: data.reports.iter().map(report).collect(),
            conflicts: data.conflicts.clone(),
        }
    }
}

impl TryFrom<Snapshot> for CardData {
    type Error = SnapshotError;

    fn try_from(snapshot: Snapshot) -> Result<Self, SnapshotError> {
        if snapshot.schema != SNAPSHOT_SCHEMA {
            return Err(SnapshotError::Schema { found: snapshot.schema });
        }
        let ext_csd = register::<EXT_CSD_BYTES>("ext_csd", snapshot.ext_csd)?;
        let known = register::<EXT_CSD_BYTES>("ext_csd_known", snapshot.ext_csd_known)?;
        // A card without a response, and edited digits, are refused as in a binary file.
        let complete = ext_csd.as_ref().filter(|_| known.is_none());
        if let Some(fault) = complete.and_then(|bytes| crate::saved::ext_csd_fault(bytes)) {
            let (offset, expected, found) = (fault.offset, fault.expected, fault.found);
            return Err(SnapshotError::Implausible { offset, expected, found });
        }
        let inferred: BTreeSet<u16> = snapshot.ext_csd_inferred.into_iter().collect();
        let report = |report: SnapshotReport| {
            let content = bytes_of("reports.content", None, &report.content)?;
            Ok(SavedReport { format: report.format, content })
        };
        Ok(Self {
            origins: snapshot.origins,
            kind: snapshot.kind,
            cid: register("cid", snapshot.cid)?.map(Cid),
            csd: register("csd", snapshot.csd)?,
            ext_csd: ext_csd.map(|bytes| ExtCsd::with_mask(bytes, known.unwrap_or([0xff; EXT_CSD_BYTES]))),
            ocr: snapshot.ocr,
            rca: snapshot.rca,
            status: snapshot.status,
            scr: register("scr", snapshot.scr)?,
            ssr: register("ssr", snapshot.ssr)?,
            sysfs: snapshot.sysfs,
            host: snapshot.host,
            blocks: snapshot.blocks,
            stated: snapshot.stated,
            reports: snapshot.reports.into_iter().map(report).collect::<Result<_, _>>()?,
            inferred: inferred.into_iter().collect(),
            conflicts: snapshot.conflicts,
        })
    }
}

fn is_default(stated: &Stated) -> bool {
    *stated == Stated::default()
}

fn digits_of(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]).filter_map(|digit| DIGITS.get(usize::from(digit))).collect()
}

fn register<const N: usize>(key: &'static str, digits: Option<String>) -> Result<Option<[u8; N]>, SnapshotError> {
    let Some(digits) = digits else { return Ok(None) };
    let bytes = bytes_of(key, Some(2 * N), &digits)?;
    let found = || format!("{} digits", digits.len());
    bytes.try_into().map(Some).map_err(|_| SnapshotError::Digits {
        key,
        expected: (2 * N).to_string().into(),
        found: found(),
    })
}

fn bytes_of(key: &'static str, count: Option<usize>, digits: &str) -> Result<Vec<u8>, SnapshotError> {
    let expected = || count.map_or(Cow::Borrowed("an even number of"), |count| count.to_string().into());
    let wrong = |found: String| SnapshotError::Digits { key, expected: expected(), found };
    if let Some(letter) = digits.chars().find(|letter| !letter.is_ascii_hexdigit()) {
        return Err(wrong(format!("{letter:?}")));
    }
    if digits.len() % 2 != 0 || count.is_some_and(|count| count != digits.len()) {
        return Err(wrong(format!("{} digits", digits.len())));
    }
    let pairs = digits.as_bytes().chunks_exact(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    Ok(pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect())
}

#[cfg(test)]
mod tests;
