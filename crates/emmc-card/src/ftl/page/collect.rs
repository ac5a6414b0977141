//! Collecting blocks: in the foreground when free ones run out, in the background, and for wear's sake.

use std::collections::BTreeSet;
use std::ops::Range;

use emmc_units::Instant;

use super::PageFtl;
use crate::ftl::FtlError;
use crate::nand::{BlockHealth, NO_UNIT, Nand, NandError};

/// Memory that is used again and again.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// Logical units that move, and where in their block they are.
    units: Vec<u32>,
    places: Vec<u32>,
}

impl PageFtl {
    /// A block for a frontier that the host writes to, collecting others first where too few are free. Answers when
    /// there is room.
    #[cold]
    pub(super) fn make_room(&mut self, nand: &mut Nand, role: usize, mut now: Instant) -> Result<Instant, FtlError> {
        let shared = role == self.roles.gc;
        let mut left = 2 * self.spec.blocks.len();
        if self.pool.free() <= self.low_blocks {
            self.stats.foreground_stalls += 1;
        }
        now = self.retire_failing(nand, now)?;
        loop {
            if shared && self.frontiers[role].is_exhausted() {
                now = self.start_block(nand, role, now)?;
            }
            // Where collected units go to the same block, it has been taken from the free ones already.
            let enough = if shared { self.low_blocks } else { self.low_blocks + 1 };
            if self.pool.free() >= enough {
                if !self.frontiers[role].is_exhausted() {
                    return Ok(now);
                }
                if !shared {
                    return self.start_block(nand, role, now);
                }
                continue;
            }
            if left == 0 {
                self.worn_out = true;
                return Err(FtlError::WornOut);
            }
            left -= 1;
            let Some(victim) = self.victims.pick(&self.map) else {
                self.worn_out = true;
                return Err(FtlError::WornOut);
            };
            now = self.collect(nand, victim, now)?;
            if self.levelling.is_due() {
                now = self.level(nand, now)?.unwrap_or(now);
            }
        }
    }

    /// Moves a block's valid units elsewhere and frees it. Answers when those that fill stripes are programmed; the rest
    /// waits, as does the erase of the block.
    pub(super) fn collect(&mut self, nand: &mut Nand, victim: u32, now: Instant) -> Result<Instant, FtlError> {
        let moved = self.move_out(nand, victim, now);
        if moved.is_err() {
            self.victims.insert(victim, self.map.valid_in(victim));
        }
        let done = moved?;
        self.stats.collections += 1;
        self.free(nand, victim);
        Ok(done)
    }

    /// Moves a block's valid units to the frontier for collected ones.
    fn move_out(&mut self, nand: &mut Nand, victim: u32, now: Instant) -> Result<Instant, FtlError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        self.gather(nand, victim, &mut scratch);
        self.map.empty_block(victim);
        let moved = self.move_units(nand, victim, &scratch, now);
        self.scratch = scratch;
        moved
    }

    /// Moves the valid units of some pages of a block to the frontier for collected ones.
    pub(super) fn move_pages(
        &mut self,
        nand: &mut Nand,
        block: u32,
        pages: &BTreeSet<u32>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let mut all = Scratch::default();
        self.gather(nand, block, &mut all);
        let mut some = Scratch::default();
        for (&unit, &place) in all.units.iter().zip(&all.places) {
            if pages.contains(&(place / self.geometry.units_per_page)) {
                some.units.push(unit);
                some.places.push(place);
            }
        }
        self.map.take_from(block, &some.places);
        self.move_units(nand, block, &some, now)
    }

    /// The valid units of a block, as many bits at a time as a word has.
    fn gather(&self, nand: &Nand, victim: u32, scratch: &mut Scratch) {
        scratch.units.clear();
        scratch.places.clear();
        let spare = nand.spare(victim);
        for (index, &word) in self.map.valid_words(victim).iter().enumerate() {
            let mut rest = word;
            let first = scratch.units.len();
            while rest != 0 {
                let place = index as u32 * 64 + rest.trailing_zeros();
                scratch.units.push(spare[place as usize]);
                scratch.places.push(place);
                rest &= rest - 1;
            }
            self.map.foresee_places(&scratch.units[first..]);
        }
        debug_assert!(self.is_current(victim, scratch), "a stale copy would be moved");
    }

    /// Whether each unit that is to be moved lies where it is moved from.
    fn is_current(&self, victim: u32, scratch: &Scratch) -> bool {
        let first = self.geometry.first_unit(victim, 0);
        let mut pairs = scratch.units.iter().zip(&scratch.places);
        pairs.all(|(&unit, &place)| unit != NO_UNIT && self.map.lookup(unit) == first + place)
    }

    fn move_units(
        &mut self,
        nand: &mut Nand,
        victim: u32,
        scratch: &Scratch,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let role = self.roles.gc;
        let (mut done, mut ready) = (now, now);
        let (mut at, mut read_until) = (0, 0);
        while at < scratch.units.len() {
            if self.frontiers[role].is_exhausted() {
                if let Err(error) = self.start_block(nand, role, now) {
                    self.map.put_back(&scratch.units[at..]);
                    return Err(error);
                }
            }
            self.note_placed(role);
            let frontier = &self.frontiers[role];
            let run = at..scratch.units.len().min(at + (frontier.limit - frontier.fill) as usize);
            ready = ready.max(self.fetch(nand, victim, &scratch.places[at..], run.len(), &mut read_until, now)?);
            self.place_copies(nand, victim, scratch, run.clone());
            at = run.end;
            if self.frontiers[role].is_due() {
                match self.program(nand, role, ready) {
                    Ok(programmed) => done = done.max(programmed),
                    Err(error) => {
                        self.map.put_back(&scratch.units[at..]);
                        return Err(error);
                    }
                }
            }
        }
        self.stats.copied_units += scratch.units.len() as u64;
        Ok(done.max(ready))
    }

    /// Reads the pages of a run of units that have not been read yet, each once and all of it that is valid; `read_until`
    /// is the first page still to read.
    fn fetch(
        &mut self,
        nand: &mut Nand,
        victim: u32,
        places: &[u32],
        count: usize,
        read_until: &mut u32,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let per_page = self.geometry.units_per_page;
        let mut ready = now;
        let mut at = 0;
        while at < count {
            let page = places[at] / per_page;
            let valid = places[at..].iter().take_while(|&&place| place < (page + 1) * per_page).count();
            if page >= *read_until {
                *read_until = page + 1;
                ready = match nand.read(victim, page, valid as u32 * self.geometry.unit_bytes, now) {
                    Ok(read) => ready.max(read),
                    Err(NandError::Uncorrectable { .. }) => {
                        return Err(FtlError::Uncorrectable { unit: nand.spare(victim)[places[at] as usize] });
                    }
                    Err(error) => return Err(error.into()),
                };
            }
            at += valid;
        }
        Ok(ready)
    }

    /// Places copies at the frontier for collected units, which has room for them in its stripe.
    fn place_copies(&mut self, nand: &Nand, victim: u32, scratch: &Scratch, run: Range<usize>) {
        let frontier = &mut self.frontiers[self.roles.gc];
        let units = &scratch.units[run.clone()];
        let (first, slot) = (frontier.fill, (frontier.fill - frontier.start) as usize);
        frontier.slots[slot..slot + units.len()].copy_from_slice(units);
        frontier.fill += units.len() as u32;
        self.map.place_run(units, frontier.base + first);
        if self.keeps_data {
            let unit_bytes = self.geometry.unit_bytes as usize;
            for (slot, &place) in (slot..).zip(&scratch.places[run]) {
                let target = frontier.slot_bytes(slot, unit_bytes);
                match nand.unit_data(self.geometry.first_unit(victim, 0) + place) {
                    Some(bytes) => target.copy_from_slice(bytes),
                    None => target.fill(0),
                }
            }
        }
    }

    /// Blocks in which a program failed give up what they hold, and are bad from then on.
    pub(super) fn retire_failing(&mut self, nand: &mut Nand, mut now: Instant) -> Result<Instant, FtlError> {
        while let Some(block) = self.failing.pop() {
            let moved = self.move_out(nand, block, now);
            if moved.is_err() {
                self.failing.push(block);
            }
            // A bad block is not scanned after a power cut: the copies must be safe before the mark is.
            now = self.settle(nand, self.roles.gc, moved?)?;
            nand.mark_bad(block);
        }
        Ok(now)
    }

    /// Moves the least worn data where the wear is too uneven. `None`: it is not.
    fn level(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError> {
        let worn = self.spec.blocks.iter().filter(|block| nand.block(**block).health == BlockHealth::Good);
        let counts = worn.filter(|block| !self.log_blocks.contains(block)).map(|&block| nand.block(block).erase_count);
        let Some(block) = self.levelling.choose(nand, self.victims.iter(), counts.max().unwrap_or(0)) else {
            return Ok(None);
        };
        self.victims.remove(block);
        let done = self.collect(nand, block, now)?;
        self.stats.collections -= 1;
        self.stats.wear_moves += 1;
        Ok(Some(done))
    }

    /// Units that collecting could free.
    fn has_garbage(&mut self) -> bool {
        let emptiest = self.victims.emptiest(&self.map);
        emptiest.is_some_and(|block| self.map.valid_in(block) < self.block_units)
    }

    /// One step of background work: a failing block, a block to be collected, a block to be levelled.
    pub(super) fn background_step(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError> {
        if self.worn_out {
            return Ok(None);
        }
        if !self.failing.is_empty() {
            return self.retire_failing(nand, now).map(Some);
        }
        if self.pool.free() < self.high_blocks && self.has_garbage() {
            let Some(mut victim) = self.victims.pick(&self.map) else { return Ok(None) };
            if self.map.valid_in(victim) == self.block_units {
                // The policy would only move data round.
                self.victims.insert(victim, self.block_units);
                let Some(emptiest) = self.victims.emptiest(&self.map) else { return Ok(None) };
                victim = emptiest;
                self.victims.remove(victim);
            }
            return self.collect(nand, victim, now).map(Some);
        }
        self.level(nand, now)
    }

    /// How urgent background work is, after BKOPS_STATUS: none while as many blocks are free as background work keeps or
    /// nothing can be gained; performance suffers when the host's writes have to wait for it; critical when most of
    /// what is collected then must be copied.
    pub(super) fn background_urgency(&self) -> u8 {
        let free = self.pool.free();
        let least = self.victims.iter().map(|block| self.map.valid_in(block)).min().unwrap_or(self.block_units);
        if least == self.block_units || free >= self.high_blocks.max(self.low_blocks + 1) {
            return u8::from(!self.failing.is_empty());
        }
        match free {
            free if free > self.low_blocks => 1,
            _ if least < self.block_units / 8 * 7 => 2,
            _ => 3,
        }
    }
}
