//! The target of a write: an open AU's log, a shared log, or an AU that is opened for it.

use emmc_units::Instant;

use super::{Frontier, NO_BLOCK, Open, SegmentFtl};
use crate::ftl::{Durability, FtlError};
use crate::nand::{NO_UNIT, Nand, Soundness};
use crate::profile::SegmentOrder;

/// The frontier that takes a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The log of an open AU, by index.
    Open(usize),
    /// The newest shared log.
    Shared,
}

impl SegmentFtl {
    pub(super) fn front(&mut self, place: Place) -> &mut Frontier {
        match place {
            Place::Open(index) => &mut self.open[index].log,
            Place::Shared => self.shared.back_mut().expect("a shared log was made before it was chosen"),
        }
    }

    /// Chooses the place of `count` units from `unit`, of one AU; frees space there for at least one.
    pub(super) fn place(
        &mut self,
        nand: &mut Nand,
        unit: u32,
        count: u32,
        durability: Durability,
        mut now: Instant,
    ) -> Result<(Place, Instant), FtlError> {
        let (au, at) = (self.au_of(unit), unit % self.per_block);
        if self.is_small(unit, count, durability) {
            return Ok((Place::Shared, self.shared_room(nand, count, now)?));
        }
        loop {
            let Some(index) = self.open_index(au) else {
                now = self.open_au(nand, au, at, now)?;
                continue;
            };
            // Written last, closed last.
            let open = self.open.remove(index);
            self.open.push(open);
            let index = self.open.len() - 1;
            let open = &self.open[index];
            if self.careful && open.log.splits_line(nand) {
                now = self.merge(nand, au, now)?;
                continue;
            }
            let absorbed = open.log.holds(nand, self.map.lookup(unit));
            let ascends = open.last.is_none_or(|last| at > last) || absorbed;
            if !ascends && self.order == SegmentOrder::Linear {
                // What starts over, or comes back to an AU that is through, is a new pass over it; the last unit once
                // more is the next part of it.
                let is_pass = at == 0 || open.log.room(nand) == 0;
                if self.shared_max > 0 && (!is_pass || open.last == Some(at)) {
                    return Ok((Place::Shared, self.shared_room(nand, count, now)?));
                }
            } else if absorbed || open.log.room(nand) > 0 {
                match self.fill_gap(nand, index, at, now)? {
                    Some(ready) => return Ok((Place::Open(index), ready)),
                    None => continue,
                }
            }
            self.stats.foreground_stalls += 1;
            now = self.close(nand, index, now)?;
        }
    }

    /// Whether a write goes to a shared log because of its size.
    ///
    /// A buffered write is a part of a larger one, and so is a write that continues at the end of such a part.
    fn is_small(&mut self, unit: u32, count: u32, durability: Durability) -> bool {
        let buffered = durability == Durability::Buffered;
        let goes_on = self.part_end == Some(unit);
        self.part_end = buffered.then_some(unit + count);
        count <= self.small_units && !buffered && !goes_on
    }

    /// Keeps the log of an open AU an ordered beginning, or notes that it is none any more. `None`: the AU was closed.
    fn fill_gap(&mut self, nand: &mut Nand, index: usize, at: u32, now: Instant) -> Result<Option<Instant>, FtlError> {
        let open = &self.open[index];
        let next = open.last.map_or(0, |last| last + 1);
        if at <= next || !open.in_order {
            return Ok(Some(now));
        }
        let gap = self.valid_outside(nand, open.au, next, at, open.log.block);
        if gap.is_empty() {
            return Ok(Some(now));
        }
        if self.order == SegmentOrder::Random || open.log.room(nand) <= gap.len() as u32 {
            self.open[index].in_order = false;
            return Ok(Some(now));
        }
        self.extend(nand, index, &gap, now)
    }

    /// Opens an AU to be written at `at`.
    fn open_au(&mut self, nand: &mut Nand, au: u32, at: u32, mut now: Instant) -> Result<Instant, FtlError> {
        while self.open.len() >= self.open_max {
            self.stats.foreground_stalls += 1;
            now = self.close(nand, 0, now)?;
        }
        if let Some(open) = self.reopened(nand, au, at) {
            self.homes[au as usize] = NO_BLOCK;
            self.open.push(open);
            return Ok(now);
        }
        let (block, ready) = self.take_for_host(nand, now)?;
        self.open.push(Open { au, log: Frontier::new(nand, block), last: None, in_order: true });
        Ok(ready)
    }

    /// The home of an AU as its log: it has space, and holds only units before `at`.
    fn reopened(&self, nand: &Nand, au: u32, at: u32) -> Option<Open> {
        let home = self.homes[au as usize];
        if home == NO_BLOCK || self.failing.contains(&home) || nand.block(home).next_page == nand.pages_of(home) {
            return None;
        }
        let log = Frontier::new(nand, home);
        if log.splits_line(nand) || nand.soundness(home) == Soundness::Damaged {
            return None;
        }
        let valid = self.valid_units(au);
        let mut held = nand.spare(home).iter().copied().filter(|&unit| unit != NO_UNIT);
        // Valid units that lie elsewhere, or units that are out of date, make the home no ordered beginning.
        let ordered = valid.iter().all(|&unit| held.next() == Some(unit)) && held.next().is_none();
        let last = valid.last()? % self.per_block;
        (ordered && last < at && self.map.valid_in(home) == valid.len() as u32).then_some(Open {
            au,
            log,
            last: Some(last),
            in_order: true,
        })
    }

    /// Room for at least one of `count` units in the newest shared log.
    fn shared_room(&mut self, nand: &mut Nand, count: u32, mut now: Instant) -> Result<Instant, FtlError> {
        let careful = self.careful;
        while self.shared.back().is_none_or(|front| front.room(nand) == 0 || careful && front.splits_line(nand)) {
            if !self.may_start_log() {
                self.stats.foreground_stalls += 1;
                now = self.reclaim(nand, now)?;
                continue;
            }
            let (block, ready) = self.take_for_host(nand, now)?;
            let mut front = Frontier::new(nand, block);
            // Only the newest log is ever programmed: less than a page of it may wait there, in a word line at risk.
            if let Some(before) = self.shared.back_mut() {
                front.take_over(nand, &mut self.map, before);
            }
            self.shared.push_back(front);
            now = ready;
        }
        self.keep_pace(nand, count, now)
    }
}
