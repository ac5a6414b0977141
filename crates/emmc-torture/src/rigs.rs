//! Small parts to torture: geometries, layers and policies drawn from a seed, so small that collection, folding and
//! merging never rest.

use crate::card::Card;
use crate::subject::{Layer, Subject};
use emmc_card::ftl::mapping_cache::MappingCache as MappingPages;
use emmc_card::ftl::{self, RegionSpec};
use emmc_card::nand::{CellMode, Geometry, Nand, StoredContent};
use emmc_card::profile::{
    Ageing, CellConfig, Failures, FtlConfig, GcPace, GcPolicy, Mapping, MappingCache, NandConfig, Refresh, Segment,
    SegmentOrder, SlcCache, TRIM_LOG_BLOCKS, WearLevelling,
};
use emmc_units::Rng;

const UNIT_BYTES: u32 = 32;

/// A part: a layer on its own flash, or a whole device.
pub(crate) fn draw(rng: &mut Rng) -> Result<Box<dyn Subject>, String> {
    if chance(rng, 2) { Ok(Box::new(layer(rng))) } else { Ok(Box::new(Card::draw(rng)?)) }
}

/// A layer on its own flash.
pub(crate) fn draw_layer(rng: &mut Rng) -> Box<dyn Subject> {
    Box::new(layer(rng))
}

/// An area of a device that is not the user's.
pub(crate) fn draw_area(rng: &mut Rng) -> Result<Box<dyn Subject>, String> {
    Ok(Box::new(Card::draw_area(rng)?))
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

fn chance(rng: &mut Rng, one_in: u64) -> bool {
    rng.below(one_in) == 0
}

fn layer(rng: &mut Rng) -> Layer {
    // Drawn apart, so that a case without it is the same as before there were paces.
    let mut apart = Rng::new(rng.clone().next_u64() ^ 0x9ace);
    let nand = flash(rng);
    let mut config = if chance(rng, 3) { segments(rng) } else { pages(rng) };
    let mut beyond = 0;
    if chance(&mut apart, 2) {
        config.gc_pace = GcPace::Paced;
        config.gc_busy_max_ms = pick(&mut apart, &[1, 20, 250]);
        if let Some(segment) = config.segment.as_mut().filter(|segment| segment.random_logs > 0) {
            // Drawn apart once more, for the same reason.
            segment.merges_at_once = pick(&mut Rng::new(apart.clone().next_u64() ^ 0x3e), &[1, 3, 8]);
        }
        // Blocks for a reserve, mostly.
        beyond = if config.mapping == Mapping::Page { apart.below(14) as u32 } else { 0 };
    }
    let stream_fold_percent = if chance(&mut apart, 3) { pick(&mut apart, &[30, 300]) } else { 0 };
    let mut nand = nand;
    if chance(&mut apart, 3) {
        (nand.ageing, config.refresh) = age(&mut apart);
    }
    // One bit a cell takes no SLC cache in front.
    if nand.cell != CellMode::Slc && chance(rng, 3) {
        let bypass_bytes = pick(rng, &[0, 0, 4, 10]) * UNIT_BYTES;
        config.slc_cache = Some(SlcCache {
            blocks: 5,
            low_blocks: pick(rng, &[1, 2]),
            bypass_bytes,
            idle_fold: chance(rng, 2),
            stream_fold_percent,
        });
    }
    let mode = if chance(rng, 6) { nand.cell.single_bit() } else { nand.cell };
    // As many blocks as a layout gives the layers at least, and a few more.
    let (data, spare_blocks) = (8 + rng.below(5) as u32, 3);
    let front = config.slc_cache.map_or(0, |cache| cache.blocks);
    let geometry = Geometry::new(&nand, 0, UNIT_BYTES);
    let units = data * geometry.units_in(mode) - rng.below(5) as u32;
    let map = config.mapping_cache.map_or(0, |cache| MappingPages::blocks_for(&cache, units, &geometry));
    let room = working_room(&config) + TRIM_LOG_BLOCKS + map + rng.below(4) as u32 + beyond;
    let geometry = Geometry::new(&nand, front + data + room + spare_blocks, UNIT_BYTES);
    let spec = RegionSpec {
        blocks: (0..geometry.blocks).collect(),
        mode,
        units,
        spares: spare_blocks,
        slc_blocks: front,
        seed: rng.next_u64(),
    };
    let name = format!(
        "{:?} {:?}{}{}{}, {} dies, {} planes, {} units a page, {} pages a block",
        nand.cell,
        config.mapping,
        if config.slc_cache.is_some() { " with SLC cache" } else { "" },
        if config.mapping_cache.is_some() { " with mapping cache" } else { "" },
        match (config.gc_pace, config.refresh.is_some()) {
            (GcPace::Paced, true) => ", paced, ageing",
            (GcPace::Paced, false) => ", paced",
            (GcPace::AtOnce, true) => ", ageing",
            (GcPace::AtOnce, false) => "",
        },
        nand.dies,
        nand.planes,
        geometry.units_per_page,
        nand.pages_per_block
    );
    let mut nand = Nand::new(&nand, geometry, rng.next_u64()).keeping(StoredContent::Data);
    let ftl = ftl::build(&config, &spec, &mut nand);
    Layer { name, nand, ftl }
}

/// Flash that ages fast, with everything on, and refresh that rarely rests.
pub(crate) fn age(rng: &mut Rng) -> (Option<Ageing>, Option<Refresh>) {
    let ageing = Ageing {
        program_faster: 0.3,
        erase_slower: 2.0,
        retries_worn: 3.0,
        retries_year: 30.0,
        retries_disturbed: 40.0,
        endurance_below: true,
    };
    let (reads, days) = pick(rng, &[(4, 0), (30, 1), (0, 20), (12, 60)]);
    (Some(ageing), Some(Refresh { reads, days }))
}

/// Blocks beyond those that hold the units, without which a layer cannot work.
fn working_room(config: &FtlConfig) -> u32 {
    match &config.segment {
        Some(segment) => segment.open_aus + segment.random_logs + 2,
        None => 1 + u32::from(config.separate_gc) + u32::from(config.hot_cold) + config.gc_low_blocks + 1,
    }
}

fn cell(rng: &mut Rng, bits: u32, endurance: u32) -> CellConfig {
    let program_us = [200.0, 500.0, 1300.0, 2000.0];
    CellConfig {
        read_us: 50.0,
        program_us: program_us[bits as usize - 1..][..if bits == 1 { 1 } else { 2 }].to_vec(),
        erase_ms: 3.0,
        endurance,
        time_spread: pick(rng, &[0.0, 0.1]),
        endurance_spread: 0.1,
    }
}

fn flash(rng: &mut Rng) -> NandConfig {
    let cell_mode = pick(rng, &[CellMode::Slc, CellMode::Mlc, CellMode::Mlc, CellMode::Tlc]);
    let (dies, planes) = (pick(rng, &[1, 1, 2]), pick(rng, &[1, 2]));
    let rows = cell_mode.bits() * pick(rng, &[6, 8, 10]);
    let worn = chance(rng, 4);
    let endurance = if worn { 60 } else { 100_000 };
    let failures = match rng.below(4) {
        0 => Failures { program_ppb: 500_000, erase_ppm: 500 },
        1 => Failures { program_ppb: 5_000_000, erase_ppm: 0 },
        _ => Failures::default(),
    };
    NandConfig {
        cell: cell_mode,
        channels: if dies == 2 { pick(rng, &[1, 2]) } else { 1 },
        dies,
        planes,
        page_bytes: UNIT_BYTES * pick(rng, &[1, 2, 4]),
        pages_per_block: dies * planes * rows,
        blocks: None,
        over_provisioning: 0.1,
        spare_blocks: 3,
        factory_bad_blocks: pick(rng, &[0, 0, 2]),
        channel_mb_s: pick(rng, &[1.0, 100.0]),
        cached_program: chance(rng, 2),
        multi_plane: chance(rng, 2),
        multi_plane_read: chance(rng, 2),
        native: cell(rng, cell_mode.bits(), endurance),
        slc: Some(cell(rng, 1, endurance * 2)),
        failures,
        ageing: None,
    }
}

fn pages(rng: &mut Rng) -> FtlConfig {
    let policies = [
        GcPolicy::Greedy,
        GcPolicy::Greedy,
        GcPolicy::Fifo,
        GcPolicy::DChoices(3),
        GcPolicy::Windowed(4),
        GcPolicy::CostBenefit,
    ];
    let mapping_cache = MappingCache { pages: pick(rng, &[2, 5]), units_per_page: pick(rng, &[16, 32]) };
    FtlConfig {
        mapping: Mapping::Page,
        unit_bytes: UNIT_BYTES,
        gc: pick(rng, &policies),
        gc_low_blocks: pick(rng, &[3, 3, 3]),
        gc_pace: GcPace::AtOnce,
        gc_busy_max_ms: 250,
        gc_high_blocks: pick(rng, &[0, 5, 7]),
        separate_gc: chance(rng, 2),
        hot_cold: chance(rng, 4),
        wear: WearLevelling { dynamic: chance(rng, 2), static_gap: pick(rng, &[0, 2, 5]) },
        mapping_cache: chance(rng, 4).then_some(mapping_cache),
        slc_cache: None,
        segment: None,
        refresh: None,
        trim_frees: true,
    }
}

fn segments(rng: &mut Rng) -> FtlConfig {
    let segment = Segment {
        open_aus: pick(rng, &[1, 2, 4]),
        order: pick(rng, &[SegmentOrder::Linear, SegmentOrder::Random]),
        random_logs: pick(rng, &[0, 1, 3]),
        random_log_bytes: pick(rng, &[0, 4, 100]) * UNIT_BYTES,
        steps_back: 0,
        merges_at_once: 1,
    };
    FtlConfig { mapping: Mapping::Segment, mapping_cache: None, segment: Some(segment), ..pages(rng) }
}
