//! The continuous parameters of cards that map pages.

use crate::least_squares::Reach;

/// A continuous parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) what: &'static str,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Of its difference, as a share.
    pub(crate) step: f64,
    /// Reads (marked), writes, or both.
    pub(crate) reach: Reach,
}

/// Indices of [`PARAMETERS`].
pub(crate) mod index {
    pub(crate) const BUS: usize = 0;
    pub(crate) const READ: usize = 1;
    pub(crate) const WRITE: usize = 2;
    pub(crate) const PROGRAM: usize = 3;
    pub(crate) const SMALL: usize = 4;
    pub(crate) const LOG: usize = 5;
    pub(crate) const SMALL_MISSING: usize = 6;
    pub(crate) const MISSING: usize = 7;
    pub(crate) const COMMIT: usize = 8;
    pub(crate) const MERGE: usize = 9;
    pub(crate) const DEBT: usize = 10;
    pub(crate) const SENSE: usize = 11;
    pub(crate) const AHEAD: usize = 12;
    pub(crate) const CHANNEL: usize = 13;
    pub(crate) const READ_MISSING: usize = 14;
    pub(crate) const HOST_READ: usize = 15;
    pub(crate) const HOST_WRITE: usize = 16;
    pub(crate) const HOST_KIB: usize = 17;
    pub(crate) const LOG_SIZE: usize = 18;
    pub(crate) const OVER_PROVISIONING: usize = 19;
}

pub(crate) const fn parameter(
    name: &'static str,
    unit: &'static str,
    what: &'static str,
    (low, high, step): (f64, f64, f64),
    reach: Reach,
) -> Parameter {
    Parameter { name, unit, what, low, high, step, reach }
}

const READS: Reach = Reach::Marked;
const WRITES: Reach = Reach::Unmarked;
const BOTH: Reach = Reach::All;

/// The same for every card.
pub(crate) const PARAMETERS: [Parameter; 20] = [
    parameter("bus", "us/KiB", "data on the bus", (4.0, 200.0, 0.01), BOTH),
    parameter("read_overhead", "us", "firmware time of a read", (1.0, 20_000.0, 0.03), READS),
    parameter("write_overhead", "us", "firmware time of a write", (1.0, 50_000.0, 0.03), WRITES),
    parameter("program", "us/KiB", "program of the mapped area", (1.0, 1000.0, 0.02), WRITES),
    parameter("small_write_overhead", "us", "firmware time of a write to the log", (1.0, 200_000.0, 0.03), WRITES),
    parameter(
        "log_program",
        "us/KiB",
        "program of the log, at most that of the mapped area",
        (1.0, 5000.0, 0.05),
        WRITES,
    ),
    parameter(
        "small_write_missing",
        "us/KiB",
        "what each missing KiB adds to a write to the log",
        (1.0, 20_000.0, 0.1),
        WRITES,
    ),
    parameter("missing", "us/KiB", "what each missing KiB adds to another write", (1.0, 20_000.0, 0.1), WRITES),
    parameter("commit", "us", "flash time for the map after a write", (1.0, 20_000.0, 0.05), WRITES),
    parameter("merge_unit", "KiB", "the merge unit", (4.0, 32_768.0, 0.1), WRITES),
    parameter("debt", "%", "pages folded beside each hundred that bypass the log", (1.0, 900.0, 0.3), WRITES),
    parameter("sense", "us", "tR", (2.0, 900.0, 0.1), BOTH),
    parameter("read_ahead", "KiB", "read ahead", (4.0, 1024.0, 0.2), READS),
    parameter("channel", "us/KiB", "a page over the channel", (0.5, 150.0, 0.05), BOTH),
    parameter("read_missing", "us/KiB", "what each missing KiB adds to a read", (0.1, 2000.0, 0.2), READS),
    parameter("host_read", "us", "the host's time of a read", (1.0, 5000.0, 0.1), READS),
    parameter("host_write", "us", "the host's time of a write", (1.0, 20_000.0, 0.1), WRITES),
    parameter("host_mapping", "us/KiB", "what each KiB adds at the host", (0.01, 20.0, 0.2), BOTH),
    parameter("log", "MiB", "the log", (16.0, 800.0, 0.15), WRITES),
    parameter("over_provisioning", "%", "flash beyond the user area, of that", (2.0, 60.0, 0.1), BOTH),
];

/// The same for cards whose small writes fill a log of sectors: none of these is incomplete.
pub(crate) const WITH_SECTOR_LOG: [Parameter; 20] = {
    let mut parameters = PARAMETERS;
    parameters[index::SMALL_MISSING] =
        parameter("small_log", "KiB", "small writes until a merge unit is completed", (4.0, 8192.0, 0.1), WRITES);
    parameters
};
