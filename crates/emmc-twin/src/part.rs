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
pub(crate) const PARAMETERS: [Parameter; 19] = [
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
    parameter("log", "MiB", "the log", 32.0, 1600.0, 0.15),
];

/// The kind of firmware: tried, or chosen by ratios of cells; not searched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Firmware {
    /// Writes up to this size go to the log. Unit: KiB.
    pub threshold_kib: u32,
    /// Every read starts a read-ahead.
    pub read_ahead_always: bool,
    /// A page of the flash. Unit: KiB.
    pub page_kib: u32,
    /// Each write completes its merge unit.
    pub merges_each_write: bool,
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
/// Folding that hardly shows. Unit: %.
const LITTLE_DEBT: f64 = 3.0;
/// Planes of the templates.
const PLANES: u32 = 2;
/// Pages of the flash from which a search chooses; it begins with the first. Unit: KiB.
pub(crate) const PAGES_KIB: [u32; 3] = [16, 8, 4];

/// A block of the templates' log: one bit of two a cell, in 256 pages of two planes. Unit: MiB.
const LOG_BLOCK_MIB: f64 = 4.0;
/// Sizes of the log from which a search begins: folded in every pass of the published tables, in every row, and never.
pub(crate) const LOGS_MIB: [f64; 3] = [40.0, 200.0, 1300.0];

/// The firmwares that are tried.
pub(crate) fn firmwares() -> Vec<Firmware> {
    let each = |threshold_kib| {
        [false, true].map(|read_ahead_always| Firmware {
            threshold_kib,
            read_ahead_always,
            page_kib: PAGES_KIB[0],
            merges_each_write: false,
        })
    };
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
        values[index::LOG_SIZE] = LOGS_MIB[1];
        for (value, parameter) in values.iter_mut().zip(&PARAMETERS) {
            *value = value.clamp(parameter.low, parameter.high);
        }
        Self { kind, firmware, values }
    }

    /// The part that a profile was made of; `None` if it was made otherwise, without a log or a measuring host.
    pub(crate) fn of(profile: &Profile) -> Option<Self> {
        let (nand, controller, host) = (&profile.nand, &profile.controller, profile.host?);
        let (slc, cache) = (nand.slc.as_ref()?, profile.ftl.slc_cache?);
        let firmware = Firmware {
            threshold_kib: controller.small_write_bytes >> 10,
            read_ahead_always: controller.read_ahead_always,
            page_kib: nand.page_bytes >> 10,
            merges_each_write: controller.merge_each_write,
        };
        let stripe_kib = f64::from(PLANES * firmware.page_kib);
        let lines = if profile.kind == CardKind::Sd { 4.0 } else { 8.0 };
        let clock_mhz = controller.bus_clock_hz() as f64 / 1e6;
        let mut values = [0.0; PARAMETERS.len()];
        values[index::BUS] = 1024.0 * 8.0 / lines / clock_mhz;
        values[index::READ] = controller.read_overhead_us;
        values[index::WRITE] = controller.write_overhead_us;
        values[index::PROGRAM] = nand.native.program_us.first()? / stripe_kib;
        values[index::SMALL] = controller.small_write_overhead_us;
        values[index::LOG] = slc.program_us.first()? / stripe_kib;
        values[index::SMALL_MISSING] = controller.small_write_missing_us_per_kib;
        values[index::MISSING] = controller.missing_us_per_kib;
        values[index::COMMIT] = controller.commit_us;
        values[index::MERGE] = f64::from(controller.merge_bytes) / 1024.0;
        values[index::DEBT] = f64::from(cache.stream_fold_percent);
        values[index::SENSE] = nand.native.read_us;
        values[index::AHEAD] = f64::from(controller.read_ahead_bytes) / 1024.0;
        values[index::CHANNEL] = 1024.0 / nand.channel_mb_s;
        values[index::READ_MISSING] = controller.read_missing_us_per_kib;
        values[index::HOST_READ] = host.read_us;
        values[index::HOST_WRITE] = host.write_us;
        values[index::HOST_KIB] = host.us_per_kib;
        values[index::LOG_SIZE] = f64::from(cache.blocks) * LOG_BLOCK_MIB;
        for (value, parameter) in values.iter_mut().zip(&PARAMETERS) {
            *value = value.clamp(parameter.low, parameter.high);
        }
        Some(Self { kind: profile.kind, firmware, values })
    }

    /// The same with other logarithms, kept within the bounds.
    pub(crate) fn at(&self, logarithms: &[f64]) -> Self {
        let mut part = self.clone();
        for ((value, logarithm), parameter) in part.values.iter_mut().zip(logarithms).zip(&PARAMETERS) {
            *value = logarithm.exp().clamp(parameter.low, parameter.high);
        }
        part
    }

    /// The same with another log.
    pub(crate) fn with_log(mut self, mib: f64) -> Self {
        self.values[index::LOG_SIZE] = mib;
        self
    }

    /// The same with other pages.
    pub(crate) fn with_pages(mut self, kib: u32) -> Self {
        self.firmware.page_kib = kib;
        self
    }

    /// The same with a unit that each write completes, and little debt: either explains slow writes beyond the small
    /// ones.
    pub(crate) fn merging_each_write(mut self) -> Self {
        self.firmware.merges_each_write = true;
        self.values[index::DEBT] = self.values[index::DEBT].min(LITTLE_DEBT);
        self
    }

    /// Whether a lone write copies a megabyte or more.
    pub(crate) fn merges_megabytes(&self) -> bool {
        self.values[index::MERGE] >= 1024.0
    }

    /// Whether a parameter plays a role: only an SD card's template has a buffer to commit from.
    pub(crate) fn uses(&self, parameter: &Parameter) -> bool {
        self.kind == CardKind::Sd || parameter.name != PARAMETERS[index::COMMIT].name
    }

    /// The profile.
    ///
    /// Errors: values that break a rule of profiles.
    pub(crate) fn profile(&self) -> Result<Profile, ProfileError> {
        self.with_share_of_log(1.0)
    }

    /// The profile with a share of its log: a pass over the same share of the file leaves it as full.
    ///
    /// Errors: values that break a rule of profiles.
    pub(crate) fn with_share_of_log(&self, share: f64) -> Result<Profile, ProfileError> {
        let template = match self.kind {
            CardKind::Sd => include_str!("../template/sd.toml"),
            _ => include_str!("../template/emmc.toml"),
        };
        let mut profile = Profile::from_toml(template)?;
        let value = |index: usize| self.values[index];
        let bytes = |kib: f64| ((kib / 4.0).round().max(1.0) as u32) * 4096;
        let (nand, controller) = (&mut profile.nand, &mut profile.controller);
        // The size of a block stays.
        nand.pages_per_block *= nand.page_bytes / (self.firmware.page_kib << 10);
        nand.page_bytes = self.firmware.page_kib << 10;
        let stripe_kib = f64::from(PLANES * self.firmware.page_kib);
        nand.native.read_us = value(index::SENSE).max(1.0);
        nand.native.program_us = vec![(value(index::PROGRAM) * stripe_kib).clamp(10.0, 100_000.0)];
        nand.channel_mb_s = 1024.0 / value(index::CHANNEL);
        if let Some(slc) = &mut nand.slc {
            slc.read_us = nand.native.read_us;
            slc.program_us = vec![(value(index::LOG) * stripe_kib).clamp(10.0, 100_000.0)];
        }
        if let Some(cache) = &mut profile.ftl.slc_cache {
            cache.stream_fold_percent = value(index::DEBT).round() as u32;
            let blocks = (value(index::LOG_SIZE) * share / LOG_BLOCK_MIB).round() as u32;
            cache.blocks = blocks.max(2 * cache.low_blocks);
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
        controller.merge_each_write = self.firmware.merges_each_write;
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
