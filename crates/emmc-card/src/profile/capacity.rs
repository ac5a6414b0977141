//! From areas to blocks: the blocks of the flash for each part of the card.
//!
//! Three regions: the system region (boot areas, RPMB) with one bit a cell, the main region as built, and, once the
//! user has partitioned the part, the enhanced region with one bit a cell. The blocks of the part never change:
//! enhanced blocks are taken from the main region, and the user area shrinks as in the planner of `emmc-analysis`.
//! Every region brings its own two blocks for the trim log, blocks for mapping pages and spares. Absent on purpose: the
//! registers that choose the partitioning, and their rules (`card`).

mod place;
#[cfg(test)]
mod tests;

use emmc_units::SECTOR_BYTES;

use super::{Mapping, Profile};
use crate::ftl::RegionSpec;
use crate::ftl::mapping_cache::MappingCache;
use crate::ftl::trim_log::TrimLog;
use crate::nand::{CellMode, Geometry};
use place::Placing;

/// Blocks that every region keeps for its log of trims.
pub const TRIM_LOG_BLOCKS: u32 = 2;

/// What a region is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionRole {
    /// Boot areas and RPMB: one bit a cell.
    System,
    /// The enhanced user area and enhanced general purpose partitions: one bit a cell.
    Enhanced,
    /// Everything else.
    Main,
}

/// How the user has partitioned the part.
///
/// Unit: write protection groups, but for `seed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Partitioning {
    /// ENH_START_ADDR.
    pub enhanced_start: u64,
    /// ENH_SIZE_MULT; 0: none.
    pub enhanced_groups: u64,
    /// GP_SIZE_MULT_1 to _4; 0: none.
    pub gp_groups: [u64; 4],
    /// Whether each of them is enhanced.
    pub gp_enhanced: [bool; 4],
}

/// A run of sectors of an area, and where its units lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First sector, counted inside the area.
    pub first_sector: u64,
    /// Sectors of it.
    pub sectors: u64,
    /// The region that holds it.
    pub region: RegionRole,
    /// The region's unit that its first sector starts.
    pub first_unit: u32,
}

/// Blocks and units of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Blocks of the flash.
    pub blocks: u32,
    /// The regions, in order of their blocks; a region without units is left out.
    pub regions: Vec<(RegionRole, RegionSpec)>,
    /// The user area as SEC_COUNT says it.
    pub user_sectors: u64,
    /// The user area in runs, in order of their sectors.
    pub user: Vec<Extent>,
    /// The boot areas.
    pub boot: [Option<Extent>; 2],
    /// RPMB.
    pub rpmb: Option<Extent>,
    /// General purpose partitions.
    pub gp: [Option<Extent>; 4],
}

/// Why the part cannot be laid out so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// More is to be enhanced than MAX_ENH_SIZE_MULT.
    #[error("{groups} enhanced groups, but at most {max} can be")]
    EnhancedBeyondMax {
        /// Requested enhanced groups.
        groups: u64,
        /// MAX_ENH_SIZE_MULT.
        max: u64,
    },
    /// The partitions do not fit.
    #[error("the partitions take more than the user area's {sectors} sectors")]
    BeyondUserArea {
        /// The previous user area.
        sectors: u64,
    },
    /// A region has not even the blocks that its data and its garbage collection need.
    #[error("the {role:?} region has {found} blocks for data and needs {needed}")]
    TooFewBlocks {
        /// The region.
        role: RegionRole,
        /// Blocks that it would get.
        found: u64,
        /// Blocks that it needs at least.
        needed: u64,
    },
    /// The map of trimmed units does not fit into a block with one bit a cell.
    #[error("the {role:?} region's log of trims needs more pages than a block has with one bit a cell")]
    TrimLogTooLarge {
        /// The region.
        role: RegionRole,
    },
    /// Blocks or units do not fit into 32 bits.
    #[error("{units} mapping units, more than 32 bits count")]
    TooManyUnits {
        /// Units of the whole flash.
        units: u64,
    },
}

/// What the arithmetic needs of a profile.
struct Sums<'a> {
    profile: &'a Profile,
    /// Without its number of blocks.
    geometry: Geometry,
}

/// Blocks of one region, by use.
#[derive(Clone, Copy, Default)]
struct Share {
    data: u64,
    meta: u64,
    slc: u64,
    spares: u64,
}

impl Share {
    fn total(self) -> u64 {
        self.data + self.meta + self.slc + self.spares
    }
}

/// Sectors that the user's choice leaves.
struct Cut {
    /// Ordinary sectors of the user area.
    plain: u64,
    /// Sectors of a group.
    group: u64,
    enhanced_groups: u64,
    plain_gp_groups: u64,
    /// Sectors of the unpartitioned user area that the enhanced groups take the place of.
    cost: u64,
}

impl Layout {
    /// The card as it leaves the factory.
    ///
    /// Errors: as [`Layout::new`].
    pub fn factory(profile: &Profile, seed: u64) -> Result<Self, LayoutError> {
        Self::new(profile, &Partitioning::default(), seed)
    }

    /// The card with a partitioning; `seed` gives each region's own.
    ///
    /// Errors: the part that does not fit.
    pub fn new(profile: &Profile, partitioning: &Partitioning, seed: u64) -> Result<Self, LayoutError> {
        let sums = Sums { profile, geometry: Geometry::new(&profile.nand, 0, profile.ftl.unit_bytes) };
        let cut = sums.cut(partitioning)?;
        let (system, main) = (sums.system(), sums.main()?);
        let blocks = system.total() + main.total();
        let units = blocks * u64::from(sums.geometry.units_per_block());
        if units >= u64::from(u32::MAX) {
            return Err(LayoutError::TooManyUnits { units });
        }
        let (enhanced, main) = sums.split(main, &cut)?;
        let mut placing = Placing::new(&sums, seed);
        let enhanced_units = sums.units(cut.enhanced_groups * cut.group * SECTOR_BYTES);
        let main_bytes = (cut.plain + cut.plain_gp_groups * cut.group) * SECTOR_BYTES;
        placing.add(RegionRole::System, sums.system_units(), system);
        placing.add(RegionRole::Enhanced, enhanced_units, enhanced);
        placing.add(RegionRole::Main, sums.units(main_bytes), main);
        let regions = placing.regions();
        let too_large = |region: &&(RegionRole, RegionSpec)| !TrimLog::fits(&sums.geometry, region.1.units);
        if let Some((role, _)) = regions.iter().find(too_large).filter(|_| profile.ftl.trim_frees) {
            return Err(LayoutError::TrimLogTooLarge { role: *role });
        }
        let user = sums.user(partitioning, &cut);
        let gp = sums.gp(partitioning, &cut);
        let user_sectors = user.iter().map(|extent| extent.sectors).sum();
        let (boot, rpmb) = sums.system_areas();
        Ok(Self { blocks: blocks as u32, regions, user_sectors, user, boot, rpmb, gp })
    }

    /// A region's blocks and units, if there is such a region.
    pub fn region(&self, role: RegionRole) -> Option<&RegionSpec> {
        self.regions.iter().find(|(known, _)| *known == role).map(|(_, spec)| spec)
    }
}

impl Sums<'_> {
    fn units(&self, bytes: u64) -> u64 {
        bytes.div_ceil(u64::from(self.geometry.unit_bytes))
    }

    fn single_bit(&self) -> CellMode {
        self.geometry.native.single_bit()
    }

    fn units_in(&self, mode: CellMode) -> u64 {
        u64::from(self.geometry.units_in(mode))
    }

    /// Blocks without which a region cannot work: its data, the frontiers, and the free blocks of garbage collection.
    fn data_min(&self, units: u64, mode: CellMode) -> u64 {
        let ftl = &self.profile.ftl;
        let held = units.div_ceil(self.units_in(mode));
        match (ftl.mapping, &ftl.segment) {
            // Each open allocation unit has a second block, each log its own, and a merge takes one more.
            (Mapping::Segment, Some(segment)) => {
                held + u64::from(segment.open_aus) + u64::from(segment.random_logs) + 2
            }
            _ => {
                let frontiers = 1 + u64::from(ftl.separate_gc) + u64::from(ftl.hot_cold);
                held + frontiers + u64::from(ftl.gc_low_blocks) + 1
            }
        }
    }

    /// Blocks of the trim log and of mapping pages.
    fn meta(&self, units: u64) -> u64 {
        // Where the whole map of a region fits into memory, none of it is written.
        let limited = self
            .profile
            .ftl
            .mapping_cache
            .filter(|cache| u64::from(cache.pages) * u64::from(cache.units_per_page) < units);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let map = limited.map_or(0, |cache| u64::from(MappingCache::blocks_for(&cache, units, &self.geometry)));
        u64::from(TRIM_LOG_BLOCKS) + map
    }

    fn area_units(&self) -> [u64; 3] {
        let areas = &self.profile.areas;
        [areas.boot_bytes, areas.boot_bytes, areas.rpmb_bytes].map(|bytes| self.units(u64::from(bytes)))
    }

    fn system_units(&self) -> u64 {
        self.area_units().iter().sum()
    }

    /// Bad blocks may lie anywhere, so a small region has spares beyond its share of them.
    fn spares_min(&self) -> u64 {
        2 + u64::from(self.profile.nand.factory_bad_blocks.min(4))
    }

    fn system(&self) -> Share {
        let units = self.system_units();
        if units == 0 {
            return Share::default();
        }
        let data = self.data_min(units, self.single_bit());
        Share { data, meta: self.meta(units), slc: 0, spares: self.spares_min() }
    }

    /// The main region of the unpartitioned part.
    fn main(&self) -> Result<Share, LayoutError> {
        let (nand, ftl) = (&self.profile.nand, &self.profile.ftl);
        let units = self.units(self.profile.areas.user_bytes);
        let per_block = self.units_in(nand.cell);
        // Whole numbers, so that the sum is the same everywhere.
        let millionths = (nand.over_provisioning * 1e6) as u64;
        let wanted = u128::from(units) * u128::from(1_000_000 + millionths);
        let data = u64::try_from(wanted.div_ceil(u128::from(per_block) * 1_000_000)).unwrap_or(u64::MAX);
        let slc = ftl.slc_cache.map_or(0, |cache| u64::from(cache.blocks));
        let mut share = Share { data, meta: self.meta(units), slc, spares: u64::from(nand.spare_blocks) };
        if let Some(blocks) = nand.blocks {
            let rest = share.meta + share.slc + share.spares + self.system().total();
            let found = u64::from(blocks).saturating_sub(rest);
            if found < data {
                return Err(LayoutError::TooFewBlocks { role: RegionRole::Main, found, needed: data });
            }
            share.data = found;
        }
        self.enough(RegionRole::Main, units, nand.cell, share.data)?;
        Ok(share)
    }

    fn enough(&self, role: RegionRole, units: u64, mode: CellMode, found: u64) -> Result<(), LayoutError> {
        let needed = self.data_min(units, mode);
        if found < needed { Err(LayoutError::TooFewBlocks { role, found, needed }) } else { Ok(()) }
    }

    /// What the user's choice leaves of the user area.
    ///
    /// An enhanced group takes SEC_COUNT / MAX_ENH_SIZE_MULT sectors, so that a completely enhanced part has its
    /// maximum: 31080448 sectors of 1897 groups become the 15384576 of 939. Source: the planner's model
    /// (`emmc-analysis`).
    fn cut(&self, partitioning: &Partitioning) -> Result<Cut, LayoutError> {
        let areas = &self.profile.areas;
        let (user, group) = (areas.user_bytes / SECTOR_BYTES, u64::from(areas.wp_group_bytes) / SECTOR_BYTES);
        let max = u64::from(areas.enhanced_groups_max);
        let sum = |enhanced: bool| {
            let pairs = partitioning.gp_groups.iter().zip(partitioning.gp_enhanced);
            pairs.filter(|(_, is)| *is == enhanced).fold(0u64, |sum, (groups, _)| sum.saturating_add(*groups))
        };
        let (plain_gp, groups) = (sum(false), sum(true).saturating_add(partitioning.enhanced_groups));
        if groups > max {
            return Err(LayoutError::EnhancedBeyondMax { groups, max });
        }
        let cost = if max == 0 { 0 } else { (groups * user).div_ceil(max).max(groups * group) };
        let beyond = LayoutError::BeyondUserArea { sectors: user };
        let left = user.checked_sub(cost).and_then(|left| left.checked_sub(plain_gp.checked_mul(group)?));
        let left = left.ok_or(beyond)?;
        let plain = if groups > 0 { left / group * group } else { left };
        if partitioning.enhanced_groups > 0 && partitioning.enhanced_start.saturating_mul(group) > plain {
            return Err(beyond);
        }
        Ok(Cut { plain, group, enhanced_groups: groups, plain_gp_groups: plain_gp, cost })
    }

    /// Divides the blocks of the main region between it and the enhanced one; their sum stays.
    fn split(&self, main: Share, cut: &Cut) -> Result<(Share, Share), LayoutError> {
        if cut.enhanced_groups == 0 {
            return Ok((Share::default(), main));
        }
        let mode = self.single_bit();
        let units = self.units(cut.enhanced_groups * cut.group * SECTOR_BYTES);
        let main_units = self.units((cut.plain + cut.plain_gp_groups * cut.group) * SECTOR_BYTES);
        if main_units == 0 {
            // Nothing is left of the main region, so all of its blocks serve.
            let (meta, spares) = (self.meta(units), main.spares);
            let data = main.total().saturating_sub(meta + spares);
            self.enough(RegionRole::Enhanced, units, mode, data)?;
            return Ok((Share { data, meta, slc: 0, spares }, Share::default()));
        }
        let of = |blocks: u64| blocks * cut.cost / (self.profile.areas.user_bytes / SECTOR_BYTES);
        let (meta, main_meta) = (self.meta(units), self.meta(main_units));
        let spares = of(main.spares).max(self.spares_min().min(main.spares / 2)).min(main.spares);
        let slc = main.slc;
        let both = main.total() - slc - main.spares;
        let both = both.saturating_sub(meta + main_meta);
        let (least, main_least) = (self.data_min(units, mode), self.data_min(main_units, self.profile.nand.cell));
        // A small region needs its frontiers too; they come from the other's over-provisioning.
        let data = of(main.data).min(both.saturating_sub(main_least)).max(least);
        let main_data = both.saturating_sub(data);
        self.enough(RegionRole::Main, main_units, self.profile.nand.cell, main_data)?;
        let enhanced = Share { data, meta, slc: 0, spares };
        Ok((enhanced, Share { data: main_data, meta: main_meta, slc, spares: main.spares - spares }))
    }
}
