//! A cell: a suite's measurement that the simulator can repeat, by what was done and the size of a request.

use std::fmt;

use serde::{Serialize, Serializer};

/// What a cell is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// iozone: the first write of a file.
    Write,
    /// iozone: the second.
    Rewrite,
    /// iozone: the first read.
    Read,
    /// iozone: the second.
    Reread,
    /// iozone: every record once, in random order.
    RandomRead,
    /// iozone: the same, written.
    RandomWrite,
    /// flashbench -O: allocation units filled in rotation.
    OpenUnits {
        /// How many.
        units: u16,
        /// The places in each come in random order.
        is_random: bool,
    },
    /// The suite `burst`: what random writes of this size write before their rate falls, on a trimmed card. Where
    /// others have a speed it has this volume.
    Burst,
    /// Requests of other tools and suites.
    Requests(Requests),
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requests {
    /// The card holds random data everywhere, part of it overwritten.
    pub is_aged: bool,
    /// Writes, or reads.
    pub is_write: bool,
    /// In random order, or one after the other.
    pub is_random: bool,
    /// Outstanding.
    pub depth: u16,
    /// Which of their times.
    pub figure: Figure,
}

/// One of the times of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// The time of the run over their number.
    Rate,
    /// The median latency.
    P50,
    /// The latency that nine of ten do not exceed.
    P90,
    /// The latency that 99 of 100 do not exceed.
    P99,
}

impl Column {
    /// Those of iozone, in the order in which a run measures them.
    pub const IOZONE: [Self; 6] =
        [Self::Write, Self::Rewrite, Self::Read, Self::Reread, Self::RandomRead, Self::RandomWrite];

    /// The column of iozone's table, as iozone and the suite name it.
    pub(crate) fn of_iozone(name: &str) -> Option<Self> {
        Self::IOZONE.into_iter().find(|column| column.to_string() == name)
    }

    /// Whether nothing is written.
    pub(crate) fn is_read(self) -> bool {
        match self {
            Self::Read | Self::Reread | Self::RandomRead => true,
            Self::Requests(requests) => !requests.is_write,
            _ => false,
        }
    }

    /// Whether it is one of iozone's.
    pub fn is_iozone(self) -> bool {
        Self::IOZONE.contains(&self)
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let random = |is_random: bool| if is_random { "random " } else { "" };
        match self {
            Self::Write => f.write_str("write"),
            Self::Rewrite => f.write_str("rewrite"),
            Self::Read => f.write_str("read"),
            Self::Reread => f.write_str("reread"),
            Self::RandomRead => f.write_str("random read"),
            Self::RandomWrite => f.write_str("random write"),
            Self::OpenUnits { units, is_random } => {
                write!(f, "{}{units} open unit{}", random(*is_random), if *units == 1 { "" } else { "s" })
            }
            Self::Burst => f.write_str("burst of random writes"),
            Self::Requests(requests) => requests.fmt(f),
        }
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = if self.is_write { "writes" } else { "reads" };
        let order = if self.is_random { "random" } else { "sequential" };
        let aged = if self.is_aged { "aged " } else { "" };
        write!(f, "{aged}{order} {op} at {}", self.depth)?;
        match self.figure {
            Figure::Rate => Ok(()),
            Figure::P50 => f.write_str(" p50"),
            Figure::P90 => f.write_str(" p90"),
            Figure::P99 => f.write_str(" p99"),
        }
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_string().replace(' ', "_"))
    }
}

/// A measured or simulated cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// What was done.
    pub column: Column,
    /// The size of a request. Unit: KiB.
    pub kib: u64,
    /// The time of a request. Unit: microseconds.
    pub us: f64,
}

/// Requests of the suite `burst` that are repeated. Unit: KiB.
pub(crate) const BURST_KIB: u64 = 4;

impl Cell {
    /// Of [`Column::Burst`]: its volume takes the place of a speed. Unit: bytes, in place of bytes a second.
    pub(crate) fn burst(bytes: f64) -> Self {
        Self { column: Column::Burst, kib: BURST_KIB, us: (BURST_KIB << 10) as f64 / bytes * 1e6 }
    }

    /// Unit: KiB a second.
    pub fn kib_per_s(&self) -> f64 {
        self.kib as f64 * 1e6 / self.us
    }
}

/// The time of a cell, if there is one. Unit: microseconds.
pub(crate) fn time(cells: &[Cell], column: Column, kib: u64) -> Option<f64> {
    cells.iter().find(|cell| (cell.column, cell.kib) == (column, kib)).map(|cell| cell.us)
}

/// The record sizes of iozone's cells. Unit: KiB.
pub(crate) fn records(cells: &[Cell]) -> Vec<u64> {
    let of_iozone = cells.iter().filter(|cell| cell.column.is_iozone());
    let mut records: Vec<u64> = of_iozone.map(|cell| cell.kib).collect();
    records.sort_unstable();
    records.dedup();
    records
}
