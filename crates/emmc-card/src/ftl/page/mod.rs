//! Page mapping: every unit may be anywhere; blocks are collected when free ones run out.
//!
//! One concern per file: `frontier` (open blocks), `place` (placing and programming units, failing blocks), `write`
//! (the host's writes, and when they complete), `collect` (garbage collection), `steps` (the same in steps), `level`
//! (static wear levelling), `refresh` (blocks that were read often or are old), `read`, `trim` (trims, discards,
//! purging), `recover`, `fall_back` (older copies on a worn-out part) and `audit`.
//!
//! # What a power cut may lose
//! Units wait in memory until their stripe is full; the map has their future places. An obsolete block is not erased
//! when it is freed but when it is reused, and only when everything that was placed before it was freed is *settled*:
//! in flash, on word lines that take no more programs. Until then the older copy exists, and a cut leaves either the
//! old or the new one. [`Durability::Reliable`] settles before it returns, by programming padding up to the end of the
//! word lines that hold data; [`Durability::Flash`] does not, so a later program that is interrupted may destroy such a
//! page.
//!
//! Absent on purpose: the cost of a mapping cache (`mapping_cache`), an SLC front (`slc_front`).

mod audit;
mod collect;
mod fall_back;
mod frontier;
mod level;
mod place;
mod read;
mod recover;
mod refresh;
mod steps;
#[cfg(test)]
mod tests;
mod trim;
mod write;

use std::collections::VecDeque;

use emmc_units::Instant;

use super::gc::Victims;
use super::map::Map;
use super::mapping_cache::MappingCache;
use super::pool::{Pool, TakeOrder};
use super::refresh::Refresh;
use super::trim_log::TrimLog;
use super::unsure::Unsure;
use super::wear::Levelling;
use super::{Durability, Ftl, FtlError, FtlStats, RegionSpec, TrimKind};
use crate::nand::{BlockHealth, CellMode, Content, Geometry, NO_UNIT, Nand};
use crate::profile::{FtlConfig, GcPolicy, TRIM_LOG_BLOCKS};
use frontier::Frontier;
use refresh::Refreshing;
use steps::{InProgress, Pace};

/// A page-mapped layer.
#[derive(Debug)]
pub struct PageFtl {
    spec: RegionSpec,
    /// All blocks, those of mapping pages too.
    owned: Vec<u32>,
    geometry: Geometry,
    /// Units of a block in the region's mode.
    block_units: u32,
    /// By page: the page from which on no page shares a word line with it or one before it.
    word_line_ends: Vec<u32>,
    map: Map,
    pool: Pool,
    gc: GcPolicy,
    victims: Victims,
    levelling: Levelling,
    frontiers: Vec<Frontier>,
    roles: Roles,
    low_blocks: u32,
    high_blocks: u32,
    pace: Pace,
    refreshing: Option<Box<Refreshing>>,
    /// The victim that is collected in steps.
    in_progress: Option<InProgress>,
    /// State of each block, from the region's first.
    states: Vec<BlockState>,
    first_block: u32,
    /// Rises with each block that is freed.
    epoch: u64,
    /// Blocks that were opened.
    opened: u64,
    /// Blocks with a failed program that still hold valid units.
    failing: Vec<u32>,
    worn_out: bool,
    /// End of the last issued program.
    programmed_by: Instant,
    /// End of the copies beside reads that share a block with host writes: their stripe may hold the beginning of a
    /// write whose end must be durable.
    copied_beside: Instant,
    /// Since which epoch units are in memory only, because their program failed; `u64::MAX`: there are none.
    replacing: u64,
    /// Units of a failed program that wait for a place in another block: they are in memory only, and no frontier has
    /// them.
    unplaced: Vec<u32>,
    /// Units that wait in memory and have no valid copy in flash.
    fresh: Vec<u32>,
    mapping_cache: Option<MappingCache>,
    trim_log: Option<TrimLog>,
    log_blocks: Vec<u32>,
    /// Discards that are not in the log yet: first unit and count.
    discards: Vec<(u32, u32)>,
    /// Copies in flash that the host has overwritten, the oldest first, if bytes are stored.
    superseded: VecDeque<Superseded>,
    /// Units without a certain place since the last power cut.
    unsure: Vec<Unsure>,
    /// During recovery: free blocks that must not be erased yet.
    held: std::collections::BTreeSet<u32>,
    keeps_orders: bool,
    keeps_data: bool,
    stats: FtlStats,
    scratch: collect::Scratch,
    /// Memory of [`Ftl::read`] that is used again: where units are.
    read_places: Vec<(Option<(usize, usize)>, Content)>,
}

/// The frontiers and their use.
#[derive(Clone, Copy, Debug)]
struct Roles {
    host: usize,
    cold: usize,
    gc: usize,
    /// For static data that moves to level wear.
    still: usize,
}

/// State of a block besides its content.
#[derive(Clone, Copy, Debug, Default)]
struct BlockState {
    /// The epoch in which it was freed; 0: never, or not since it was erased.
    freed_in: u64,
    /// Whether it must be erased before it is written.
    is_dirty: bool,
    /// Host units written before it was opened; 0 if it is not a host block.
    born: u64,
    /// Blocks opened before it was.
    opened: u64,
}

/// A copy of a unit that the host has overwritten.
#[derive(Clone, Copy, Debug)]
struct Superseded {
    /// Its bytes may be dropped when all units placed before this epoch are durable.
    epoch: u64,
    /// Its place, and the sequence number of its page: a different number means another page.
    old: u32,
    order: u64,
}

impl PageFtl {
    /// A layer over new flash. Its first two good blocks hold the log of trims, unless the part ignores trims.
    pub fn new(config: &FtlConfig, spec: &RegionSpec, nand: &mut Nand) -> Self {
        let geometry = *nand.geometry();
        let main = spec.blocks.len() - spec.spares as usize;
        let is_good = |block: &&u32| nand.block(**block).health == BlockHealth::Good;
        let logs = if config.trim_frees { TRIM_LOG_BLOCKS as usize } else { 0 };
        let log_blocks: Vec<u32> = spec.blocks[..main].iter().filter(is_good).take(logs).copied().collect();
        let own: Vec<u32> = spec.blocks.iter().filter(|block| !log_blocks.contains(block)).copied().collect();
        for &block in &own {
            nand.set_mode(block, spec.mode);
        }
        let first = spec.blocks.iter().copied().min().unwrap_or(0);
        let range = first..spec.blocks.iter().copied().max().map_or(0, |last| last + 1);
        let order = if config.wear.dynamic { TakeOrder::LeastWorn } else { TakeOrder::InTurn };
        let block_units = geometry.units_in(spec.mode);
        let stripe_units = geometry.planes * geometry.units_per_page;
        let stripe_bytes = if nand.keeps_data() { stripe_units as usize * geometry.unit_bytes as usize } else { 0 };
        let roles = Roles::new(config);
        Self {
            geometry,
            block_units,
            word_line_ends: word_line_ends(&geometry, spec.mode),
            map: Map::new(spec.units, &geometry, range.clone()),
            pool: Pool::with_blocks(&own, spec.spares, order, nand),
            gc: config.gc,
            victims: Victims::new(config.gc, range.clone(), block_units, spec.seed),
            levelling: Levelling::new(config.wear.static_gap, own.len() as u32),
            frontiers: vec![Frontier::new(stripe_units, stripe_bytes); roles.count()],
            roles,
            low_blocks: config.gc_low_blocks,
            pace: Pace::new(
                config,
                roles.gc as u32 + 1,
                (own.len() as u32).saturating_sub(spec.spares),
                spec.units,
                block_units,
            ),
            refreshing: Refresh::of(config).map(|when| Box::new(Refreshing { when, read_often: Vec::new() })),
            in_progress: None,
            high_blocks: config.gc_high_blocks,
            states: vec![BlockState::default(); range.len()],
            first_block: first,
            epoch: 0,
            opened: 0,
            failing: Vec::new(),
            worn_out: false,
            programmed_by: Instant::START,
            copied_beside: Instant::START,
            replacing: u64::MAX,
            unplaced: Vec::new(),
            fresh: Vec::new(),
            mapping_cache: None,
            trim_log: config.trim_frees.then(|| TrimLog::new(nand, &log_blocks, spec.units)),
            log_blocks,
            discards: Vec::new(),
            superseded: VecDeque::new(),
            unsure: Vec::new(),
            held: std::collections::BTreeSet::new(),
            keeps_orders: nand.keeps_orders(),
            keeps_data: nand.keeps_data(),
            stats: FtlStats::default(),
            scratch: collect::Scratch::default(),
            read_places: Vec::new(),
            owned: spec.blocks.clone(),
            spec: spec.clone(),
        }
    }

    /// The same with only part of its map in memory. Map changes by garbage collection are not charged to the cache.
    pub fn with_mapping_cache(mut self, cache: MappingCache) -> Self {
        self.owned.extend(cache.blocks());
        self.mapping_cache = Some(cache);
        self
    }

    /// Loads the mapping pages of units; returns when they are in memory.
    #[inline]
    fn touch_map(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        dirty: bool,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let Some(cache) = &mut self.mapping_cache else { return Ok(now) };
        let touched = cache.touch_run(nand, first, count, dirty, now);
        (self.stats.map_misses, self.stats.map_writes) = (cache.misses(), cache.writes());
        self.worn_out |= touched == Err(FtlError::WornOut);
        touched
    }

    fn state(&mut self, block: u32) -> &mut BlockState {
        &mut self.states[(block - self.first_block) as usize]
    }

    /// Whether the newest copy of a unit, mapped to `physical`, is not programmed yet.
    fn is_in_memory(&self, unit: u32, physical: u32) -> bool {
        self.waiting(physical).is_some() || self.unplaced.contains(&unit)
    }

    /// The frontier in whose memory a physical unit waits, and its slot there.
    fn waiting(&self, physical: u32) -> Option<(usize, usize)> {
        self.frontiers.iter().enumerate().find_map(|(role, frontier)| Some((role, frontier.waiting(physical)?)))
    }
}

fn word_line_ends(geometry: &Geometry, mode: CellMode) -> Vec<u32> {
    let pages = geometry.pages_in(mode);
    let end = |page: u32| geometry.word_line(mode, page).last().map_or(page, |last| last.min(pages - 1)) + 1;
    (0..pages).map(end).collect()
}

impl Roles {
    fn new(config: &FtlConfig) -> Self {
        let cold = usize::from(config.hot_cold);
        let gc = cold + usize::from(config.separate_gc);
        Self { host: 0, cold, gc, still: gc + usize::from(config.wear.static_gap > 0) }
    }

    fn count(self) -> usize {
        self.still + 1
    }
}

impl Ftl for PageFtl {
    fn units(&self) -> u32 {
        self.map.units()
    }

    #[inline(always)]
    fn write(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        data: Option<&[u8]>,
        durability: Durability,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        self.write_units(nand, first, count, data, durability, now)
    }

    fn foresee(&self, soon: &[u32], next: &[u32]) {
        self.map.foresee(soon, next);
    }

    fn read(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let done = self.read_units(nand, first, count, out, now)?;
        if self.refreshing.is_some() {
            self.refresh_beside(nand, done)?;
        }
        Ok(done)
    }

    fn trim(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        kind: TrimKind,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        self.trim_units(nand, first, count, kind, now)
    }

    fn supersede(&mut self, unit: u32) {
        let old = self.map.clear(unit);
        if old != NO_UNIT {
            let block = self.map.block_of(old);
            self.victims.lower(block, self.map.valid_in(block));
        }
    }

    fn flush(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let done = self.settle_host(nand, now)?;
        let logged = self.log_discards(nand, now)?;
        Ok(done.max(logged).max(self.programmed_by))
    }

    fn flush_row(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let done = self.flush(nand, now)?;
        Ok(done.max(self.end_row(nand, self.roles.host, now)?).max(self.end_row(nand, self.roles.cold, now)?))
    }

    fn is_mapped(&self, unit: u32) -> bool {
        self.map.lookup(unit) != NO_UNIT
    }

    fn mapped_units(&self) -> u32 {
        self.map.mapped()
    }

    fn background(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError> {
        self.background_step(nand, now)
    }

    fn urgency(&self, _nand: &Nand) -> u8 {
        self.background_urgency()
    }

    fn purge(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        self.purge_blocks(nand, now)
    }

    fn recover(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        self.rebuild(nand, &|_| false, now)
    }

    fn recover_below(
        &mut self,
        nand: &mut Nand,
        is_superseded: &dyn Fn(u32) -> bool,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        self.rebuild(nand, is_superseded, now)
    }

    fn spares(&self) -> (u32, u32) {
        self.pool.spares()
    }

    fn blocks(&self) -> &[u32] {
        &self.owned
    }

    fn valid_in(&self, block: u32) -> Option<u32> {
        // Behind the region's own: those of the mapping pages.
        let apart = &self.owned[self.spec.blocks.len()..];
        (!apart.contains(&block)).then(|| self.map.valid_in(block))
    }

    fn stats(&self) -> &FtlStats {
        &self.stats
    }

    fn audit(&self, nand: &Nand) -> Result<(), String> {
        self.check_all(nand)
    }
}
