//! Areas over regions: the translation layer and place of a sector.

use emmc_units::Instant;

use crate::ftl::{self, Ftl, RegionSpec};
use crate::nand::{BlockHealth, NO_UNIT, Nand, NandError};
use crate::profile::{FtlConfig, Layout, RegionRole};

use super::op::{Area, StorageError};

/// A run of an area's sectors within one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) area: Area,
    pub(crate) first: u64,
    pub(crate) sectors: u64,
    pub(crate) region: u8,
    pub(crate) first_unit: u32,
}

/// A run of sectors inside one region, cut at whole units.
///
/// Shape: `head` sectors of the first unit come before it; `head + sectors + tail` are `units` whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) region: u8,
    pub(crate) unit: u32,
    pub(crate) units: u32,
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) sectors: u64,
}

fn regions(nand: &mut Nand, config: &FtlConfig, layout: &Layout) -> Vec<Region> {
    let made = |(role, spec): &(RegionRole, RegionSpec)| Region { role: *role, ftl: ftl::build(config, spec, nand) };
    layout.regions.iter().map(made).collect()
}

/// The areas' extents as runs of regions by index.
fn extents(layout: &Layout) -> Vec<Extent> {
    let index =
        |role: RegionRole| layout.regions.iter().position(|(known, _)| *known == role).unwrap_or_default() as u8;
    let areas = layout.user.iter().map(|extent| (Area::User, extent));
    let boot = (0u8..).zip(&layout.boot).filter_map(|(number, extent)| Some((Area::Boot(number), extent.as_ref()?)));
    let rpmb = layout.rpmb.iter().map(|extent| (Area::Rpmb, extent));
    let gp = (0u8..).zip(&layout.gp).filter_map(|(number, extent)| Some((Area::Gp(number), extent.as_ref()?)));
    let all = areas.chain(boot).chain(rpmb).chain(gp);
    all.map(|(area, extent)| Extent {
        area,
        first: extent.first_sector,
        sectors: extent.sectors,
        region: index(extent.region),
        first_unit: extent.first_unit,
    })
    .collect()
}

/// A region: its part of the flash and the layer that manages it.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) role: RegionRole,
    pub(crate) ftl: Box<dyn Ftl>,
}

/// The flash, its regions, and the extents of each area.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) nand: Nand,
    pub(crate) regions: Vec<Region>,
    extents: Vec<Extent>,
    unit_shift: u32,
}

impl Storage {
    /// Storage over flash of which every block is erased.
    pub(crate) fn new(mut nand: Nand, config: &FtlConfig, layout: &Layout) -> Self {
        let unit_shift = (nand.geometry().unit_bytes / 512).trailing_zeros();
        let regions = regions(&mut nand, config, layout);
        Self { nand, regions, extents: extents(layout), unit_shift }
    }

    /// Erases every good block and lays the regions out again; returns when that is done. `None`: power was lost; the
    /// regions are as before, erased data is lost.
    ///
    /// A block that fails to erase has become bad; the new layers detect it.
    pub(crate) fn lay_out(&mut self, config: &FtlConfig, layout: &Layout, now: Instant) -> Option<Instant> {
        let mut done = now;
        for block in 0..self.nand.geometry().blocks {
            let state = self.nand.block(block);
            if state.health == BlockHealth::Good && state.next_page > 0 {
                match self.nand.erase(block, done) {
                    Ok(ends) => done = ends,
                    Err(NandError::PowerLost) => return None,
                    Err(_) => {}
                }
            }
        }
        self.regions = regions(&mut self.nand, config, layout);
        self.extents = extents(layout);
        Some(done)
    }

    /// Whether all pages of each region hold only units of that region.
    pub(crate) fn has_units_of_its_own(&self) -> bool {
        let is_of = |region: &Region, unit: u32| unit == NO_UNIT || unit < region.ftl.units();
        let fits = |region: &Region| {
            let mut units = region.ftl.blocks().iter().flat_map(|block| self.nand.spare(*block));
            units.all(|unit| is_of(region, *unit))
        };
        self.regions.iter().all(fits)
    }

    /// Sectors of a mapping unit.
    pub(crate) fn unit_sectors(&self) -> u32 {
        1 << self.unit_shift
    }

    /// Sectors of an area; 0: there is no such area.
    pub(crate) fn sectors(&self, area: Area) -> u64 {
        self.extents.iter().filter(|extent| extent.area == area).map(|extent| extent.sectors).sum()
    }

    /// Whether the user area, or a part of it, is in a region.
    pub(crate) fn is_user(&self, region: usize) -> bool {
        self.extents.iter().any(|extent| extent.area == Area::User && usize::from(extent.region) == region)
    }

    /// The areas that exist, in order.
    pub(crate) fn areas(&self) -> Vec<Area> {
        let mut areas: Vec<Area> = self.extents.iter().map(|extent| extent.area).collect();
        areas.sort();
        areas.dedup();
        areas
    }

    /// The area and the first sector of a region's unit; `None`: not part of an area.
    pub(crate) fn sector_of(&self, region: usize, unit: u32) -> Option<(Area, u64)> {
        let within = |extent: &&Extent| {
            let units = extent.sectors.div_ceil(u64::from(self.unit_sectors()));
            usize::from(extent.region) == region && u64::from(unit.wrapping_sub(extent.first_unit)) < units
        };
        let extent = self.extents.iter().find(within)?;
        Some((extent.area, extent.first + (u64::from(unit - extent.first_unit) << self.unit_shift)))
    }

    /// Whether `sectors` from `lba` lie inside the area.
    ///
    /// Errors: [`StorageError::OutOfRange`].
    #[inline]
    pub(crate) fn check(&self, area: Area, lba: u64, sectors: u64) -> Result<(), StorageError> {
        let extent = self.extent(area, lba);
        let is_inside = extent.is_some_and(|extent| sectors <= extent.sectors - (lba - extent.first));
        if is_inside { Ok(()) } else { self.check_all(area, lba, sectors) }
    }

    /// The run of an area in which a sector lies.
    #[inline]
    fn extent(&self, area: Area, lba: u64) -> Option<&Extent> {
        let has = |extent: &&Extent| lba.wrapping_sub(extent.first) < extent.sectors && extent.area == area;
        // The first is all of the user area of most cards.
        self.extents.first().filter(has).or_else(|| self.other_extent(area, lba))
    }

    #[inline(never)]
    fn other_extent(&self, area: Area, lba: u64) -> Option<&Extent> {
        self.extents.iter().find(|extent| extent.area == area && lba.wrapping_sub(extent.first) < extent.sectors)
    }

    /// The same for ranges that span several runs of the area.
    #[inline(never)]
    fn check_all(&self, area: Area, lba: u64, sectors: u64) -> Result<(), StorageError> {
        let size = self.sectors(area);
        match lba.checked_add(sectors) {
            Some(end) if end <= size => Ok(()),
            _ => Err(StorageError::OutOfRange { area, lba, sectors, size }),
        }
    }

    /// Whether the sectors from `at` to `end` are in one mapping unit, judged by the unit's size.
    #[inline]
    pub(crate) fn is_in_one_unit(&self, at: u64, end: u64) -> bool {
        at >> self.unit_shift == (end - 1) >> self.unit_shift
    }

    /// The region and the unit there, if the sectors are one whole unit of the area's first run.
    #[inline]
    pub(crate) fn whole_unit(&self, area: Area, lba: u64, sectors: u32) -> Option<(u8, u32)> {
        let extent = self.extents.first().filter(|extent| extent.area == area)?;
        let within = lba.wrapping_sub(extent.first);
        let is_inside = within < extent.sectors && u64::from(sectors) <= extent.sectors - within;
        let is_whole = sectors == self.unit_sectors() && within & (u64::from(sectors) - 1) == 0;
        (is_inside && is_whole).then(|| (extent.region, extent.first_unit + (within >> self.unit_shift) as u32))
    }

    /// The run that starts at `lba`, of at most `sectors` sectors; the caller has checked the range.
    #[inline]
    pub(crate) fn run(&self, area: Area, lba: u64, sectors: u64) -> Run {
        let extent = self.extent(area, lba).expect("the range was checked");
        let within = lba - extent.first;
        let sectors = sectors.min(extent.sectors - within);
        let mask = u64::from(self.unit_sectors()) - 1;
        let head = (within & mask) as u32;
        let end = within + sectors;
        let tail = (end.wrapping_neg() & mask) as u32;
        let first = within >> self.unit_shift;
        let units = ((end + mask) >> self.unit_shift) - first;
        Run { region: extent.region, unit: extent.first_unit + first as u32, units: units as u32, head, tail, sectors }
    }
}
