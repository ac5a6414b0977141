//! What was measured: the time of one record, by column and record size.

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
    #[error("{name}: column {column:?} has {found} records; a fit needs at least {needed}")]
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
}

/// Records of a column that a fit needs: a time of a request and a rate.
const RECORDS_MIN: usize = 2;

/// The cells of a saved result.
///
/// Errors: no cell; fewer than two records of writes or of reads.
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
    cells.dedup_by_key(|cell| (cell.kib, cell.column));
    let name = || result.name.clone();
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
        result.outcomes.clear();
        assert!(matches!(cells(&result), Err(CellsError::Nothing { .. })));
    }
}
