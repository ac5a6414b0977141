use emmc_regs::CardKind;

use super::{Checked, Rules};
use crate::profile::BusMode;

/// Longest overhead of a command: a second.
const OVERHEAD_US_MAX: f64 = 1e6;
const BUFFER_MAX: u32 = 1 << 28;
/// A host's largest request.
const SMALL_MAX: u32 = 512 << 10;
/// From a page of memory to 65535 blocks, the most that a command can ask for. Unit: KiB.
const COMMAND_KIB: std::ops::RangeInclusive<u32> = 4..=32_764;
const MERGE_MAX: u32 = 64 << 20;
/// Largest page of the log of small writes. Unit: bytes.
const SMALL_PAGE_MAX: u32 = 64 << 10;
/// All are looked at in each read.
const MAP_SPANS_MAX: u32 = 64;
/// A host's largest packed command: the header's sector has room for 63 entries.
const PACKED_MAX: u8 = 63;

impl Rules<'_> {
    pub(super) fn controller(&self) -> Checked {
        let (controller, nand) = (&self.profile.controller, &self.profile.nand);
        self.range("controller.read_overhead_us", controller.read_overhead_us, 0.0..=OVERHEAD_US_MAX)?;
        self.range("controller.write_overhead_us", controller.write_overhead_us, 0.0..=OVERHEAD_US_MAX)?;
        self.range("controller.time_spread", controller.time_spread, 0.0..=0.5)?;
        self.small_writes()?;
        // A page is programmed from it.
        self.range("controller.buffer_bytes", controller.buffer_bytes, nand.page_bytes..=BUFFER_MAX)?;
        self.multiple("controller.buffer_bytes", controller.buffer_bytes.into(), 512)?;
        self.range("controller.read_ahead_bytes", controller.read_ahead_bytes, 0..=controller.buffer_bytes)?;
        self.multiple("controller.read_ahead_bytes", controller.read_ahead_bytes.into(), 512)?;
        self.read_map()?;
        if let Some(host) = &self.profile.host {
            self.range("host.read_us", host.read_us, 0.0..=OVERHEAD_US_MAX)?;
            self.range("host.write_us", host.write_us, 0.0..=OVERHEAD_US_MAX)?;
            self.range("host.us_per_kib", host.us_per_kib, 0.0..=OVERHEAD_US_MAX)?;
            self.range("host.command_kib", host.command_kib, COMMAND_KIB)?;
            self.multiple("host.command_kib", host.command_kib.into(), 4)?;
        }
        self.bus()?;
        if self.is_sd() { self.sd_features() } else { self.features() }
    }

    /// Both write paths, and the merge unit.
    fn small_writes(&self) -> Checked {
        let (controller, unit_bytes) = (&self.profile.controller, self.profile.ftl.unit_bytes);
        self.range("controller.small_write_bytes", controller.small_write_bytes, 0..=SMALL_MAX)?;
        for (field, micros) in [
            ("controller.small_write_overhead_us", controller.small_write_overhead_us),
            ("controller.small_write_missing_us_per_kib", controller.small_write_missing_us_per_kib),
            ("controller.missing_us_per_kib", controller.missing_us_per_kib),
            ("controller.read_missing_us_per_kib", controller.read_missing_us_per_kib),
            ("controller.commit_us", controller.commit_us),
        ] {
            self.range(field, micros, 0.0..=OVERHEAD_US_MAX)?;
        }
        let has_path = controller.small_write_bytes > 0;
        for (field, set) in [
            ("controller.small_write_overhead_us", controller.small_write_overhead_us > 0.0),
            ("controller.small_write_missing_us_per_kib", controller.small_write_missing_us_per_kib > 0.0),
            ("controller.small_log_bytes", controller.small_log_bytes > 0),
            ("controller.small_page_bytes", controller.small_page_bytes > 0),
        ] {
            self.require(has_path || !set, field, "set", "needs controller.small_write_bytes")?;
        }
        let field = "controller.small_page_bytes";
        self.range(field, controller.small_page_bytes, 0..=SMALL_PAGE_MAX)?;
        self.multiple(field, controller.small_page_bytes.into(), unit_bytes.into())?;
        self.range("controller.merge_bytes", controller.merge_bytes, 0..=MERGE_MAX)?;
        self.multiple("controller.merge_bytes", controller.merge_bytes.into(), unit_bytes.into())?;
        let merges = controller.merge_bytes > 0;
        let (field, rule) = ("controller.small_log_bytes", "needs controller.merge_bytes");
        self.range(field, controller.small_log_bytes, 0..=MERGE_MAX)?;
        self.multiple(field, controller.small_log_bytes.into(), 512)?;
        self.require(merges || controller.small_log_bytes == 0, field, "set", rule)?;
        self.require(
            merges || !controller.merge_each_write,
            "controller.merge_each_write",
            "set",
            "needs controller.merge_bytes",
        )?;
        self.range("controller.write_buffer_bytes", controller.write_buffer_bytes, 0..=BUFFER_MAX)?;
        self.multiple("controller.write_buffer_bytes", controller.write_buffer_bytes.into(), unit_bytes.into())?;
        let commits = controller.commit_us > 0.0;
        let buffered = controller.write_buffer_bytes > 0;
        self.require(buffered || !commits, "controller.commit_us", "set", "needs controller.write_buffer_bytes")
    }

    /// The part of the map that reads load.
    fn read_map(&self) -> Checked {
        let controller = &self.profile.controller;
        self.range("controller.map_load_us", controller.map_load_us, 0.0..=OVERHEAD_US_MAX)?;
        self.multiple("controller.map_span_bytes", controller.map_span_bytes.into(), 512)?;
        self.range("controller.map_spans", controller.map_spans, 0..=MAP_SPANS_MAX)?;
        let loads = controller.map_span_bytes > 0;
        let rule = "needs controller.map_span_bytes";
        self.require(loads || controller.map_load_us == 0.0, "controller.map_load_us", controller.map_load_us, rule)?;
        self.require(loads || controller.map_spans == 0, "controller.map_spans", controller.map_spans, rule)?;
        let rule = "must be at least 1 with controller.map_span_bytes";
        self.require(!loads || controller.map_spans > 0, "controller.map_spans", controller.map_spans, rule)
    }

    fn bus(&self) -> Checked {
        let controller = &self.profile.controller;
        let max = controller.bus_max;
        for (field, mode) in [("controller.bus_max", Some(max)), ("controller.bus", controller.bus)] {
            let Some(mode) = mode else { continue };
            let rule = format!("is no bus mode of {}", self.profile.kind);
            self.require(kind_of(mode) == self.profile.kind, field, format_args!("{mode:?}"), rule)?;
        }
        if let Some(bus) = controller.bus {
            let offered = level(bus) <= level(max) && bus.width() <= max.width();
            let rule = format!("must be a mode that controller.bus_max ({max:?}) includes");
            self.require(offered, "controller.bus", format_args!("{bus:?}"), rule)?;
        }
        if let Some(mhz) = controller.bus_clock_mhz {
            let mode = controller.bus().clock_hz() as f64 / 1e6;
            self.range("controller.bus_clock_mhz", mhz, 0.4..=mode)?;
        }
        let (rev, needed) = (self.profile.identity.ext_csd_rev, revision_of(max));
        let rule = format!("needs identity.ext_csd_rev {needed}, which is {rev}");
        self.require(rev >= needed, "controller.bus_max", format_args!("{max:?}"), rule)
    }

    fn features(&self) -> Checked {
        let (controller, rev) = (&self.profile.controller, self.profile.identity.ext_csd_rev);
        self.range("controller.cache_bytes", controller.cache_bytes, 0..=BUFFER_MAX)?;
        let rule = "is for SD; an eMMC has controller.cache_bytes";
        self.require(controller.write_buffer_bytes == 0, "controller.write_buffer_bytes", "set", rule)?;
        // CACHE_SIZE counts kilobits.
        self.multiple("controller.cache_bytes", controller.cache_bytes.into(), 128)?;
        self.range("controller.queue_depth", controller.queue_depth, 0..=32)?;
        self.range("controller.packed_commands", controller.packed_commands, 0..=PACKED_MAX)?;
        for (field, used, needed) in [
            ("controller.cache_bytes", controller.cache_bytes > 0, 6),
            ("controller.packed_commands", controller.packed_commands > 0, 6),
            ("controller.auto_bkops", controller.auto_bkops, 8),
            ("controller.queue_depth", controller.queue_depth > 0, 8),
        ] {
            let rule = format!("needs identity.ext_csd_rev {needed}, which is {rev}");
            self.require(!used || rev >= needed, field, "set", rule)?;
        }
        Ok(())
    }

    fn sd_features(&self) -> Checked {
        let controller = &self.profile.controller;
        for (field, set) in [
            ("controller.cache_bytes", controller.cache_bytes > 0),
            ("controller.queue_depth", controller.queue_depth > 0),
            ("controller.packed_commands", controller.packed_commands > 0),
            ("controller.write_reliability", controller.write_reliability),
            ("controller.auto_bkops", controller.auto_bkops),
        ] {
            self.require(!set, field, "set", "is for eMMC; not simulated on SD")?;
        }
        Ok(())
    }
}

const fn kind_of(mode: BusMode) -> CardKind {
    match mode {
        BusMode::SdDefault | BusMode::SdHigh | BusMode::Sdr50 | BusMode::Ddr50 | BusMode::Sdr104 => CardKind::Sd,
        _ => CardKind::Emmc,
    }
}

/// Each level includes those below.
const fn level(mode: BusMode) -> u8 {
    match mode {
        BusMode::Legacy1 | BusMode::Legacy4 | BusMode::Legacy8 | BusMode::SdDefault => 0,
        BusMode::Hs52x1 | BusMode::Hs52x4 | BusMode::Hs52 | BusMode::SdHigh => 1,
        BusMode::Ddr52x4 | BusMode::Ddr52 | BusMode::Sdr50 | BusMode::Ddr50 => 2,
        BusMode::Hs200x4 | BusMode::Hs200 | BusMode::Sdr104 => 3,
        BusMode::Hs400 => 4,
    }
}

/// EXT_CSD_REV that brought an eMMC mode; SD modes need none.
const fn revision_of(mode: BusMode) -> u8 {
    match mode {
        BusMode::Hs400 => 7,
        BusMode::Hs200x4 | BusMode::Hs200 => 6,
        _ => 0,
    }
}
