//! What was measured: the time of one record, by column and record size.

use emmc_units::Bytes;
use emmc_workload::Measurement;
use emmc_workload::import::SavedResult;
use serde::Serialize;

/// A column of iozone's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// The first write of a file.
    Write,
    /// The second.
    Rewrite,
    /// The first read.
    Read,
    /// The second.
    Reread,
    /// Every record once, in random order.
    RandomRead,
    /// The same, written.
    RandomWrite,
}

impl Column {
    /// All, in the order in which a run measures them.
    pub const ALL: [Self; 6] =
        [Self::Write, Self::Rewrite, Self::Read, Self::Reread, Self::RandomRead, Self::RandomWrite];

    /// As iozone and the suite name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
            Self::Reread => "reread",
            Self::RandomRead => "random read",
            Self::RandomWrite => "random write",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }
}

/// A measured or simulated cell of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The operation.
    pub column: Column,
    /// The record. Unit: KiB.
    pub kib: u64,
    /// The time of a record. Unit: microseconds.
    pub us: f64,
}

impl Cell {
    /// Unit: KiB a second.
    pub fn kib_per_s(&self) -> f64 {
        self.kib as f64 * 1e6 / self.us
    }
}

/// The measured cells of a part, and the file on which they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredTable {
    /// By record, then by column.
    pub cells: Vec<Cell>,
    /// The size of the file. Unit: bytes.
    pub file_bytes: u64,
}

/// The file of results that do not state theirs: the one of the published tables. Unit: bytes.
const FILE_BYTES: u64 = 100 << 20;

/// Why measurements cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellsError {
    /// None of its columns and records is one that the form describes.
    #[error(
        "{name}: no column of iozone; expected write, rewrite, read, reread, random read or random write by record"
    )]
    Nothing {
        /// The result.
        name: String,
    },
    /// A column without which the form has no start.
    #[error("{name}: column {column:?} has records of {found} size{}; a fit needs at least {needed}", if *.found == 1 { "" } else { "s" })]
    Few {
        /// The result.
        name: String,
        /// The column.
        column: &'static str,
        /// Records that it has.
        found: usize,
        /// Records that are needed.
        needed: usize,
    },
    /// Two measurements of one cell.
    #[error("{name}: column {column:?} has the record of {kib} KiB more than once; expected one table of one card")]
    Twice {
        /// The result.
        name: String,
        /// The column.
        column: &'static str,
        /// The record. Unit: KiB.
        kib: u64,
    },
    /// Cells of different files.
    #[error("{name}: files of {} and {}; expected one size", Bytes(*.less).stated(), Bytes(*.more).stated())]
    Files {
        /// The result.
        name: String,
        /// The size of one. Unit: bytes.
        less: u64,
        /// The size of another one. Unit: bytes.
        more: u64,
    },
    /// A record that the file cannot hold.
    #[error("{name}: a record of {kib} KiB in a file of {}; expected one that fits", Bytes(*.file_bytes).stated())]
    Record {
        /// The result.
        name: String,
        /// The record. Unit: KiB.
        kib: u64,
        /// The size of the file. Unit: bytes.
        file_bytes: u64,
    },
}

/// Records of a column that a fit needs: a time of a request and a rate.
const RECORDS_MIN: usize = 2;

/// The cells of a saved result.
///
/// Errors: no cell; fewer than two records of writes or of reads; a cell twice; files of different sizes, or too small.
pub fn cells(result: &SavedResult) -> Result<MeasuredTable, CellsError> {
    let suites = result.outcomes.iter().filter(|outcome| outcome.suite == "iozone");
    let usable = |cell: &&Measurement| {
        let known = Column::named(&cell.column).is_some();
        known
            && cell.queue_depth == 1
            && cell.mb_per_s > 0.0
            && cell.block_bytes >= 1024
            && cell.block_bytes % 1024 == 0
    };
    let measured: Vec<&Measurement> = suites.flat_map(|outcome| &outcome.measurements).filter(usable).collect();
    let cell = |cell: &&Measurement| {
        let column = Column::named(&cell.column)?;
        Some(Cell { column, kib: cell.block_bytes / 1024, us: cell.block_bytes as f64 / cell.mb_per_s })
    };
    let mut cells: Vec<Cell> = measured.iter().filter_map(cell).collect();
    cells.sort_by_key(|cell| (cell.kib, cell.column));
    let name = || result.name.clone();
    let is_twice = |pair: &&[Cell]| (pair[0].kib, pair[0].column) == (pair[1].kib, pair[1].column);
    if let Some(pair) = cells.windows(2).find(is_twice) {
        return Err(CellsError::Twice { name: name(), column: pair[0].column.name(), kib: pair[0].kib });
    }
    if cells.is_empty() {
        return Err(CellsError::Nothing { name: name() });
    }
    for column in [Column::Write, Column::Read] {
        let found = cells.iter().filter(|cell| cell.column == column).count();
        if found < RECORDS_MIN {
            return Err(CellsError::Few { name: name(), column: column.name(), found, needed: RECORDS_MIN });
        }
    }
    let file_bytes =
        measured.iter().filter_map(|cell| cell.bytes).max().filter(|bytes| *bytes > 0).unwrap_or(FILE_BYTES);
    // A pass of whole records may leave the end of the file.
    let is_other = |cell: &&&Measurement| {
        let bytes = cell.bytes.unwrap_or(file_bytes);
        bytes != file_bytes && bytes != file_bytes / cell.block_bytes * cell.block_bytes
    };
    if let Some(other) = measured.iter().find(is_other) {
        let less = other.bytes.unwrap_or_default();
        return Err(CellsError::Files { name: name(), less, more: file_bytes });
    }
    if let Some(cell) = cells.last().filter(|cell| cell.kib << 10 > file_bytes) {
        return Err(CellsError::Record { name: name(), kib: cell.kib, file_bytes });
    }
    Ok(MeasuredTable { cells, file_bytes })
}

/// The time of a cell, if there is one. Unit: microseconds.
pub(crate) fn time(cells: &[Cell], column: Column, kib: u64) -> Option<f64> {
    cells.iter().find(|cell| (cell.column, cell.kib) == (column, kib)).map(|cell| cell.us)
}

#[cfg(test)]
mod tests {
    use emmc_workload::reference::reference;

    use super::*;

    #[test]
    fn a_table_has_its_cells_and_its_file() {
        let table = cells(&reference("nine-cards-sandisk-ultra-8gb").unwrap().result()).unwrap();
        assert_eq!((table.cells.len(), table.file_bytes), (48, 100 << 20));
        assert!(table.cells.is_sorted_by_key(|cell| (cell.kib, cell.column)));
        let fastest = table.cells.iter().map(Cell::kib_per_s).fold(0.0, f64::max);
        assert!((fastest - 45_874.0).abs() < 1.0, "{fastest}");
    }

    #[test]
    fn a_table_without_two_records_of_reads_is_refused() {
        let mut result = reference("nine-cards-sandisk-ultra-8gb").unwrap().result();
        for outcome in &mut result.outcomes {
            outcome.measurements.retain(|cell| cell.column != "read" || cell.block_bytes == 4096);
        }
        let error = cells(&result).unwrap_err();
        assert!(matches!(error, CellsError::Few { column: "read", found: 1, needed: 2, .. }), "{error}");
        let mut twice = reference("nine-cards-sandisk-ultra-8gb").unwrap().result();
        twice.outcomes.extend(twice.outcomes.clone());
        assert!(matches!(cells(&twice), Err(CellsError::Twice { column: "write", kib: 1, .. })));
        result.outcomes.clear();
        assert!(matches!(cells(&result), Err(CellsError::Nothing { .. })));
    }
}
