//! What the kernel's log says of a card, by the texts of its drivers.
//!
//! Source: Linux `drivers/mmc/core/{block,mmc,mmc_ops,core}.c`, `drivers/mmc/host/{sdhci,cqhci-core}.c`,
//! `block/blk-core.c`, `fs/{ext4/super,fat/misc,f2fs/super}.c`.

use std::collections::BTreeMap;

use serde::Serialize;

/// What a line of the log is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LogKind {
    /// A filesystem became read-only.
    ReadOnly,
    /// A read failed.
    ReadError,
    /// A write failed.
    WriteError,
    /// A command, a response or data arrived damaged.
    Crc,
    /// The sampling point could not be tuned.
    Tuning,
    /// The card stayed busy.
    Busy,
    /// A command or its data got no answer.
    Timeout,
    /// The command queue had to be recovered.
    Recovery,
}

/// Lines of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLines {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: String,
    /// The sectors that they name, without repetition, at most 4096.
    pub sectors: Vec<u64>,
}

/// Sectors that are kept.
const SECTORS_MAX: usize = 4096;

/// A text, and what it means.
const TEXTS: [(&str, LogKind); 16] = [
    ("Remounting filesystem read-only", LogKind::ReadOnly),
    ("Filesystem has been set read-only", LogKind::ReadOnly),
    ("Remount read-only", LogKind::ReadOnly),
    ("tuning execution failed", LogKind::Tuning),
    ("Tuning failed", LogKind::Tuning),
    ("response CRC error", LogKind::Crc),
    ("error -84", LogKind::Crc),
    ("Card stuck being busy", LogKind::Busy),
    ("Card stuck in programming state", LogKind::Busy),
    ("card never left busy state", LogKind::Busy),
    ("Timeout waiting for hardware", LogKind::Timeout),
    ("timed out sending", LogKind::Timeout),
    ("error -110", LogKind::Timeout),
    ("cqhci: timeout for tag", LogKind::Timeout),
    ("running CQE recovery", LogKind::Recovery),
    ("CQE recovery failed", LogKind::Recovery),
];

/// The lines that name one of `names` (`mmcblk0`, `mmc0`); with no names, any card.
pub fn read_log(log: &str, names: &[String]) -> BTreeMap<LogKind, LogLines> {
    let mut found: BTreeMap<LogKind, LogLines> = BTreeMap::new();
    for line in log.lines() {
        let is_ours = match names {
            [] => line.contains("mmc"),
            names => names.iter().any(|name| mentions(line, name)),
        };
        let Some(kind) = is_ours.then(|| kind_of(line)).flatten() else { continue };
        let lines = found.entry(kind).or_default();
        if lines.count == 0 {
            lines.first = line.trim().chars().take(200).collect();
        }
        lines.count += 1;
        if let Some(sector) = sector(line).filter(|sector| !lines.sectors.contains(sector)) {
            if lines.sectors.len() < SECTORS_MAX {
                lines.sectors.push(sector);
            }
        }
    }
    found
}

/// A name as a whole word or a disk of a partition: `mmcblk0` in `mmcblk0p2`, not in `mmcblk01`.
fn mentions(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let behind = line[at + name.len()..].chars().next();
        before.is_none_or(|c| !c.is_ascii_alphanumeric()) && behind.is_none_or(|c| !c.is_ascii_digit())
    })
}

fn kind_of(line: &str) -> Option<LogKind> {
    if line.contains("I/O error") || line.contains("critical medium error") {
        return of_request(line);
    }
    TEXTS.iter().find(|(text, _)| line.contains(text)).map(|(_, kind)| *kind)
}

/// A request that failed: which kind it was, by its operation or by the words of the filesystem.
///
/// A discard that failed is neither: the data is as it was.
fn of_request(line: &str) -> Option<LogKind> {
    let has = |texts: &[&str]| texts.iter().any(|text| line.contains(text));
    if has(&["(DISCARD)", "(SECURE_ERASE)"]) {
        return None;
    }
    // `lost sync page write`; `I/O error while writing superblock`; the journal's superblock is only ever updated.
    let is_write = has(&["(WRITE", "(FLUSH)", "page write", "writing", "updating journal", "error to superblock"]);
    Some(if is_write { LogKind::WriteError } else { LogKind::ReadError })
}

/// `sector 2048 `, `sector 2048,`.
fn sector(line: &str) -> Option<u64> {
    let behind = line.split_once("sector ")?.1;
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
