//! The parameters of a part, their start from the physics, and the profile that they make.

use emmc_card::profile::{MeasuringHost, Profile, ProfileError};
use emmc_regs::CardKind;
use serde::Serialize;

use crate::table::{Cell, Column, time};

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
}

/// Indices of [`PARAMETERS`].
mod index {
    pub(super) const BUS: usize = 0;
    pub(super) const READ: usize = 1;
    pub(super) const WRITE: usize = 2;
    pub(super) const PROGRAM: usize = 3;
    pub(super) const SMALL: usize = 4;
    pub(super) const LOG: usize = 5;
    pub(super) const SMALL_MISSING: usize = 6;
    pub(super) const MISSING: usize = 7;
    pub(super) const COMMIT: usize = 8;
    pub(super) const MERGE: usize = 9;
    pub(super) const DEBT: usize = 10;
    pub(super) const SENSE: usize = 11;
    pub(super) const AHEAD: usize = 12;
    pub(super) const CHANNEL: usize = 13;
    pub(super) const READ_MISSING: usize = 14;
    pub(super) const HOST_READ: usize = 15;
    pub(super) const HOST_WRITE: usize = 16;
    pub(super) const HOST_KIB: usize = 17;
}

const fn parameter(
    name: &'static str,
    unit: &'static str,
    what: &'static str,
    low: f64,
    high: f64,
    step: f64,
) -> Parameter {
    Parameter { name, unit, what, low, high, step }
}

/// The same for every card.
pub(crate) const PARAMETERS: [Parameter; 18] = [
    parameter("bus", "us/KiB", "data on the bus", 4.0, 200.0, 0.01),
    parameter("read_overhead", "us", "firmware time of a read", 1.0, 20_000.0, 0.03),
    parameter("write_overhead", "us", "firmware time of a write", 1.0, 50_000.0, 0.03),
    parameter("program", "us/KiB", "program of the mapped area", 1.0, 1000.0, 0.02),
    parameter("small_write_overhead", "us", "firmware time of a write to the log", 1.0, 200_000.0, 0.03),
    parameter("log_program", "us/KiB", "program of the log, folding included", 1.0, 5000.0, 0.05),
    parameter("small_write_missing", "us/KiB", "what each missing KiB adds to a write to the log", 1.0, 20_000.0, 0.1),
    parameter("missing", "us/KiB", "what each missing KiB adds to another write", 1.0, 20_000.0, 0.1),
    parameter("commit", "us", "flash time for the map after a write", 1.0, 20_000.0, 0.05),
    parameter("merge_unit", "KiB", "the merge unit", 4.0, 32_768.0, 0.1),
    parameter("debt", "%", "pages folded beside each hundred that bypass the log", 1.0, 900.0, 0.3),
    parameter("sense", "us", "tR", 2.0, 900.0, 0.1),
    parameter("read_ahead", "KiB", "read ahead", 4.0, 1024.0, 0.2),
    parameter("channel", "us/KiB", "a page over the channel", 0.5, 150.0, 0.05),
    parameter("read_missing", "us/KiB", "what each missing KiB adds to a read", 0.1, 2000.0, 0.2),
    parameter("host_read", "us", "the host's time of a read", 1.0, 5000.0, 0.1),
    parameter("host_write", "us", "the host's time of a write", 1.0, 20_000.0, 0.1),
    parameter("host_mapping", "us/KiB", "what each KiB adds at the host", 0.01, 20.0, 0.2),
];

/// The kind of firmware: tried, or chosen by ratios of cells; not searched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Firmware {
    /// Writes up to this size go to the log. Unit: KiB.
    pub threshold_kib: u32,
    /// Every read starts a read-ahead.
    pub read_ahead_always: bool,
}

/// A part: its firmware, and the value of each parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) kind: CardKind,
    pub(crate) firmware: Firmware,
    pub(crate) values: [f64; PARAMETERS.len()],
}

/// The host's own time of a request where a search begins: a board of four cores. Unit: microseconds.
const HOST_US: f64 = 30.0;
/// A stripe of the templates: two planes of 16 KiB. Unit: KiB.
const STRIPE_KIB: f64 = 32.0;

/// The firmwares that are tried.
pub(crate) fn firmwares() -> Vec<Firmware> {
    let each = |threshold_kib| [false, true].map(|read_ahead_always| Firmware { threshold_kib, read_ahead_always });
    [8, 64].into_iter().flat_map(each).collect()
}

impl Part {
    /// The start of a search: each parameter from the cells that show it most plainly.
    ///
    /// The time of a small sequential write is the firmware's, or that of the commit to flash: `commits` chooses which
    /// of the two the search begins with, as neither has a slope where the other one is longer.
    pub(crate) fn start(kind: CardKind, firmware: Firmware, commits: bool, cells: &[Cell]) -> Self {
        let records: Vec<u64> = {
            let mut records: Vec<u64> = cells.iter().map(|cell| cell.kib).collect();
            records.dedup();
            records
        };
        let slope = |columns: &[Column]| {
            let rate = |cell: &&Cell| columns.contains(&cell.column);
            let largest = cells.iter().filter(rate).map(|cell| cell.kib).max().unwrap_or(1);
            let rates =
                cells.iter().filter(rate).filter(|cell| cell.kib == largest).map(|cell| cell.us / cell.kib as f64);
            rates.fold(f64::INFINITY, f64::min)
        };
        let shortest = |columns: &[Column]| {
            let times = cells.iter().filter(|cell| columns.contains(&cell.column)).map(|cell| cell.us);
            times.fold(f64::INFINITY, f64::min)
        };
        let bus = 0.97 * slope(&[Column::Read, Column::Reread]);
        let program = slope(&[Column::Write, Column::Rewrite]).max(bus);
        let read = shortest(&[Column::Read, Column::Reread]);
        let sequential = |kib| time(cells, Column::Rewrite, kib).or_else(|| time(cells, Column::Write, kib));
        let small_records = || records.iter().copied().filter(|kib| *kib <= 16);
        let mean = |times: Vec<f64>| times.iter().sum::<f64>() / times.len().max(1) as f64;
        let writes: Vec<f64> = small_records().filter_map(sequential).collect();
        let write = if writes.is_empty() { shortest(&[Column::Write, Column::Rewrite]) } else { mean(writes) };
        let random = |kib| time(cells, Column::RandomWrite, kib);
        let small = random(4).or_else(|| small_records().find_map(random)).unwrap_or(write);
        let threshold = u64::from(firmware.threshold_kib);
        let merge = records.iter().copied().filter(|kib| *kib > threshold).find_map(|kib| {
            let extra = random(kib)? - sequential(kib)?;
            Some(kib as f64 + (extra / program).max(0.0))
        });
        let missing =
            |short: Option<f64>, whole: Option<f64>| ((short.zip(whole).map_or(0.0, |(s, w)| s - w)) / 3.0).max(5.0);
        let sense =
            time(cells, Column::RandomRead, 16).zip(time(cells, Column::Reread, 16)).map_or(40.0, |(a, b)| a - b);
        let debt = time(cells, Column::Write, 128).zip(time(cells, Column::Rewrite, 128));
        let mut values = [0.0; PARAMETERS.len()];
        values[index::BUS] = bus;
        values[index::READ] = 0.7 * read;
        let [firmware_share, commit_share] = if commits { [0.4, 0.9] } else { [1.0, 0.5] };
        values[index::WRITE] = (firmware_share * (write - HOST_US - 4.0 * bus)).max(10.0);
        values[index::PROGRAM] = program;
        values[index::SMALL] = (small - HOST_US - 4.0 * bus).max(10.0);
        values[index::LOG] = 0.5 * program;
        values[index::SMALL_MISSING] = missing(random(1), random(4));
        values[index::MISSING] = missing(sequential(1), sequential(4));
        values[index::COMMIT] = commit_share * write;
        values[index::MERGE] = merge.unwrap_or(64.0);
        values[index::DEBT] = debt.map_or(5.0, |(first, second)| (first / second - 1.0) * 100.0).max(3.0);
        values[index::SENSE] = sense.max(20.0);
        values[index::AHEAD] = 32.0;
        values[index::CHANNEL] = (0.5 * bus).max(2.0);
        values[index::READ_MISSING] = 0.5 * bus;
        values[index::HOST_READ] = HOST_US;
        values[index::HOST_WRITE] = 2.0 * HOST_US;
        values[index::HOST_KIB] = 0.2;
        for (value, parameter) in values.iter_mut().zip(&PARAMETERS) {
            *value = value.clamp(parameter.low, parameter.high);
        }
        Self { kind, firmware, values }
    }

    /// The same with other logarithms, kept within the bounds.
    pub(crate) fn at(&self, logarithms: &[f64]) -> Self {
        let mut part = self.clone();
        for ((value, logarithm), parameter) in part.values.iter_mut().zip(logarithms).zip(&PARAMETERS) {
            *value = logarithm.exp().clamp(parameter.low, parameter.high);
        }
        part
    }

    /// Whether a parameter plays a role: only an SD card's template has a buffer to commit from.
    pub(crate) fn uses(&self, parameter: &Parameter) -> bool {
        self.kind == CardKind::Sd || parameter.name != PARAMETERS[index::COMMIT].name
    }

    /// The profile.
    ///
    /// Errors: values that break a rule of profiles.
    pub(crate) fn profile(&self) -> Result<Profile, ProfileError> {
        let template = match self.kind {
            CardKind::Sd => include_str!("../template/sd.toml"),
            _ => include_str!("../template/emmc.toml"),
        };
        let mut profile = Profile::from_toml(template)?;
        let value = |index: usize| self.values[index];
        let bytes = |kib: f64| ((kib / 4.0).round().max(1.0) as u32) * 4096;
        let (nand, controller) = (&mut profile.nand, &mut profile.controller);
        nand.native.read_us = value(index::SENSE).max(1.0);
        nand.native.program_us = vec![(value(index::PROGRAM) * STRIPE_KIB).clamp(10.0, 100_000.0)];
        nand.channel_mb_s = 1024.0 / value(index::CHANNEL);
        if let Some(slc) = &mut nand.slc {
            slc.read_us = nand.native.read_us;
            slc.program_us = vec![(value(index::LOG) * STRIPE_KIB).clamp(10.0, 100_000.0)];
        }
        if let Some(cache) = &mut profile.ftl.slc_cache {
            cache.stream_fold_percent = value(index::DEBT).round() as u32;
        }
        controller.read_overhead_us = value(index::READ);
        controller.read_missing_us_per_kib = value(index::READ_MISSING);
        controller.write_overhead_us = value(index::WRITE);
        controller.small_write_bytes = self.firmware.threshold_kib << 10;
        controller.small_write_overhead_us = value(index::SMALL);
        controller.small_write_missing_us_per_kib = value(index::SMALL_MISSING);
        controller.missing_us_per_kib = value(index::MISSING);
        if controller.write_buffer_bytes > 0 {
            controller.commit_us = value(index::COMMIT);
        }
        controller.merge_bytes = bytes(value(index::MERGE));
        controller.read_ahead_bytes = bytes(value(index::AHEAD)).min(controller.buffer_bytes);
        controller.read_ahead_always = self.firmware.read_ahead_always;
        // Lines of the mode at one bit a clock: SD four, eMMC eight.
        let lines = if self.kind == CardKind::Sd { 4.0 } else { 8.0 };
        let clock = 1024.0 * 8.0 / lines / value(index::BUS);
        controller.bus_clock_mhz = Some(clock.min(controller.bus_max.clock_hz() as f64 / 1e6));
        profile.host = Some(MeasuringHost {
            read_us: value(index::HOST_READ),
            write_us: value(index::HOST_WRITE),
            us_per_kib: value(index::HOST_KIB),
        });
        profile.check()?;
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use emmc_workload::reference::references;

    use super::*;
    use crate::table::cells;

    /// Every start, for every published table, makes a card of both kinds that keeps the rules.
    #[test]
    fn every_start_makes_a_profile() {
        let mut tables = 0;
        for table in references().into_iter().filter_map(|reference| cells(&reference.result()).ok()) {
            tables += 1;
            for (kind, firmware) in [CardKind::Sd, CardKind::Emmc]
                .into_iter()
                .flat_map(|kind| firmwares().into_iter().map(move |one| (kind, one)))
            {
                for commits in [false, true] {
                    let part = Part::start(kind, firmware, commits, &table.cells);
                    part.profile().unwrap_or_else(|error| panic!("{part:?}: {error}"));
                }
            }
        }
        assert_eq!(tables, 9);
    }
}
