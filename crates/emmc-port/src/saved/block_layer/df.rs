//! `df`: filesystems in blocks of an exact size; `df -h` is rounded.

use emmc_units::Bytes;

use crate::saved::text::{Text, excerpt};
use crate::{Filesystem, SourceError};

/// What a heading says about the rows below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Columns {
    /// Bytes in one block, if exact.
    block_bytes: Option<u64>,
    /// Whether the type is the second column.
    fstype: bool,
}

impl Columns {
    /// The columns of a heading that begins with Filesystem.
    pub(super) fn new(line: &str) -> Option<Self> {
        let names: Vec<&str> = line.split_whitespace().take(8).collect();
        let (fstype, size) = match names.as_slice() {
            ["Filesystem", "Type", size, "Used", ..] => (true, size),
            ["Filesystem", size, "Used", ..] => (false, size),
            _ => return None,
        };
        let block_bytes = match *size {
            "1K-blocks" | "1024-blocks" => Some(1024),
            "512-blocks" => Some(512),
            "1B-blocks" => Some(1),
            _ => None,
        };
        Some(Self { block_bytes, fstype })
    }
}

/// The filesystems on devices, and how many rows had rounded sizes.
///
/// Errors: a size that is no number.
pub(super) fn filesystems(text: &Text) -> Result<(Vec<Filesystem>, usize), SourceError> {
    let mut filesystems: Vec<Filesystem> = Vec::new();
    let (mut columns, mut device, mut left_out) = (None, None, 0);
    for line in text.lines() {
        if let Some(new) = Columns::new(line.text) {
            (columns, device) = (Some(new), None);
            continue;
        }
        let Some(table) = columns.filter(|_| !text.is_cut(line.number)) else { continue };
        let mut cells: Vec<&str> = line.text.split_whitespace().take(64).collect();
        // After a long name the rest is on the next line.
        if let Some(device) = device.take() {
            cells.insert(0, device);
        }
        let [name, ..] = cells.as_slice() else { continue };
        if cells.len() == 1 && name.starts_with("/dev/") {
            device = Some(*name);
            continue;
        }
        // A row has a percentage; a line without one is after the table's end.
        let percent_at = if table.fstype { 5 } else { 4 };
        if !cells.get(percent_at).is_some_and(|cell| cell.ends_with('%') || *cell == "-") {
            columns = None;
            continue;
        }
        if !name.starts_with("/dev/") {
            continue;
        }
        let Some(block_bytes) = table.block_bytes else {
            left_out += 1;
            continue;
        };
        let size = |at: usize| -> Result<Bytes, SourceError> {
            let cell = cells.get(percent_at - at).copied().unwrap_or_default();
            let bytes = cell.parse::<u64>().ok().and_then(|blocks| blocks.checked_mul(block_bytes));
            bytes.map(Bytes).ok_or_else(|| text.malformed(line.number, "a number of blocks", excerpt(cell)))
        };
        let filesystem = Filesystem {
            device: name.to_string(),
            fstype: table.fstype.then(|| cells.get(1).map(|cell| cell.to_string())).flatten(),
            bytes: size(3)?,
            used: size(2)?,
            available: size(1)?,
            mount: cells.get(percent_at + 1..).map(|cells| cells.join(" ")).unwrap_or_default(),
        };
        if !filesystems.contains(&filesystem) && filesystems.len() < 1024 {
            filesystems.push(filesystem);
        }
    }
    Ok((filesystems, left_out))
}
