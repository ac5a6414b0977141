//! What was measured of a part, as cells, and the runs that repeat them.

mod requests;

use std::collections::BTreeMap;

use emmc_units::Bytes;
use emmc_workload::import::SavedResult;
use emmc_workload::{Measurement, Outcome};

use self::requests::{holds_nothing, is_aged, requests};
use crate::cell::{BURST_KIB, Cell, Column, Figure, Requests, records};
use crate::simulate::volume;

/// The measured cells of a part, and what the simulator repeats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// iozone's by record and column, then the others as they were measured.
    pub cells: Vec<Cell>,
    /// The record sizes of iozone that were run, also those of which no cell is given: what one pass leaves behind,
    /// the next one meets. Unit: KiB.
    pub records: Vec<u64>,
    /// The file of iozone's cells. Unit: bytes.
    pub file_bytes: u64,
    /// An allocation unit as flashbench was told it. Unit: bytes.
    pub unit_bytes: u64,
    /// The part of an empty card on which requests of other suites were made. Unit: bytes.
    pub range_bytes: u64,
    /// How far each measurement of requests went, by these with [`Figure::Rate`] and the size of one in KiB.
    pub extents: BTreeMap<(Requests, u64), Extent>,
    /// The area of the suite `burst`. Unit: bytes.
    pub burst_bytes: u64,
    /// Measurements that are not repeated, and why.
    pub left_out: Vec<String>,
}

/// How far a measurement went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extent {
    /// What it moved, if that is known. Unit: bytes.
    pub moved_bytes: Option<u64>,
    /// The part of the card over which its requests were spread, if that is known. Unit: bytes.
    pub range_bytes: Option<u64>,
}

/// The file of results that do not state theirs: the one of the published tables. Unit: bytes.
const FILE_BYTES: u64 = 100 << 20;
/// Records of a column that a fit needs: a time of a request and a rate.
const RECORDS_MIN: usize = 2;

/// The suite `burst` ends soon after the fall. A card with a larger log than the measured one needs more room, where
/// its area is not known.
const BURST_ROOM: u64 = 2;

/// Why measurements cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellsError {
    /// None of them can be repeated.
    #[error(
        "{name}: no measurement that can be repeated; expected columns of iozone, flashbench -O or -a, or rates of sequential or random requests{why}"
    )]
    Nothing {
        /// The result.
        name: String,
        /// The first that is left out.
        why: String,
    },
    /// No table that a form starts from.
    #[error(
        "{name}: no column of iozone and no run of flashbench -O with its command; a fit needs one of them, beside \
         which others count"
    )]
    NoStart {
        /// The result.
        name: String,
    },
    /// A column without which the form has no start.
    #[error("{name}: column \"{column}\" has records of {found} size{}; a fit needs at least {needed}", if *.found == 1 { "" } else { "s" })]
    Few {
        /// The result.
        name: String,
        /// The column.
        column: String,
        /// Records that it has.
        found: usize,
        /// Records that are needed.
        needed: usize,
    },
    /// Two measurements of one cell.
    #[error("{name}: column \"{column}\" has the record of {kib} KiB more than once; expected one table of one card")]
    Twice {
        /// The result.
        name: String,
        /// The column.
        column: String,
        /// The record. Unit: KiB.
        kib: u64,
    },
    /// Cells of different files, or of different units.
    #[error("{name}: {what} of {} and {}; expected one size", Bytes(*.less).stated(), Bytes(*.more).stated())]
    Sizes {
        /// The result.
        name: String,
        /// Files or allocation units.
        what: &'static str,
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

impl Measured {
    /// The cells of a saved result.
    ///
    /// Errors: no cell; a cell of iozone twice; files or units of different sizes, or too small.
    pub fn of(result: &SavedResult) -> Result<Self, CellsError> {
        let name = || result.name.clone();
        let mut measured = Self::default();
        let of = |wanted: &[&str]| -> Vec<&Outcome> {
            result.outcomes.iter().filter(|outcome| wanted.contains(&outcome.suite.as_str())).collect()
        };
        measured.take_iozone(&of(&["iozone"]), &result.name)?;
        for outcome in &result.outcomes {
            match outcome.suite.as_str() {
                "iozone" => {}
                "open-au" | "flashbench-open-au" => measured.take_open_units(outcome, &result.name)?,
                "burst" => measured.take_burst(outcome),
                "align" | "flashbench-align" => measured.take_align(outcome),
                _ => measured.take_requests(outcome),
            }
        }
        if measured.cells.is_empty() {
            let why = measured.left_out.first().map_or(String::new(), |first| format!(" ({first})"));
            return Err(CellsError::Nothing { name: name(), why });
        }
        Ok(measured)
    }

    /// Whether a form can start from them.
    ///
    /// Errors: no table of iozone or flashbench -O; fewer than two records of writes or of reads.
    pub fn can_start(&self, name: &str) -> Result<(), CellsError> {
        let count = |column| self.cells.iter().filter(|cell| cell.column == column).count();
        let has_iozone = !records(&self.cells).is_empty();
        let blocks = self.cells.iter().filter(|cell| matches!(cell.column, Column::OpenUnits { .. })).count();
        if !has_iozone && blocks < RECORDS_MIN {
            return Err(CellsError::NoStart { name: name.into() });
        }
        for column in [Column::Write, Column::Read] {
            let found = count(column);
            if has_iozone && found < RECORDS_MIN {
                let column = column.to_string();
                return Err(CellsError::Few { name: name.into(), column, found, needed: RECORDS_MIN });
            }
        }
        Ok(())
    }

    /// The same runs with other cells.
    pub(crate) fn with(&self, cells: Vec<Cell>) -> Self {
        Self { cells, left_out: Vec::new(), ..self.clone() }
    }

    /// The record sizes of iozone that are repeated: all that were run, but for reads alone their own. Unit: KiB.
    pub(crate) fn repeated_records(&self) -> Vec<u64> {
        let mut repeated = records(&self.cells);
        if self.cells.iter().any(|cell| cell.column.is_iozone() && !cell.column.is_read()) {
            repeated.extend(&self.records);
            repeated.sort_unstable();
            repeated.dedup();
        }
        repeated
    }

    /// Only those that are quick to simulate: of iozone, and of the suite `burst`.
    pub(crate) fn quick(&self) -> Self {
        let is_quick = |cell: &Cell| cell.column.is_iozone() || cell.column == Column::Burst;
        self.with(self.cells.iter().copied().filter(is_quick).collect())
    }

    /// Only the cells of iozone.
    pub(crate) fn iozone(&self) -> Self {
        self.with(self.cells.iter().copied().filter(|cell| cell.column.is_iozone()).collect())
    }

    fn leave_out(&mut self, outcome: &str, cell: &Measurement, why: &str) {
        let place: Vec<&str> = [&cell.row, &cell.column].into_iter().map(String::as_str).collect();
        self.left_out.push(format!("{outcome}, {}: {why}", place.join(" ").trim()));
    }

    fn take_iozone(&mut self, outcomes: &[&Outcome], name: &str) -> Result<(), CellsError> {
        let mut used: Vec<&Measurement> = Vec::new();
        for cell in outcomes.iter().flat_map(|outcome| &outcome.measurements) {
            let why = match Column::of_iozone(&cell.column) {
                None => "not a column of write, rewrite, read, reread, random read or random write",
                Some(_) if cell.queue_depth != 1 => "several requests at a time",
                Some(_) if has_no_speed(cell) => "no speed",
                Some(_) if cell.block_bytes < 1024 || cell.block_bytes % 1024 > 0 => "not whole KiB",
                Some(column) => {
                    let us = cell.block_bytes as f64 / cell.mb_per_s;
                    self.cells.push(Cell { column, kib: cell.block_bytes / 1024, us });
                    used.push(cell);
                    continue;
                }
            };
            self.leave_out("iozone", cell, why);
        }
        self.cells.sort_by_key(|cell| (cell.kib, cell.column));
        let is_twice = |pair: &&[Cell]| (pair[0].kib, pair[0].column) == (pair[1].kib, pair[1].column);
        if let Some(pair) = self.cells.windows(2).find(is_twice) {
            let column = pair[0].column.to_string();
            return Err(CellsError::Twice { name: name.into(), column, kib: pair[0].kib });
        }
        let largest = used.iter().filter_map(|cell| cell.bytes).max().filter(|bytes| *bytes > 0);
        let file_bytes = largest.unwrap_or(FILE_BYTES);
        // A pass of whole records may leave the end of the file.
        let is_other = |cell: &&&Measurement| {
            let bytes = cell.bytes.unwrap_or(file_bytes);
            bytes != file_bytes && bytes != file_bytes / cell.block_bytes * cell.block_bytes
        };
        if let Some(other) = used.iter().find(is_other) {
            let less = other.bytes.unwrap_or_default();
            return Err(CellsError::Sizes { name: name.into(), what: "files", less, more: file_bytes });
        }
        if let Some(cell) = self.cells.last().filter(|cell| cell.kib << 10 > file_bytes) {
            return Err(CellsError::Record { name: name.into(), kib: cell.kib, file_bytes });
        }
        self.file_bytes = file_bytes;
        self.records = records(&self.cells);
        Ok(())
    }

    fn take_open_units(&mut self, outcome: &Outcome, name: &str) -> Result<(), CellsError> {
        let largest = outcome.measurements.iter().map(|cell| cell.block_bytes).max().unwrap_or(0);
        for cell in &outcome.measurements {
            let units = cell.column.strip_suffix(" AUs").or(cell.column.strip_suffix(" AU"));
            let why = match units.and_then(|units| units.parse::<u16>().ok()) {
                None => "the number of units is not known",
                Some(_) if cell.block_bytes < 1024 || cell.block_bytes % 1024 > 0 => "not whole KiB",
                Some(0) => "no units",
                Some(_) if has_no_speed(cell) => "no speed",
                Some(units) => {
                    let column = Column::OpenUnits { units, is_random: cell.table.ends_with("random") };
                    let us = cell.block_bytes as f64 / cell.mb_per_s;
                    self.cells.push(Cell { column, kib: cell.block_bytes / 1024, us });
                    continue;
                }
            };
            self.leave_out("flashbench -O", cell, why);
        }
        if self.unit_bytes > 0 && largest != self.unit_bytes {
            let (less, more) = (largest.min(self.unit_bytes), largest.max(self.unit_bytes));
            return Err(CellsError::Sizes { name: name.into(), what: "allocation units", less, more });
        }
        self.unit_bytes = largest;
        Ok(())
    }

    /// Reads before and after boundaries are lone random reads of the block.
    fn take_align(&mut self, outcome: &Outcome) {
        for grid in &outcome.grids {
            if holds_nothing(&outcome.state_before) {
                self.left_out.push(format!("{}: reads of a card that holds no data", grid.name));
                continue;
            }
            let block =
                grid.name.strip_prefix("align, read, ").and_then(|block| block.parse::<emmc_units::Size>().ok());
            let block = block.and_then(|size| match size {
                emmc_units::Size::Exact(bytes) => Some(bytes.0),
                _ => None,
            });
            let place = |name: &str| grid.columns.iter().position(|column| column.name == name);
            let (Some(block), Some(pre), Some(post)) =
                (block.filter(|block| *block >= 1024), place("pre"), place("post"))
            else {
                self.left_out.push(format!("{}: not reads of a known block of whole KiB", grid.name));
                continue;
            };
            let values = grid.lines.iter().flat_map(|line| [line.values.get(pre), line.values.get(post)]);
            let mut times: Vec<f64> = values.flatten().flatten().copied().filter(|us| *us > 0.0).collect();
            times.sort_by(f64::total_cmp);
            let Some(us) = times.get(times.len() / 2).copied() else { continue };
            let requests =
                Requests { is_aged: false, is_write: false, is_random: true, depth: 1, figure: Figure::Rate };
            self.cells.push(Cell { column: Column::Requests(requests), kib: block / 1024, us });
        }
    }

    /// What small random writes write before their rate falls. Large sequential ones go past the log of a twin.
    fn take_burst(&mut self, outcome: &Outcome) {
        let (random, others): (Vec<&Measurement>, Vec<&Measurement>) =
            outcome.measurements.iter().partition(|cell| cell.block_bytes == BURST_KIB << 10);
        for cell in others {
            self.leave_out("burst", cell, "not small random writes");
        }
        let Some(cell) = random.last() else { return };
        let all = random.iter().filter_map(|cell| cell.bytes).fold(0, u64::saturating_add);
        match volume(outcome) {
            Some(bytes) if bytes <= all as f64 => {
                self.cells.retain(|cell| cell.column != Column::Burst);
                self.cells.push(Cell::burst(bytes));
                // Where the map of a card covers more than a part of it, so does the rate.
                self.burst_bytes = cell.range_bytes.unwrap_or(all.saturating_mul(BURST_ROOM));
            }
            Some(_) => self.leave_out("burst", cell, "the rate falls after more than was written"),
            None => self.leave_out("burst", cell, "the rate does not fall"),
        }
    }

    fn take_requests(&mut self, outcome: &Outcome) {
        for cell in &outcome.measurements {
            match requests(outcome, cell) {
                Ok((requests, kib)) => {
                    self.take_figures(requests, kib, cell);
                    let extent = Extent { moved_bytes: cell.bytes, range_bytes: cell.range_bytes };
                    self.extents.insert((requests, kib), extent);
                }
                Err(why) => self.leave_out(&outcome.suite, cell, why),
            }
        }
        let is_new = |cell: &&Measurement| is_aged(outcome, cell).is_ok_and(|is_aged| !is_aged);
        let of_range = outcome.measurements.iter().filter(is_new).filter_map(|cell| cell.bytes).max();
        self.range_bytes = self.range_bytes.max(of_range.unwrap_or(0));
    }

    fn take_figures(&mut self, requests: Requests, kib: u64, cell: &Measurement) {
        let latency = if requests.is_write { &cell.write_us } else { &cell.read_us };
        let all = [
            (Figure::Rate, Some((kib << 10) as f64 / cell.mb_per_s)),
            (Figure::P50, latency.as_ref().map(|latency| latency.p50)),
            (Figure::P90, latency.as_ref().map(|latency| latency.p90)),
            (Figure::P99, latency.as_ref().map(|latency| latency.p99)),
        ];
        // Percentiles say something new of random writes only.
        let figures = if requests.is_write && requests.is_random { &all[..] } else { &all[..1] };
        for (figure, us) in figures {
            let column = Column::Requests(Requests { figure: *figure, ..requests });
            let Some(us) = us.filter(|us| *us > 0.0) else { continue };
            // The last of several rounds is the most settled one.
            match self.cells.iter_mut().find(|known| (known.column, known.kib) == (column, kib)) {
                Some(known) => known.us = us,
                None => self.cells.push(Cell { column, kib, us }),
            }
        }
    }
}

fn has_no_speed(cell: &Measurement) -> bool {
    cell.mb_per_s.is_nan() || cell.mb_per_s <= 0.0
}
