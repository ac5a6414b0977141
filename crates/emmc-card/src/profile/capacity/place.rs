//! The blocks of each region, and the places of areas in their regions.

use super::{Cut, Extent, Partitioning, RegionRole, Share, Sums};
use crate::ftl::RegionSpec;
use crate::nand::CellMode;
use emmc_units::Rng;

/// Hands out blocks in turn.
pub(super) struct Placing<'a> {
    native: CellMode,
    sums: &'a Sums<'a>,
    seeds: Rng,
    next_block: u32,
    regions: Vec<(RegionRole, RegionSpec)>,
}

impl<'a> Placing<'a> {
    pub(super) fn new(sums: &'a Sums<'a>, seed: u64) -> Self {
        let native = sums.geometry.native;
        Self { native, sums, seeds: Rng::new(seed), next_block: 0, regions: Vec::new() }
    }

    /// Gives a region the next blocks. Its seed is drawn even if there is no such region, so that the others keep
    /// theirs in every partitioning.
    pub(super) fn add(&mut self, role: RegionRole, units: u64, share: Share) {
        let seed = self.seeds.next_u64();
        if units == 0 {
            return;
        }
        let end = self.next_block + share.total() as u32;
        let mode = if role == RegionRole::Main { self.native } else { self.sums.single_bit() };
        let spec = RegionSpec {
            blocks: (self.next_block..end).collect(),
            mode,
            units: units as u32,
            spares: share.spares as u32,
            slc_blocks: share.slc as u32,
            seed,
        };
        self.next_block = end;
        self.regions.push((role, spec));
    }

    pub(super) fn regions(self) -> Vec<(RegionRole, RegionSpec)> {
        self.regions
    }
}

impl Sums<'_> {
    /// The user area: the part before its enhanced part, that part, and the rest.
    pub(super) fn user(&self, partitioning: &Partitioning, cut: &Cut) -> Vec<Extent> {
        let enhanced = partitioning.enhanced_groups * cut.group;
        let start = if enhanced == 0 { cut.plain } else { partitioning.enhanced_start * cut.group };
        let runs = [
            (0, start, RegionRole::Main, 0),
            (start, enhanced, RegionRole::Enhanced, 0),
            (start + enhanced, cut.plain - start, RegionRole::Main, start),
        ];
        let runs = runs.into_iter().filter(|(_, sectors, ..)| *sectors > 0);
        runs.map(|(first, sectors, region, before)| self.extent(first, sectors, region, before)).collect()
    }

    /// General purpose partitions follow the user area's part of their region.
    pub(super) fn gp(&self, partitioning: &Partitioning, cut: &Cut) -> [Option<Extent>; 4] {
        // The plain part of the user area need not end with a unit.
        let unit = self.unit_sectors();
        let mut plain = cut.plain.div_ceil(unit) * unit;
        let mut enhanced = partitioning.enhanced_groups * cut.group;
        std::array::from_fn(|index| {
            let sectors = partitioning.gp_groups[index] * cut.group;
            let (region, before) = match partitioning.gp_enhanced[index] {
                true => (RegionRole::Enhanced, &mut enhanced),
                false => (RegionRole::Main, &mut plain),
            };
            let extent = self.extent(0, sectors, region, *before);
            *before += sectors;
            (sectors > 0).then_some(extent)
        })
    }

    /// The boot areas and RPMB, consecutively.
    pub(super) fn system_areas(&self) -> ([Option<Extent>; 2], Option<Extent>) {
        let mut first_unit = 0;
        let [boot0, boot1, rpmb] = self.area_units().map(|units| {
            let extent = Extent {
                first_sector: 0,
                sectors: units * self.unit_sectors(),
                region: RegionRole::System,
                first_unit: first_unit as u32,
            };
            first_unit += units;
            (units > 0).then_some(extent)
        });
        ([boot0, boot1], rpmb)
    }

    fn unit_sectors(&self) -> u64 {
        u64::from(self.geometry.unit_bytes) / emmc_units::SECTOR_BYTES
    }

    fn extent(&self, first_sector: u64, sectors: u64, region: RegionRole, sectors_before: u64) -> Extent {
        Extent { first_sector, sectors, region, first_unit: (sectors_before / self.unit_sectors()) as u32 }
    }
}
