//! Builds the layers of a part.
//!
//! A page-mapped or segment-mapped layer at the bottom, with a mapping cache if the map does not fit in memory; above
//! it, if the region has blocks for it, the SLC front. Each takes its blocks from the region's, the front first.

use super::mapping_cache::MappingCache;
use super::page::PageFtl;
use super::segment::SegmentFtl;
use super::slc_front::{BLOCKS_MIN, SlcFront};
use super::{Ftl, RegionSpec};
use crate::nand::{BlockHealth, Nand};
use crate::profile::{FtlConfig, Mapping};

/// The layers of a region.
pub fn build(config: &FtlConfig, spec: &RegionSpec, nand: &mut Nand) -> Box<dyn Ftl> {
    let front = config.slc_cache.filter(|_| spec.slc_blocks >= BLOCKS_MIN);
    let Some(cache) = front else { return bottom(config, spec, nand) };
    let (log, rest) = spec.blocks.split_at(spec.slc_blocks as usize);
    let inner = bottom(config, &RegionSpec { blocks: rest.to_vec(), slc_blocks: 0, ..spec.clone() }, nand);
    Box::new(SlcFront::new(config, &cache, log, inner, nand))
}

/// The layer that holds all units.
fn bottom(config: &FtlConfig, spec: &RegionSpec, nand: &mut Nand) -> Box<dyn Ftl> {
    if config.mapping == Mapping::Segment {
        return Box::new(SegmentFtl::new(config, spec, nand));
    }
    // If the whole map of a region fits, there is no cache to simulate.
    let limited = config
        .mapping_cache
        .filter(|cache| u64::from(cache.pages) * u64::from(cache.units_per_page) < spec.units.into());
    let Some(cache) = limited else { return Box::new(PageFtl::new(config, spec, nand)) };
    let wanted = MappingCache::blocks_for(&cache, spec.units, nand.geometry()) as usize;
    let main = spec.blocks.len() - spec.spares as usize;
    let good = |block: &&u32| nand.block(**block).health == BlockHealth::Good;
    let map_blocks: Vec<u32> = spec.blocks[..main].iter().filter(good).take(wanted).copied().collect();
    let rest = spec.blocks.iter().filter(|block| !map_blocks.contains(block)).copied().collect();
    let cache = MappingCache::new(&cache, spec.units, &map_blocks, nand);
    Box::new(PageFtl::new(config, &RegionSpec { blocks: rest, ..spec.clone() }, nand).with_mapping_cache(cache))
}
