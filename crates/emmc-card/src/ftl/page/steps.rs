//! Collection in steps: the victim in progress, what host writes owe, and steps of idle time.
//!
//! Every host unit takes one of the clean places; a victim with `v` valid of `n` units gives `n - v` places back for
//! `v` copies. Paced collection therefore copies `v / (n - v)` units for each host unit, so that the clean places stay
//! at the *reserve*: then a host write finds its next block without waiting for a whole victim.
//!
//! Proof that blocks suffice: clean places are those of free blocks, the rest of open blocks, and the share of the
//! victim in progress that its copies have paid for, which is less than a block. The reserve is the free blocks that
//! must exist when a block is opened, plus a block for each other open block, plus one for the victim. Whatever is
//! missing beyond that (after failures, levelling, or a change of load) is collected at once before a block is opened
//! (`make_room`), so the number of free blocks is never lower than with collection at once.

use emmc_units::{Instant, Nanos};

use super::PageFtl;
use super::collect::Scratch;
use crate::ftl::FtlError;
use crate::nand::Nand;
use crate::profile::{FtlConfig, GcPace, GcPolicy};

/// Stripes that are copied between two looks at the time.
const STRIPES_AT_ONCE: u32 = 8;
/// A host write that owes copies works off at most this multiple of its own share.
const CATCH_UP: u64 = 2;
/// A victim gives back at least this share of a block, for the pace; one that gives less is copied at this pace.
const LEAST_GAIN: u32 = 64;
/// Length of a step of background work. Source: phases of at most 5 to 20 ms, so that HPI ends in time. Assumed: 10 ms.
const IDLE_STEP: Nanos = Nanos::from_millis(10);

/// A block that is collected in steps: no candidate any more, and not yet free.
#[derive(Clone, Copy, Debug)]
pub(super) struct InProgress {
    pub(super) block: u32,
    /// Valid units when it was chosen.
    valid: u32,
    /// The page that is looked at next.
    page: u32,
    copied: u32,
    /// The page up to which map entries were prefetched.
    foreseen: u32,
    reason: Reason,
}

/// Why a victim was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// For the space that it gives back.
    Space,
    /// To level wear.
    Wear,
    /// It was read too often, or its data is old.
    Refresh,
}

/// The pace of collection beside host writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Clean places that host writes keep; 0: victims are collected at once.
    reserve: u64,
    /// The longest that one call may collect before it returns, as long as blocks are free.
    busy_max: Nanos,
}

impl Pace {
    /// The pace of a region of `blocks` blocks without spares and logs, for `units` logical units.
    pub(super) fn new(config: &FtlConfig, frontiers: u32, blocks: u32, units: u32, block_units: u32) -> Self {
        let extra = frontiers + 1;
        let least = units.div_ceil(block_units) + frontiers + config.gc_low_blocks + 1;
        // A region with hardly more blocks than it must have keeps no reserve: it would copy full blocks for it.
        let has_room = blocks >= least + 2 * extra;
        let blocks = if config.gc_pace == GcPace::Paced && has_room { config.gc_low_blocks + extra } else { 0 };
        Self {
            reserve: u64::from(blocks) * u64::from(block_units),
            busy_max: Nanos::from_millis(config.gc_busy_max_ms.into()),
        }
    }
}

impl PageFtl {
    /// Clean places: of free blocks, of open blocks, and what the victim in progress owes for its copies.
    fn clean_units(&self) -> u64 {
        let open: u32 = self.frontiers.iter().map(|frontier| frontier.end - frontier.fill).sum();
        let block = u64::from(self.block_units);
        let earned = self.in_progress.map_or(0, |victim| u64::from(victim.copied) * block / u64::from(victim.valid));
        u64::from(self.pool.free()) * block + u64::from(open) + earned
    }

    /// Copies what a stripe of host writes owes. Returns the end of the copies.
    #[inline]
    pub(super) fn keep_pace(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        // Cheaply first: most of the time of a card that is not full.
        if self.pace.reserve <= u64::from(self.pool.free()) * u64::from(self.block_units) {
            return Ok(now);
        }
        let clean = self.clean_units();
        if clean >= self.pace.reserve { Ok(now) } else { self.work_off(nand, self.pace.reserve - clean, now) }
    }

    fn work_off(&mut self, nand: &mut Nand, owed: u64, now: Instant) -> Result<Instant, FtlError> {
        let stripe = self.frontiers[self.roles.gc].slots.len() as u64;
        let (mut done, mut rate) = (now, None);
        // What is issued already is not part of it: with a cache the host is ahead of the flash.
        let begun = nand.quiet_at().max(now);
        loop {
            let Some(victim) = self.in_progress.or_else(|| self.begin_victim()) else { return Ok(done) };
            let gain = u64::from((self.block_units - victim.valid).max(self.block_units / LEAST_GAIN).max(1));
            // Places that a copy gives back are `gain / valid`.
            let share = |places: u64| (places * u64::from(victim.valid)).div_ceil(gain);
            let left = rate.get_or_insert_with(|| share(owed).min(share(stripe) * CATCH_UP));
            let units = (*left).min(stripe * u64::from(STRIPES_AT_ONCE)).min(self.places_for_copies()) as u32;
            if units == 0 {
                return Ok(done);
            }
            let before = self.stats.copied_units;
            done = done.max(self.step(nand, units, now)?);
            *left = left.saturating_sub((self.stats.copied_units - before).max(1));
            if *left == 0 || done.since(begun.min(done)) >= self.pace.busy_max {
                return Ok(done);
            }
        }
    }

    /// Where copies share the host's block, they open no block below the number that a host write waits for.
    pub(super) fn places_for_copies(&self) -> u64 {
        let frontier = &self.frontiers[self.roles.gc];
        let is_short = self.roles.gc == self.roles.host && self.pool.free() <= self.low_blocks;
        if is_short { u64::from(frontier.end - frontier.fill) } else { u64::MAX }
    }

    /// Chooses the next victim: for space, or for wear if that is due. `None`: nothing would be gained.
    fn begin_victim(&mut self) -> Option<InProgress> {
        let fullest = self.block_units;
        let block = self.victims.pick(&self.map)?;
        if self.map.valid_in(block) == fullest && self.gc == GcPolicy::Greedy {
            self.victims.insert(block, fullest);
            return None;
        }
        self.stats.foreground_stalls += 1;
        Some(self.begin(block, Reason::Space))
    }

    /// Starts with a block that is no candidate any more.
    pub(super) fn begin(&mut self, block: u32, reason: Reason) -> InProgress {
        debug_assert!(self.in_progress.is_none());
        let valid = self.map.valid_in(block).max(1);
        let victim = InProgress { block, valid, page: 0, copied: 0, foreseen: 0, reason };
        self.in_progress = Some(victim);
        victim
    }

    /// Copies about `units` units of the victim in progress, whole pages of it, and frees it if none is left.
    pub(super) fn step(&mut self, nand: &mut Nand, units: u32, now: Instant) -> Result<Instant, FtlError> {
        let Some(mut victim) = self.in_progress else { return Ok(now) };
        let mut scratch = std::mem::take(&mut self.scratch);
        // A step of the whole victim fetches for itself.
        scratch.is_foreseen = units < self.block_units;
        if scratch.is_foreseen {
            victim.foreseen = self.foresee_victim(nand, victim.block, victim.page, victim.foreseen);
        }
        let end = self.gather(nand, victim.block, victim.page, units, &mut scratch);
        let moved = self.move_gathered(nand, &victim, victim.page..end, &scratch, now);
        let count = scratch.units.len() as u32;
        self.scratch = scratch;
        // After an error the step is repeated: what was moved is not valid here any more.
        let done = moved?;
        let foreseen = victim.foreseen;
        if let Some(victim) = &mut self.in_progress {
            victim.foreseen = foreseen;
            // What a failure has made valid again lies before.
            victim.page = if end < nand.block(victim.block).next_page { end } else { 0 };
            victim.copied = (victim.copied + count).min(victim.valid);
        }
        if self.map.valid_in(victim.block) > 0 {
            return Ok(done);
        }
        self.in_progress = None;
        if victim.reason == Reason::Space {
            self.note_life(victim.block);
        }
        self.free(nand, victim.block);
        match victim.reason {
            Reason::Wear => {
                self.stats.wear_moves += 1;
                return Ok(done.max(self.close_still(nand, now)?));
            }
            Reason::Refresh => self.stats.refreshes += 1,
            Reason::Space => {
                self.stats.collections += 1;
                if self.pace.reserve > 0 && self.levelling.is_due() {
                    self.begin_levelling(nand);
                }
            }
        }
        Ok(done)
    }

    /// Ends what is in progress.
    pub(super) fn finish_victim(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        while self.in_progress.is_some() {
            done = done.max(self.step(nand, u32::MAX, now)?);
        }
        Ok(done)
    }

    /// Whether the victim in progress is being refreshed.
    pub(super) fn is_refreshing(&self) -> bool {
        self.in_progress.is_some_and(|victim| victim.reason == Reason::Refresh)
    }

    /// The victim in progress is a candidate again.
    pub(super) fn give_up_victim(&mut self) {
        if let Some(victim) = self.in_progress.take() {
            self.victims.insert(victim.block, self.map.valid_in(victim.block));
        }
    }

    /// A step of idle time: about 10 ms of the victim in progress, or of a new one. `None`: there is no work.
    pub(super) fn idle_step(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError> {
        if self.in_progress.is_none() && !self.begin_idle(nand, now) {
            return Ok(None);
        }
        let stripe = self.frontiers[self.roles.gc].slots.len() as u32;
        let (mut done, begun) = (now, nand.quiet_at().max(now));
        while self.in_progress.is_some() && done.since(begun.min(done)) < IDLE_STEP {
            done = done.max(self.step(nand, stripe, done)?);
        }
        Ok(Some(done))
    }

    fn begin_idle(&mut self, nand: &Nand, now: Instant) -> bool {
        if self.begin_refresh(nand, true, now) {
            return true;
        }
        // Up to the reserve too: a card that has rested serves a burst without copies.
        let enough = self.pool.free() >= self.high_blocks && (self.high_blocks == 0 || self.pressure() == 0);
        if enough || !self.has_garbage() {
            return self.begin_levelling(nand);
        }
        let Some(mut victim) = self.victims.pick(&self.map) else { return false };
        if self.map.valid_in(victim) == self.block_units {
            // The policy would only move data around.
            self.victims.insert(victim, self.block_units);
            let Some(emptiest) = self.victims.emptiest(&self.map) else { return false };
            victim = emptiest;
            self.victims.remove(victim);
        }
        self.begin(victim, Reason::Space);
        true
    }

    /// Whether host writes pay for collection: 0 not, 1 they do, 2 they are a block behind the pace.
    pub(super) fn pressure(&self) -> u8 {
        let (clean, reserve, block) = (self.clean_units(), self.pace.reserve, u64::from(self.block_units));
        u8::from(reserve > 0 && clean < reserve + block / 4) + u8::from(clean + block < reserve)
    }

    /// Whether host writes collect in steps.
    pub(super) fn is_paced(&self) -> bool {
        self.pace.reserve > 0
    }

    /// Moves units that were gathered from some pages of a victim.
    fn move_gathered(
        &mut self,
        nand: &mut Nand,
        victim: &InProgress,
        pages: std::ops::Range<u32>,
        scratch: &Scratch,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let per_page = self.geometry.units_per_page;
        self.map.empty_part(victim.block, pages.start * per_page..pages.end * per_page);
        let role = if victim.reason == Reason::Wear { self.roles.still } else { self.roles.gc };
        self.move_units(nand, victim.block, role, scratch, now)
    }
}
