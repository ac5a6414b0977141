//! Whole devices: every shipped profile, scaled down until collection and folding never rest, in units of a sector.

use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;
use emmc_units::{Instant, Rng};

use crate::subject::Subject;
use emmc_card::device::{Area, Device, DeviceOptions, StorageError, WriteFlags};
use emmc_card::ftl::{Durability, FtlError, TrimKind};
use emmc_card::nand::{Nand, StoredContent};
use emmc_card::profile::{Failures, LOW_BLOCKS_MIN, Partitioning, Profile, shipped};

const SECTOR_BYTES: usize = 512;

/// Bytes of a mapping unit of a scaled profile: two sectors, so that sectors are read, changed and written again.
const UNIT_BYTES: u32 = 1024;

/// An area of a device: the user area, or another one.
pub(crate) struct Card {
    name: String,
    device: Device,
    area: Area,
    /// The registers of before, but for those that follow the wear.
    registers: Vec<u8>,
    /// Sum of all blocks' erase counts when the counters began.
    erased_before: u64,
    sectors: u32,
    /// Whether its volatile cache is on.
    cached: bool,
}

impl Card {
    /// A shipped part, scaled down; with its volatile cache on or off, perhaps partly enhanced, perhaps failing.
    pub(crate) fn draw(rng: &mut Rng) -> Result<Self, String> {
        let names: Vec<&str> = shipped::names().collect();
        let name = names[rng.below(names.len() as u64) as usize];
        Self::of(shipped::named(name).map_err(|error| error.to_string())?, rng)
    }

    /// Another area than the user's, of a shipped eMMC: each has WR_REL_SET of its own, the opposite of the others'.
    pub(crate) fn draw_area(rng: &mut Rng) -> Result<Self, String> {
        let profiles = shipped::names().map(|name| shipped::named(name).map_err(|error| error.to_string()));
        let profiles: Vec<Profile> = profiles.collect::<Result<_, _>>()?;
        let with_areas = |profile: &Profile| profile.kind == CardKind::Emmc && profile.areas.enhanced_groups_max > 1;
        let mut found: Vec<Profile> = profiles.into_iter().filter(with_areas).collect();
        let mut profile = found.swap_remove(rng.below(found.len() as u64) as usize);
        scale(&mut profile);
        let areas = [Area::Gp(0), Area::Gp(1), Area::Boot(0), Area::Rpmb];
        let area = areas[rng.below(areas.len() as u64) as usize];
        if let Area::Gp(number) = area {
            let bit = 1 << (1 + number);
            profile.registers.insert("WR_REL_SET".into(), if rng.below(2) == 0 { bit } else { 0x1f & !bit });
        }
        if rng.below(4) == 0 {
            profile.nand.failures = Failures { program_ppb: 500_000, erase_ppm: 500 };
        }
        let name = format!("{} scaled down, {area:?}", profile.name);
        let is_enhanced = rng.below(2) == 0 && profile.areas.enhanced_groups_max > 1;
        let options = DeviceOptions { keep: StoredContent::Data, seed: rng.next_u64() };
        let mut device = Device::new(profile, options).map_err(|error| error.to_string())?;
        if matches!(area, Area::Gp(_)) {
            let partitioning =
                Partitioning { gp_groups: [1, 1, 0, 0], gp_enhanced: [is_enhanced; 4], ..Partitioning::default() };
            device.partition(partitioning, Instant::START).map_err(|error| format!("{name}: {error}"))?;
        }
        let cached = rng.below(2) == 0;
        let has_cache = device.set_cache(cached, Instant::START).map_err(|error| error.to_string())?;
        let cached = cached && has_cache && area != Area::Rpmb;
        Ok(Self::over(name, device, area, cached))
    }

    fn over(name: String, device: Device, area: Area, cached: bool) -> Self {
        let sectors = device.sectors(area) as u32;
        let (registers, erased_before) = (steady_registers(&device), erased(&device) - device.nand().counters().erases);
        Self { name, device, area, registers, erased_before, sectors, cached }
    }

    /// A part, scaled down; the rest at random.
    pub(crate) fn of(mut profile: Profile, rng: &mut Rng) -> Result<Self, String> {
        let mut name = profile.name.clone();
        scale(&mut profile);
        // Drawn apart, so that a case without it is the same as before there was ageing.
        let mut apart = Rng::new(rng.clone().next_u64() ^ 0xa9e);
        if apart.below(4) == 0 {
            (profile.nand.ageing, profile.ftl.refresh) = crate::rigs::age(&mut apart);
            profile.nand.native.endurance_spread = 0.3;
            name += " ageing";
        }
        if rng.below(4) == 0 {
            profile.nand.failures = Failures { program_ppb: 500_000, erase_ppm: 500 };
        }
        let groups = u64::from(profile.areas.enhanced_groups_max);
        let seed = rng.next_u64();
        let options = DeviceOptions { keep: StoredContent::Data, seed };
        let mut device = Device::new(profile, options).map_err(|error| error.to_string())?;
        let enhanced = if groups > 0 && rng.below(3) == 0 { 1 + rng.below(groups) } else { 0 };
        if enhanced > 0 {
            let partitioning = Partitioning { enhanced_groups: enhanced, ..Partitioning::default() };
            device.partition(partitioning, Instant::START).map_err(|error| format!("{name}: {error}"))?;
        }
        let cached = rng.below(2) == 0;
        let has_cache = device.set_cache(cached, Instant::START).map_err(|error| error.to_string())?;
        let cached = cached && has_cache || device.has_write_buffer();
        let cache = if cached { ", cache on" } else { "" };
        let enhanced = if enhanced > 0 { format!(", {enhanced} of {groups} groups enhanced") } else { String::new() };
        Ok(Self::over(format!("{name} scaled down{cache}{enhanced}"), device, Area::User, cached))
    }
}

/// EXT_CSD without what follows from wear and waiting work.
fn steady_registers(device: &Device) -> Vec<u8> {
    let mut image = device.registers();
    let changing =
        [reg::BKOPS_STATUS, reg::PRE_EOL_INFO, reg::DEVICE_LIFE_TIME_EST_TYP_A, reg::DEVICE_LIFE_TIME_EST_TYP_B];
    changing.into_iter().for_each(|field| image.ext_csd[field] = 0);
    image.ext_csd.to_vec()
}

/// The sum of all blocks' erase counts.
fn erased(device: &Device) -> u64 {
    device.nand().blocks().iter().map(|block| u64::from(block.erase_count)).sum()
}

/// Makes a part of a few MiB of it: same cells, lanes, layers and policies, fewer and smaller blocks.
fn scale(profile: &mut Profile) {
    let (nand, ftl, areas) = (&mut profile.nand, &mut profile.ftl, &mut profile.areas);
    let factor = ftl.unit_bytes.div_ceil(UNIT_BYTES);
    ftl.unit_bytes /= factor;
    nand.page_bytes /= factor;
    let lanes = nand.dies * nand.planes;
    nand.pages_per_block = lanes * nand.cell.bits() * if lanes > 2 { 4 } else { 8 };
    nand.spare_blocks = 8;
    nand.factory_bad_blocks = nand.factory_bad_blocks.min(1);
    nand.over_provisioning = 1.2;
    nand.blocks = None;
    let block_bytes = u64::from(nand.pages_per_block * nand.page_bytes);
    areas.user_bytes = (12 * block_bytes).max(1 << 20).next_multiple_of(512 << 10);
    areas.erase_group_bytes = 512 << 10;
    areas.wp_group_bytes = 512 << 10;
    areas.boot_bytes = areas.boot_bytes.min(128 << 10);
    areas.rpmb_bytes = areas.rpmb_bytes.min(128 << 10);
    let groups = areas.user_bytes / u64::from(areas.wp_group_bytes);
    areas.enhanced_groups_max = areas.enhanced_groups_max.min(groups as u32 / nand.cell.bits());
    ftl.gc_low_blocks = LOW_BLOCKS_MIN;
    ftl.gc_high_blocks = if ftl.gc_high_blocks > 0 { ftl.gc_low_blocks + 2 } else { 0 };
    ftl.wear.static_gap = ftl.wear.static_gap.min(5);
    if let Some(cache) = &mut ftl.mapping_cache {
        (cache.pages, cache.units_per_page) = (4, 64);
    }
    if let Some(cache) = &mut ftl.slc_cache {
        (cache.blocks, cache.low_blocks) = (6, 2);
        cache.bypass_bytes = cache.bypass_bytes.min(8 << 10);
    }
    if let Some(segment) = &mut ftl.segment {
        (segment.open_aus, segment.random_logs) = (segment.open_aus.min(3), segment.random_logs.min(2));
        segment.random_log_bytes = segment.random_log_bytes.min(2 << 10);
        segment.steps_back = segment.steps_back.min(2);
    }
    let controller = &mut profile.controller;
    controller.cache_bytes = controller.cache_bytes.min(16 << 10);
    controller.write_buffer_bytes = controller.write_buffer_bytes.min(16 << 10);
    controller.small_write_bytes = controller.small_write_bytes.min(2 << 10);
    controller.merge_bytes = controller.merge_bytes.min(12 << 10);
    controller.small_log_bytes = controller.small_log_bytes.min(4 << 10);
    profile.registers.clear();
}

fn error(error: StorageError) -> FtlError {
    match error {
        StorageError::Ftl(error) => error,
        StorageError::OutOfRange { .. } => unreachable!("requests lie inside the area"),
    }
}

impl Subject for Card {
    fn name(&self) -> &str {
        &self.name
    }

    fn units(&self) -> u32 {
        self.sectors
    }

    fn unit_bytes(&self) -> usize {
        SECTOR_BYTES
    }

    fn write(&mut self, first: u32, data: &[u8], durability: Durability, now: Instant) -> Result<Instant, FtlError> {
        let sectors = (data.len() / SECTOR_BYTES) as u32;
        // Nothing but authenticated writes reaches RPMB, and these are reliable.
        let is_reliable = durability == Durability::Reliable || self.area == Area::Rpmb;
        let flags = WriteFlags { reliable: is_reliable, force: durability != Durability::Buffered };
        let written = self.device.write(self.area, first.into(), sectors, flags, Some(data), now);
        written.map(|host| host.done).map_err(error)
    }

    fn read(&mut self, first: u32, out: &mut [u8], now: Instant) -> Result<Instant, FtlError> {
        let sectors = (out.len() / SECTOR_BYTES) as u32;
        self.device.read(self.area, first.into(), sectors, Some(out), now).map(|host| host.done).map_err(error)
    }

    fn trim(&mut self, first: u32, count: u32, kind: TrimKind, now: Instant) -> Result<Instant, FtlError> {
        let trimmed = self.device.trim(self.area, first.into(), count.into(), kind, now);
        trimmed.map(|host| host.done).map_err(error)
    }

    fn flush(&mut self, now: Instant) -> Result<Instant, FtlError> {
        self.device.flush(now).map(|host| host.done).map_err(error)
    }

    fn background(&mut self, now: Instant) -> Result<Option<Instant>, FtlError> {
        self.device.background(now).map_err(error)
    }

    fn purge(&mut self, now: Instant) -> Result<Instant, FtlError> {
        self.device.purge(now).map_err(error)
    }

    fn power_off(&mut self, now: Instant) {
        self.device.power_off(now);
    }

    fn power_on(&mut self, cut: Option<crate::FaultPlan>, now: Instant) -> Result<Instant, FtlError> {
        if let Some(plan) = cut {
            self.device.nand_mut().arm(plan);
        }
        self.device.power_on(now).map_err(error)
    }

    fn audit(&self) -> Result<(), String> {
        let (erased, counted) = (erased(&self.device), self.erased_before + self.device.nand().counters().erases);
        if erased != counted {
            return Err(format!(
                "the blocks were erased {erased} times by their own counts, {counted} times by the flash's"
            ));
        }
        let changed =
            steady_registers(&self.device).iter().zip(&self.registers).position(|(now, before)| now != before);
        if let Some(byte) = changed {
            return Err(format!("byte {byte} of EXT_CSD has changed"));
        }
        self.device.audit()
    }

    fn nand(&self) -> &Nand {
        self.device.nand()
    }

    fn nand_mut(&mut self) -> &mut Nand {
        self.device.nand_mut()
    }

    fn granule(&self) -> u32 {
        self.device.unit_sectors()
    }

    /// WR_REL_SET makes every write that bypasses the cache reliable; without a cache all writes do.
    fn kept_as(&self, durability: Durability) -> Durability {
        let bit = match self.area {
            Area::User => Some(0),
            Area::Gp(number) => Some(1 + number),
            // Always reliable.
            Area::Boot(_) | Area::Rpmb => None,
        };
        let is_set = bit.is_none_or(|bit| self.device.registers().ext_csd[reg::WR_REL_SET] >> bit & 1 == 1);
        let reliable = self.device.profile().kind == CardKind::Emmc && is_set;
        match durability {
            Durability::Buffered if self.cached => Durability::Buffered,
            Durability::Reliable => Durability::Reliable,
            _ if reliable => Durability::Reliable,
            _ => Durability::Flash,
        }
    }

    fn damaged_pairs(&self) -> Vec<u32> {
        let unit = self.device.unit_sectors();
        let user = self.device.damaged_pairs().into_iter().filter(|&(area, _)| area == self.area);
        user.flat_map(|(_, first)| first as u32..first as u32 + unit).collect()
    }
}
