//! The parameters of a part, their start from the physics, and the profile that they make.

use emmc_card::profile::{Controller, MeasuringHost, Profile, ProfileError};
use emmc_regs::CardKind;

use crate::cell::{Cell, Column, Requests, records, time};
use crate::known::{Known, mean};
use crate::parameters::WITH_SECTOR_LOG;
pub(crate) use crate::parameters::{PARAMETERS, Parameter, index, parameter};
use crate::segment;
pub use firmware::Firmware;
#[cfg(test)]
pub(crate) use firmware::firmwares;
pub(crate) use firmware::plausible;

mod firmware;
mod variants;

/// A part: its firmware, and the value of each parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) kind: CardKind,
    pub(crate) firmware: Firmware,
    /// In the order of [`Part::parameters`].
    pub(crate) values: Vec<f64>,
    /// What is known of it.
    pub(crate) known: Known,
}

/// The host's own time of a request where a search begins: a board of four cores. Unit: microseconds.
const HOST_US: f64 = 30.0;
/// Program of one bit a cell: 200 to 300 us for a page of 16 KiB on two planes. Unit: microseconds a KiB.
const LOG_PROGRAM: f64 = 8.0;
/// Over-provisioning of the templates. Unit: %.
const OVER_PROVISIONING_PERCENT: f64 = 7.0;
/// Planes of the templates.
const PLANES: u32 = 2;
/// Pages of the flash from which a search chooses; it begins with the first. Unit: KiB.
pub(crate) const PAGES_KIB: [u32; 3] = [16, 8, 4];

/// Largest commands of a host from which a search chooses; it begins with the first: sdhci.c, and dw_mmc.c with
/// descriptors of 32 bits. Unit: KiB.
pub(crate) const COMMANDS_KIB: [u32; 2] = [512, 1024];

/// A page that the log of small writes maps on cards that keep pages. Unit: KiB.
const KEPT_PAGE_KIB: u32 = 16;
/// A block of the templates' log: 256 pages of 16 KiB on two planes, of which one bit of two a cell is used. Unit: MiB.
const LOG_BLOCK_MIB: f64 = 2.0;
/// The log of a start: as large as the files of the published tables, which fold it in every row.
const LOG_MIB: f64 = 100.0;

/// The merge unit of a card that merges allocation units, if no cell shows it. Unit: KiB.
pub(crate) const ALLOCATION_KIB: f64 = 2048.0;

/// Sequential reads.
pub(crate) const READS: [Column; 2] = [Column::Read, Column::Reread];

/// The time of each KiB at the largest record of some columns: the shortest, if there is one. Unit: microseconds.
pub(crate) fn rate(cells: &[Cell], columns: &[Column]) -> Option<f64> {
    let of_columns = || cells.iter().filter(|cell| columns.contains(&cell.column));
    let largest = of_columns().map(|cell| cell.kib).max()?;
    of_columns().filter(|cell| cell.kib == largest).map(|cell| cell.us / cell.kib as f64).reduce(f64::min)
}

impl Part {
    /// The start of a search: each parameter from the cells that show it most plainly.
    ///
    /// The time of a small sequential write is the firmware's, or that of the commit to flash: `commits` chooses which
    /// of the two the search begins with, as neither has a slope where the other one is longer.
    pub(crate) fn start(kind: CardKind, firmware: Firmware, commits: bool, (cells, known): (&[Cell], &Known)) -> Self {
        let records = records(cells);
        let [host_read, host_write] =
            known.host.map_or([HOST_US; 2], |host| [host.read_us, host.write_us].map(|us| us.max(1.0)));
        let shortest = |columns: &[Column]| {
            let times = cells.iter().filter(|cell| columns.contains(&cell.column)).map(|cell| cell.us);
            times.fold(f64::INFINITY, f64::min)
        };
        let rate = |columns: &[Column]| rate(cells, columns).unwrap_or(f64::INFINITY);
        let bus = 0.97 * rate(&READS);
        let program = rate(&[Column::Write, Column::Rewrite]).max(bus);
        let read = shortest(&READS);
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
        let unit_kib = merge.unwrap_or(if firmware.merges_allocation_units() { ALLOCATION_KIB } else { 64.0 });
        // If small writes fill a log of sectors, each KiB adds its share of a merge.
        let short = |kib| random(kib).or_else(|| time(cells, Column::Write, kib));
        let per_kib = short(1).zip(short(2)).map_or(1.0, |(one, two)| (two - one).max(1.0));
        let small = match firmware.logs_sectors {
            true => short(1).map_or(small, |one| one - per_kib),
            false => small,
        };
        let mut values = vec![0.0; PARAMETERS.len()];
        values[index::BUS] = bus;
        // Without the host's time a share of the shortest read is the card's own.
        values[index::READ] = match known.host {
            Some(_) => (read - host_read - 4.0 * bus - sense.max(20.0)).max(0.3 * read),
            None => 0.7 * read,
        };
        let [firmware_share, commit_share] = if commits { [0.4, 0.9] } else { [1.0, 0.5] };
        // A card without a buffer for writes answers after the program, most often that of the log.
        let log = (0.5 * program).min(LOG_PROGRAM);
        let waited = if kind == CardKind::Sd { 0.0 } else { log * firmware.stripe_kib() };
        let firmware_time = |time: f64| {
            let all = time - host_write - 4.0 * bus;
            (all - waited).max(0.3 * all).max(10.0)
        };
        values[index::WRITE] = (firmware_share * firmware_time(write)).max(10.0);
        values[index::PROGRAM] = program;
        values[index::SMALL] = firmware_time(small);
        values[index::LOG] = log;
        values[index::SMALL_MISSING] = match firmware.logs_sectors {
            true => unit_kib * program / per_kib,
            false => missing(random(1), random(4)),
        };
        values[index::MISSING] = missing(sequential(1), sequential(4));
        values[index::COMMIT] = commit_share * write;
        values[index::MERGE] = unit_kib;
        values[index::DEBT] = debt.map_or(5.0, |(first, second)| (first / second - 1.0) * 100.0).max(3.0);
        values[index::SENSE] = sense.max(20.0);
        values[index::AHEAD] = 32.0;
        values[index::CHANNEL] = (0.5 * bus).max(2.0);
        values[index::READ_MISSING] = 0.5 * bus;
        values[index::HOST_READ] = HOST_US;
        values[index::HOST_WRITE] = 2.0 * HOST_US;
        values[index::HOST_KIB] = 0.2;
        values[index::LOG_SIZE] = LOG_MIB;
        values[index::OVER_PROVISIONING] = OVER_PROVISIONING_PERCENT;
        for (value, parameter) in values.iter_mut().zip(&PARAMETERS) {
            *value = value.clamp(parameter.low, parameter.high);
        }
        Self { kind, firmware, values, known: Known::default() }.knowing(known)
    }

    /// The part that a profile was made of; `None` if it was made otherwise, without a log or a measuring host.
    pub(crate) fn of(profile: &Profile) -> Option<Self> {
        let (nand, controller, host) = (&profile.nand, &profile.controller, profile.host?);
        let (slc, cache) = (nand.slc.as_ref()?, profile.ftl.slc_cache?);
        let firmware = Firmware {
            threshold_kib: controller.small_write_bytes >> 10,
            read_ahead_always: controller.read_ahead_always,
            page_kib: nand.page_bytes >> 10,
            channels: nand.channels,
            merges_each_write: controller.merge_each_write,
            logs_sectors: controller.small_log_bytes > 0,
            keeps_pages: controller.small_page_bytes > 0,
            command_kib: profile.host.unwrap_or_default().command_kib,
            segment: None,
        };
        let stripe_kib = firmware.stripe_kib();
        let bus = controller.bus();
        let bits = f64::from(bus.width()) * if bus.ddr() { 2.0 } else { 1.0 };
        let clock_mhz = controller.bus_clock_hz() as f64 / 1e6;
        let mut values = vec![0.0; PARAMETERS.len()];
        values[index::BUS] = 1024.0 * 8.0 / bits / clock_mhz;
        values[index::READ] = controller.read_overhead_us;
        values[index::WRITE] = controller.write_overhead_us;
        values[index::PROGRAM] = mean(&nand.native.program_us) / stripe_kib;
        values[index::SMALL] = controller.small_write_overhead_us;
        values[index::LOG] = slc.program_us.first()? / stripe_kib;
        values[index::SMALL_MISSING] = match firmware.logs_sectors {
            true => f64::from(controller.small_log_bytes) / 1024.0,
            false => controller.small_write_missing_us_per_kib,
        };
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
        values[index::OVER_PROVISIONING] = nand.over_provisioning * 100.0;
        for (value, parameter) in values.iter_mut().zip(&PARAMETERS) {
            *value = value.clamp(parameter.low, parameter.high);
        }
        Some(Self { kind: profile.kind, firmware, values, known: Known::default() })
    }

    /// The same with other logarithms, kept within the bounds.
    pub(crate) fn at(&self, logarithms: &[f64]) -> Self {
        let mut part = self.clone();
        for ((value, logarithm), parameter) in part.values.iter_mut().zip(logarithms).zip(self.parameters()) {
            *value = logarithm.exp().clamp(parameter.low, parameter.high);
        }
        part
    }

    /// Its parameters.
    pub(crate) fn parameters(&self) -> &'static [Parameter] {
        match self.firmware {
            Firmware { segment: Some(_), .. } => &segment::PARAMETERS,
            Firmware { logs_sectors: true, .. } => &WITH_SECTOR_LOG,
            _ => &PARAMETERS,
        }
    }

    /// Whether a parameter plays a role: only an SD card's template has a buffer to commit from, and only a card
    /// without free space shows its over-provisioning.
    pub(crate) fn uses(&self, parameter: &Parameter, cells: &[Cell]) -> bool {
        let requests = |wanted: &dyn Fn(&Requests) -> bool| {
            cells.iter().any(|cell| matches!(&cell.column, Column::Requests(requests) if wanted(requests)))
        };
        match parameter.name {
            "host_read" | "host_write" | "host_mapping" if self.known.host.is_some() => false,
            "commit" => self.kind == CardKind::Sd,
            "over_provisioning" => requests(&|requests| requests.is_aged),
            "read_overhead" if self.firmware.segment.is_some() => requests(&|requests| !requests.is_write),
            _ => true,
        }
    }

    /// The profile.
    ///
    /// Errors: values that break a rule of profiles.
    pub(crate) fn profile(&self) -> Result<Profile, ProfileError> {
        let mut profile = self.with_share_of_log(1.0)?;
        self.known.set_sizes(&mut profile);
        profile.check()?;
        Ok(profile)
    }

    /// The same with what is known.
    pub(crate) fn knowing(mut self, known: &Known) -> Self {
        self.known = known.clone();
        self.firmware.command_kib = known.host.map_or(self.firmware.command_kib, |host| host.command_kib);
        if let (Some(base), None) = (&known.base, self.firmware.segment) {
            let Parameter { low, high, .. } = PARAMETERS[index::OVER_PROVISIONING];
            self.values[index::OVER_PROVISIONING] = (base.nand.over_provisioning * 100.0).clamp(low, high);
        }
        let places = [index::HOST_READ, index::HOST_WRITE, index::HOST_KIB];
        if let (Some(host), None) = (known.host, self.firmware.segment) {
            for (place, value) in places.into_iter().zip([host.read_us, host.write_us, host.us_per_kib]) {
                self.values[place] = value.clamp(PARAMETERS[place].low, PARAMETERS[place].high);
            }
        }
        self
    }

    /// The profile with a share of its log: a pass over the same share of the file leaves it as full.
    ///
    /// Errors: values that break a rule of profiles.
    pub(crate) fn with_share_of_log(&self, share: f64) -> Result<Profile, ProfileError> {
        if let Some(segment) = &self.firmware.segment {
            return segment::profile(self, segment);
        }
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
        nand.over_provisioning = value(index::OVER_PROVISIONING) / 100.0;
        (nand.channels, nand.dies) = (self.firmware.channels, self.firmware.channels);
        let stripe_kib = self.firmware.stripe_kib();
        nand.native.read_us = value(index::SENSE).max(1.0);
        nand.native.program_us = vec![(value(index::PROGRAM) * stripe_kib).clamp(10.0, 100_000.0)];
        nand.channel_mb_s = 1024.0 / value(index::CHANNEL);
        if let Some(slc) = &mut nand.slc {
            slc.read_us = nand.native.read_us;
            // One bit a cell is never slower.
            let slowest = nand.native.program_us[0];
            slc.program_us = vec![(value(index::LOG) * stripe_kib).clamp(10.0, slowest)];
        }
        if let Some(cache) = &mut profile.ftl.slc_cache {
            cache.stream_fold_percent = value(index::DEBT).round() as u32;
            let blocks = (value(index::LOG_SIZE) * share / LOG_BLOCK_MIB).round() as u32;
            cache.blocks = blocks.max(2 * cache.low_blocks);
            // What is no small write to the firmware does not go to the log: the next power of two.
            cache.bypass_bytes = cache.bypass_bytes.min(self.firmware.threshold_kib << 11);
        }
        controller.read_overhead_us = value(index::READ);
        controller.read_missing_us_per_kib = value(index::READ_MISSING);
        controller.write_overhead_us = value(index::WRITE);
        controller.small_write_bytes = self.firmware.threshold_kib << 10;
        controller.small_write_overhead_us = value(index::SMALL);
        match self.firmware.logs_sectors {
            true => controller.small_log_bytes = (value(index::SMALL_MISSING) * 2.0).round() as u32 * 512,
            false => controller.small_write_missing_us_per_kib = value(index::SMALL_MISSING),
        }
        controller.small_page_bytes = if self.firmware.keeps_pages { KEPT_PAGE_KIB << 10 } else { 0 };
        controller.missing_us_per_kib = value(index::MISSING);
        if controller.write_buffer_bytes > 0 {
            controller.commit_us = value(index::COMMIT);
        }
        controller.merge_each_write = self.firmware.merges_each_write;
        controller.merge_bytes = bytes(value(index::MERGE));
        controller.read_ahead_bytes = bytes(value(index::AHEAD)).min(controller.buffer_bytes);
        controller.read_ahead_always = self.firmware.read_ahead_always;
        profile.host = Some(self.known.host.unwrap_or(MeasuringHost {
            read_us: value(index::HOST_READ),
            write_us: value(index::HOST_WRITE),
            us_per_kib: value(index::HOST_KIB),
            command_kib: self.firmware.command_kib,
        }));
        self.known.set_times(&mut profile);
        set_clock(&mut profile.controller, value(index::BUS));
        profile.check()?;
        Ok(profile)
    }
}

/// The clock at which a KiB takes this long on the bus, at most the mode's. Unit: microseconds.
pub(crate) fn set_clock(controller: &mut Controller, us_per_kib: f64) {
    let bus = controller.bus();
    let bits = f64::from(bus.width()) * if bus.ddr() { 2.0 } else { 1.0 };
    let clock = 1024.0 * 8.0 / bits / us_per_kib;
    controller.bus_clock_mhz = Some(clock.min(bus.clock_hz() as f64 / 1e6));
}

#[cfg(test)]
mod tests {
    use emmc_workload::reference::references;

    use super::*;
    use crate::measured::Measured;

    /// Every start, for every published table, makes a card of both kinds that keeps the rules.
    #[test]
    fn every_start_makes_a_profile() {
        let mut tables = 0;
        let all = references().into_iter().filter_map(|reference| Measured::of(&reference.result()).ok());
        for table in all.filter(|measured| !records(&measured.cells).is_empty()) {
            tables += 1;
            for (kind, firmware) in [CardKind::Sd, CardKind::Emmc]
                .into_iter()
                .flat_map(|kind| firmwares().into_iter().map(move |one| (kind, one)))
            {
                for commits in [false, true] {
                    let part = Part::start(kind, firmware, commits, (&table.cells, &Known::default()));
                    part.profile().unwrap_or_else(|error| panic!("{part:?}: {error}"));
                }
            }
        }
        assert_eq!(tables, 9);
    }
}
