//! Writing: units to their frontier, full pages to flash, and units that must be durable.

use emmc_units::Instant;

use super::SegmentFtl;
use super::place::Place;
use crate::ftl::{Durability, FtlError};
use crate::nand::{NO_UNIT, Nand, NandError};

impl SegmentFtl {
    /// Writes units of one AU, as many as their place takes; answers how many, and when.
    ///
    /// Answers also when the place was ready: the controller does one thing at a time.
    pub(super) fn write_part(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        data: Option<&[u8]>,
        durability: Durability,
        now: Instant,
    ) -> Result<(u32, Instant, Instant), FtlError> {
        let (place, ready) = self.place(nand, first, count, durability, now)?;
        let size = nand.geometry().unit_bytes as usize;
        let mut done = ready;
        for index in 0..count {
            let unit = first + index;
            let bytes = data.map(|data| &data[index as usize * size..][..size]);
            let slot = self.map.lookup(unit);
            if self.front(place).holds(nand, slot) {
                self.front(place).replace(nand, slot, bytes);
            } else if self.front(place).room(nand) == 0 || !self.continues(nand, place, unit) {
                return Ok((index, ready, done));
            } else {
                self.put(nand, place, unit, bytes);
            }
            self.stats.host_units += 1;
            let last = index + 1 == count && durability != Durability::Buffered;
            if self.front(place).is_full(nand) || last && self.front(place).is_waiting() {
                let (programmed, still) = self.program(nand, place, ready)?;
                done = done.max(programmed);
                if !still {
                    return Ok((index + 1, done, done));
                }
            }
        }
        if durability == Durability::Reliable {
            done = done.max(self.whole_line(nand, place, ready)?);
        }
        Ok((count, ready, done))
    }

    /// Whether the next unit of a write may go where the one before went.
    fn continues(&self, nand: &Nand, place: Place, unit: u32) -> bool {
        let Place::Open(index) = place else { return true };
        let open = &self.open[index];
        // In ascending runs this is the common case; a gap or an overlap is looked at again by `place`.
        open.last.is_none_or(|last| unit % self.per_block > last)
            || self.order == crate::profile::SegmentOrder::Random
            || open.log.holds(nand, self.map.lookup(unit))
    }

    /// Gives a unit its place in a frontier.
    fn put(&mut self, nand: &Nand, place: Place, unit: u32, data: Option<&[u8]>) {
        let slot = self.front(place).put(nand, unit, data);
        let old = self.map.set(unit, slot);
        let (au, at) = (self.au_of(unit), unit % self.per_block);
        match place {
            Place::Open(index) => {
                let open = &mut self.open[index];
                open.in_order &= open.last.is_none_or(|last| at > last);
                open.last = Some(at);
            }
            Place::Shared => {
                if let Some(index) = self.open_index(au) {
                    let open = &mut self.open[index];
                    open.in_order &= open.last.is_none_or(|last| at > last);
                }
            }
        }
        debug_assert!(old != slot, "a unit was put where it is");
    }

    /// Programs the waiting page of a frontier; answers whether the frontier still takes units.
    pub(super) fn program(&mut self, nand: &mut Nand, place: Place, now: Instant) -> Result<(Instant, bool), FtlError> {
        let mut now = now;
        loop {
            let front = match place {
                Place::Open(index) => &mut self.open[index].log,
                Place::Shared => self.shared.back_mut().expect("it was chosen"),
            };
            match front.program(nand, &mut self.map, now) {
                Ok((done, padding)) => {
                    self.stats.padding_units += u64::from(padding);
                    return Ok((done, true));
                }
                Err(NandError::ProgramFailed { block, done }) => {
                    now = now.max(done);
                    self.failing.insert(block);
                    if front.is_stuck(nand) {
                        return Ok((self.evacuate(nand, place, now)?, false));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The last page of a frontier's block failed: its buffered units are merged into new blocks.
    fn evacuate(&mut self, nand: &mut Nand, place: Place, mut now: Instant) -> Result<Instant, FtlError> {
        let mut aus: Vec<u32> = {
            let units: Vec<u32> = match place {
                Place::Open(index) => vec![self.open[index].au * self.per_block],
                Place::Shared => {
                    let front = self.shared.back().expect("it was chosen");
                    front.current(nand, &self.map).map(|(unit, _)| unit).collect()
                }
            };
            units.into_iter().map(|unit| self.au_of(unit)).collect()
        };
        aus.dedup();
        for au in aus {
            now = self.merge(nand, au, now)?;
        }
        if place == Place::Shared {
            self.front(place).seal(nand);
        }
        Ok(now)
    }

    /// Programs all buffered units.
    pub(super) fn program_all(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        while let Some(index) = self.open.iter().position(|open| open.log.is_waiting()) {
            let place = Place::Open(index);
            let at_risk = self.careful && self.front(place).splits_line(nand);
            let programmed = if at_risk { self.evacuate(nand, place, now)? } else { self.program(nand, place, now)?.0 };
            done = done.max(programmed);
        }
        if self.shared.back().is_some_and(|front| front.is_waiting()) {
            let at_risk = self.careful && self.front(Place::Shared).splits_line(nand);
            let programmed = if at_risk {
                self.evacuate(nand, Place::Shared, now)?
            } else {
                self.program(nand, Place::Shared, now)?.0
            };
            done = done.max(programmed);
        }
        Ok(done)
    }

    /// Leaves every frontier at the start of a word line.
    pub(super) fn whole_lines(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        for index in 0..self.open.len() {
            done = done.max(self.whole_line(nand, Place::Open(index), now)?);
        }
        if !self.shared.is_empty() {
            done = done.max(self.whole_line(nand, Place::Shared, now)?);
        }
        Ok(done)
    }

    /// Leaves a frontier at the start of a word line, so that no later program can damage its units.
    ///
    /// Padding is the price of write reliability on flash of several bits a cell.
    pub(super) fn whole_line(&mut self, nand: &mut Nand, place: Place, now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        while self.front(place).splits_line(nand) {
            let block = self.front(place).block;
            let page = nand.block(block).next_page;
            let padding = vec![NO_UNIT; nand.geometry().units_per_page as usize];
            match nand.program(block, page, &padding, None, now) {
                Ok(programmed) => {
                    self.stats.padding_units += padding.len() as u64;
                    done = done.max(programmed);
                }
                Err(NandError::ProgramFailed { block, done: failed_at }) => {
                    done = done.max(failed_at);
                    self.failing.insert(block);
                }
                Err(error) => return Err(error.into()),
            }
            self.front(place).catch_up(nand);
        }
        Ok(done)
    }
}
