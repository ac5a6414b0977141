//! Segment mapping: allocation units (AUs), each in its own block, as on cheap cards.
//!
//! An AU has the size of one block. A closed AU is in its home block, sequentially. A write opens it: it gets a log
//! block, and only `open_aus` of them are open at a time; one more closes the least recently written one. Closing
//! merges the two blocks into one:
//! - switch merge: the log is complete and sequential, so it becomes the home and the old home is erased;
//! - partial merge: the log is a sequential start, so only the rest is copied into it;
//! - full merge: everything is copied sequentially into a new block, and both are erased.
//!
//! A `linear` AU accepts ascending addresses only: if it is opened in its middle, its start is copied first; a write at
//! another address goes to the shared logs or, without any, closes it. A `random` AU accepts every address. The shared
//! logs (`random_logs`) also accept all small writes (`random_log_bytes`); when all are full the oldest is reclaimed,
//! which costs a full merge for every AU with units in it, in steps beside the next writes or at once (`gc_pace`).
//!
//! Safety depends on the sequence of events: a block is erased only after every unit that it held has been programmed
//! elsewhere or trimmed. Reliable writes start and end on whole word lines, so they do not damage other units, and
//! later programs do not damage them. If a log is inside a word line, it is merged into a new block first; if a shared
//! log is, the next one is started. Absent on purpose: static wear levelling (cold homes stay in place; free blocks are
//! taken least worn first), caching of the map (real ones keep a word for each AU), and sectors (`device`).

mod audit;
mod copy;
mod frontier;
mod idle;
mod layer;
mod merge;
mod place;
mod reclaim;
mod recover;
mod release;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::map::Map;
use super::pool::{Pool, TakeOrder};
use super::refresh::Refresh;
use super::trim_log::TrimLog;
use super::{FtlStats, RegionSpec};
use crate::nand::{BlockHealth, NO_UNIT, Nand};
use crate::profile::{FtlConfig, GcPace, SegmentOrder};
use frontier::Frontier;

/// Blocks of the log of trims.
const TRIM_BLOCKS: usize = crate::profile::TRIM_LOG_BLOCKS as usize;

/// An AU without a home.
const NO_BLOCK: u32 = u32::MAX;

/// An AU that can be written.
#[derive(Clone, Debug)]
struct Open {
    au: u32,
    log: Frontier,
    /// Where in the AU the last unit went; `None`: the log is empty.
    last: Option<u32>,
    /// Whether the log is a sequential start of the AU: ascending, and every valid unit below `last` is in it.
    in_order: bool,
}

/// The layer.
#[derive(Clone, Debug)]
pub struct SegmentFtl {
    spec: RegionSpec,
    order: SegmentOrder,
    open_max: usize,
    shared_max: usize,
    /// Whether the oldest log is reclaimed beside writes to the next, rather than before them.
    is_paced: bool,
    /// Merges that a paced log waits for until it does them, and the pages written while it waits.
    merges_at_once: u32,
    waited_pages: u32,
    /// The largest write that always goes to a shared log.
    small_units: u32,
    /// Steps back that the logs take of an AU before it is merged, 0: any number; and those taken since, by AU.
    steps_back_max: u32,
    steps_back: BTreeMap<u32, u32>,
    refresh: Option<Refresh>,
    trim_frees: bool,
    /// Background work merges until this number of blocks is free.
    free_wanted: u32,
    /// Units of an AU.
    per_block: u32,
    map: Map,
    pool: Pool,
    trims: TrimLog,
    /// The blocks of `trims`.
    meta: Vec<u32>,
    /// Blocks that are in use or free while no spare is missing.
    service: u32,
    /// By AU.
    homes: Vec<u32>,
    /// Least lately written first.
    open: Vec<Open>,
    /// Oldest first; the last is being written.
    shared: VecDeque<Frontier>,
    /// How many of them recovery left, where it found no block to reclaim one too many.
    shared_found: usize,
    /// While the oldest log is reclaimed in steps: its AUs that are still to be merged.
    reclaiming: Option<Vec<u32>>,
    /// Where the last write ended, if it was a part of a larger one.
    part_end: Option<u32>,
    /// Blocks in which a program failed.
    failing: BTreeSet<u32>,
    /// Such blocks without valid units, which are not marked bad yet.
    retiring: Vec<u32>,
    /// Further blocks of AUs that could not be merged because no block was left.
    strays: BTreeMap<u32, Vec<u32>>,
    /// No acknowledged data may be put at risk: a reliable write is in progress.
    careful: bool,
    /// While recovering: units whose newest copy may stop reading, its sequence number, and the block of the copy
    /// before.
    doubted: BTreeMap<u32, (u64, u32)>,
    stats: FtlStats,
    /// Memory for where the units of a copy lie, used again and again.
    sources: Vec<u32>,
}

fn empty_map(spec: &RegionSpec, nand: &Nand) -> Map {
    let first = spec.blocks.iter().min().copied().unwrap_or_default();
    let end = spec.blocks.iter().max().map_or(first, |last| last + 1);
    Map::new(spec.units, nand.geometry(), first..end)
}

impl SegmentFtl {
    /// A layer over blocks of which each is erased.
    pub fn new(config: &FtlConfig, spec: &RegionSpec, nand: &mut Nand) -> Self {
        // A profile without the section has been refused; one open AU in order is the least that works.
        let segment = config.segment.unwrap_or(crate::profile::Segment {
            open_aus: 1,
            order: SegmentOrder::Linear,
            random_logs: 0,
            random_log_bytes: 0,
            steps_back: 0,
            merges_at_once: 1,
        });
        let geometry = *nand.geometry();
        let good = |block: &&u32| nand.block(**block).health == BlockHealth::Good;
        let meta: Vec<u32> = spec.blocks.iter().filter(good).take(TRIM_BLOCKS).copied().collect();
        let blocks: Vec<u32> = spec.blocks.iter().filter(|block| !meta.contains(block)).copied().collect();
        for &block in &blocks {
            nand.set_mode(block, spec.mode);
        }
        let order = if config.wear.dynamic { TakeOrder::LeastWorn } else { TakeOrder::InTurn };
        let pool = Pool::with_blocks(&blocks, spec.spares, order, nand);
        let per_block = geometry.units_in(spec.mode);
        Self {
            order: segment.order,
            open_max: segment.open_aus.max(1) as usize,
            shared_max: segment.random_logs as usize,
            is_paced: config.gc_pace == GcPace::Paced,
            merges_at_once: segment.merges_at_once,
            waited_pages: 0,
            small_units: if segment.random_logs == 0 { 0 } else { segment.random_log_bytes / geometry.unit_bytes },
            steps_back_max: segment.steps_back,
            steps_back: BTreeMap::new(),
            refresh: Refresh::of(config),
            trim_frees: config.trim_frees,
            free_wanted: config.gc_high_blocks,
            per_block,
            map: empty_map(spec, nand),
            service: blocks.len() as u32 - spec.spares,
            trims: TrimLog::new(nand, &meta, spec.units),
            meta,
            pool,
            homes: vec![NO_BLOCK; spec.units.div_ceil(per_block) as usize],
            open: Vec::new(),
            shared: VecDeque::new(),
            shared_found: 0,
            reclaiming: None,
            part_end: None,
            failing: BTreeSet::new(),
            retiring: Vec::new(),
            strays: BTreeMap::new(),
            careful: false,
            doubted: BTreeMap::new(),
            stats: FtlStats::default(),
            sources: Vec::new(),
            spec: spec.clone(),
        }
    }

    fn au_of(&self, unit: u32) -> u32 {
        unit / self.per_block
    }

    fn open_index(&self, au: u32) -> Option<usize> {
        self.open.iter().position(|open| open.au == au)
    }

    /// An AU's units between two offsets.
    fn range(&self, au: u32, from: u32, to: u32) -> std::ops::Range<u32> {
        let first = au * self.per_block;
        let end = self.spec.units;
        (first + from).min(end)..(first + to.min(self.per_block)).min(end)
    }

    /// Valid units of an AU between two offsets that do not lie in `block`.
    fn valid_outside(&self, nand: &Nand, au: u32, from: u32, to: u32, block: u32) -> Vec<u32> {
        let (size, first) = (nand.geometry().units_per_block(), nand.geometry().first_unit(block, 0));
        self.units_at(self.range(au, from, to), |slot| slot != NO_UNIT && slot.wrapping_sub(first) >= size)
    }

    /// All valid units of an AU.
    fn valid_units(&self, au: u32) -> Vec<u32> {
        self.units_at(self.range(au, 0, self.per_block), |slot| slot != NO_UNIT)
    }

    /// Those of consecutive units whose places are such.
    fn units_at(&self, units: std::ops::Range<u32>, is_such: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut found = Vec::with_capacity(units.len());
        let places = self.map.places(units.clone());
        found.extend(units.zip(places).filter(|&(_, &slot)| is_such(slot)).map(|(unit, _)| unit));
        found
    }

    /// Whether a physical unit shares a word line with a page that is still to be programmed.
    fn is_exposed(&self, nand: &Nand, slot: u32) -> bool {
        let mut fronts = self.open.iter().map(|open| &open.log).chain(&self.shared);
        slot != NO_UNIT && fronts.any(|front| front.exposes(nand, slot))
    }

    /// The frontier in whose waiting page a physical unit is.
    fn waiting(&self, nand: &Nand, slot: u32) -> Option<&Frontier> {
        let logs = self.open.iter().map(|open| &open.log);
        logs.chain(&self.shared).find(|front| front.holds(nand, slot))
    }
}
