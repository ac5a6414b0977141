//! What is known of a part beside measurements: its registers, and the host on which it was measured.

use emmc_card::profile::{BusMode, CellConfig, MeasuringHost, NandConfig, Profile};
use emmc_port::CardData;
use emmc_regs::ext_csd::reg;

/// What is known of a part. What is absent is that of the template.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// The user area. Unit: bytes.
    pub user_bytes: Option<u64>,
    /// The volatile cache. Unit: bytes.
    pub cache_bytes: Option<u32>,
    /// Tasks of the command queue.
    pub queue_depth: Option<u8>,
    /// EXT_CSD_REV.
    pub ext_csd_rev: Option<u8>,
    /// The mode in which it was measured.
    pub bus: Option<BusMode>,
    /// The user area is enhanced: one bit a cell.
    pub is_pslc: bool,
    /// The host's own times.
    pub host: Option<MeasuringHost>,
    /// A profile of the part, for what no measurement shows.
    pub base: Option<Box<Profile>>,
}

impl Known {
    /// From a dump of registers. The bus is the one of that moment.
    pub fn of(card: &CardData) -> Self {
        let Some(registers) = &card.ext_csd else {
            let csd = card.csd.zip(card.kind).map(|(csd, kind)| emmc_regs::csd::Csd::new(kind, csd));
            return Self { user_bytes: csd.and_then(|csd| csd.capacity_bytes()), ..Self::default() };
        };
        let sectors = registers.raw(reg::SEC_COUNT).filter(|sectors| *sectors > 0);
        // The register counts kilobits.
        let cache = registers.raw(reg::CACHE_SIZE).and_then(|kilobits| u32::try_from(kilobits * 1024 / 8).ok());
        let queue = match registers.bit(reg::CMDQ_SUPPORT, 0) {
            Some(true) => registers.bits(reg::CMDQ_DEPTH, 0x1f).map(|depth| depth + 1),
            Some(false) => Some(0),
            None => None,
        };
        let is_enhanced = registers.bit(reg::PARTITIONS_ATTRIBUTE, 0) == Some(true);
        let is_completed = registers.bit(reg::PARTITION_SETTING_COMPLETED, 0) == Some(true);
        Self {
            user_bytes: sectors.map(|sectors| sectors * 512),
            cache_bytes: cache,
            queue_depth: queue,
            ext_csd_rev: registers.byte(reg::EXT_CSD_REV),
            bus: bus(registers.bits(reg::HS_TIMING, 0x0f), registers.bits(reg::BUS_WIDTH, 0x0f)),
            is_pslc: is_enhanced && is_completed,
            ..Self::default()
        }
    }

    /// Sets what changes times: the bus and the queue.
    pub(crate) fn set_times(&self, profile: &mut Profile) {
        let controller = &mut profile.controller;
        if let Some(bus) = self.bus {
            controller.bus_max = controller.bus_max.max(bus);
            controller.bus = Some(bus);
        }
        let base = self.base.as_ref().map(|base| &base.controller);
        if let Some(depth) = self.queue_depth.or(base.map(|base| base.queue_depth)) {
            controller.queue_depth = depth;
        }
        if let Some(revision) = self.ext_csd_rev {
            profile.identity.ext_csd_rev = revision;
        }
    }

    /// Sets what the measurements do not show.
    pub(crate) fn set_sizes(&self, profile: &mut Profile) {
        if let Some(base) = &self.base {
            set_unmeasured(profile, base);
            profile.identity.ext_csd_rev = self.ext_csd_rev.unwrap_or(base.identity.ext_csd_rev);
        }
        if let Some(bytes) = self.user_bytes {
            profile.areas.user_bytes = bytes;
        }
        let base = self.base.as_ref().map(|base| &base.controller);
        if let Some(bytes) = self.cache_bytes.or(base.map(|base| base.cache_bytes)) {
            profile.controller.cache_bytes = bytes;
        }
    }

    /// The names of what is known, for the profile's sources.
    pub fn facts(&self) -> Vec<&'static str> {
        let facts = [
            ("size", self.user_bytes.is_some()),
            ("cache", self.cache_bytes.is_some()),
            ("queue", self.queue_depth.is_some()),
            ("revision", self.ext_csd_rev.is_some()),
            ("bus mode", self.bus.is_some()),
        ];
        facts.into_iter().filter(|(_, is_known)| *is_known).map(|(name, _)| name).collect()
    }
}

/// Sets what no measurement shows to that of a profile of the part: identity, areas, registers, the fastest bus, bits a
/// cell, failures, endurance, erase times and spreads, folding at idle; spare blocks and those bad from the factory as
/// the same share of the flash.
fn set_unmeasured(profile: &mut Profile, base: &Profile) {
    profile.identity.clone_from(&base.identity);
    profile.areas = base.areas;
    profile.registers.clone_from(&base.registers);
    let controller = &mut profile.controller;
    controller.packed_commands = base.controller.packed_commands;
    if base.controller.bus_max > controller.bus_max {
        controller.bus = Some(controller.bus());
        controller.bus_max = base.controller.bus_max;
    }
    if let (Some(own), Some(base)) = (&mut profile.ftl.slc_cache, base.ftl.slc_cache) {
        own.idle_fold = base.idle_fold;
    }
    set_cell(&mut profile.nand, &base.nand);
    let block_bytes = |nand: &NandConfig| f64::from(nand.pages_per_block) * f64::from(nand.page_bytes);
    let share = block_bytes(&base.nand) / block_bytes(&profile.nand);
    let of = |blocks: u32| (f64::from(blocks) * share).ceil() as u32;
    let nand = &mut profile.nand;
    (nand.spare_blocks, nand.factory_bad_blocks) = (of(base.nand.spare_blocks), of(base.nand.factory_bad_blocks));
    (nand.failures, nand.ageing) = (base.nand.failures.clone(), base.nand.ageing);
    set_wear(&mut nand.native, &base.nand.native);
    if let (Some(own), Some(base)) = (&mut nand.slc, &base.nand.slc) {
        set_wear(own, base);
    }
}

/// Sets bits a cell and how the program times of a word line's pages differ. The mean program time stays, and so does
/// what a block holds with one bit a cell.
fn set_cell(nand: &mut NandConfig, base: &NandConfig) {
    let one_bit_pages = nand.pages_per_block / nand.cell.bits();
    let (own, pages) = (mean(&nand.native.program_us), &base.native.program_us);
    if base.slc.is_none() || pages.is_empty() {
        return;
    }
    nand.cell = base.cell;
    nand.pages_per_block = one_bit_pages * base.cell.bits();
    nand.native.program_us = pages.iter().map(|us| own * us / mean(pages)).collect();
}

/// Not a number if there are none.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn set_wear(cells: &mut CellConfig, base: &CellConfig) {
    (cells.erase_ms, cells.endurance) = (base.erase_ms, base.endurance);
    (cells.time_spread, cells.endurance_spread) = (base.time_spread, base.endurance_spread);
}

/// HS_TIMING and BUS_WIDTH as a mode; none if they do not say it.
fn bus(timing: Option<u8>, width: Option<u8>) -> Option<BusMode> {
    Some(match (timing?, width?) {
        (0, 1) => BusMode::Legacy4,
        (0, 2) => BusMode::Legacy8,
        (1, 0) => BusMode::Hs52x1,
        (1, 1) => BusMode::Hs52x4,
        (1, 2) => BusMode::Hs52,
        (1, 5) => BusMode::Ddr52x4,
        (1, 6) => BusMode::Ddr52,
        (2, 1) => BusMode::Hs200x4,
        (2, 2) => BusMode::Hs200,
        (3, 6) => BusMode::Hs400,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_gives_its_cells_and_the_mean_program_time_stays() {
        let template = Profile::from_toml(include_str!("../template/sd.toml")).unwrap();
        for name in ["sandisk-extreme-a1-32g", "friendlyelec-emmc-8g", "generic-8g"] {
            let base = emmc_card::profile::shipped::named(name).unwrap();
            let mut profile = template.clone();
            set_unmeasured(&mut profile, &base);
            let (own, was) = (&profile.nand, &template.nand);
            assert_eq!((own.cell, own.native.endurance), (base.nand.cell, base.nand.native.endurance), "{name}");
            assert_eq!(own.native.program_us.len(), base.nand.native.program_us.len(), "{name}");
            assert!((mean(&own.native.program_us) / mean(&was.native.program_us) - 1.0).abs() < 1e-9, "{name}");
            assert_eq!(own.pages_per_block / own.cell.bits(), was.pages_per_block / was.cell.bits(), "{name}");
        }
    }

    #[test]
    fn the_mode_of_the_bus_follows_from_two_registers() {
        assert_eq!(bus(Some(3), Some(6)), Some(BusMode::Hs400));
        assert_eq!(bus(Some(1), Some(6)), Some(BusMode::Ddr52));
        assert_eq!(bus(Some(0), Some(0)), None, "a card that nobody has set up");
        assert_eq!(bus(None, Some(2)), None);
    }
}
