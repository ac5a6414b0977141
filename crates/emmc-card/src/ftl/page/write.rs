//! Host writes, and when they complete.

use std::ops::Range;

use emmc_units::Instant;

use super::place::Bytes;
use super::{PageFtl, Superseded};
use crate::ftl::{Durability, FtlError};
use crate::nand::{NO_UNIT, Nand};

/// Beyond this number of overwritten copies that wait for durable data, the bytes stay until their block is erased.
const SUPERSEDED_MAX: usize = 1 << 18;

impl PageFtl {
    /// Places units, programs the stripes that they fill, and the rest if it must not wait.
    ///
    /// A buffered write returns when it is in memory, and when the programs and copies that it caused
    /// are done.
    #[inline(always)]
    pub(super) fn write_units(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        data: Option<&[u8]>,
        durability: Durability,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        if self.worn_out {
            return Err(FtlError::WornOut);
        }
        let mut ready = self.touch_map(nand, first, count, true, now)?;
        let mut done = ready;
        let mut given = None;
        for index in 0..count {
            let unit = first + index;
            let role = self.host_role(unit);
            if self.frontiers[role].is_exhausted() {
                ready = self.make_room(nand, role, ready)?;
                done = done.max(ready);
            }
            if self.keeps_data && given.is_none() {
                given = self.whole_stripe(role, first..first + count, index, data);
            }
            let slot = self.put(nand, role, unit);
            if self.keeps_data && given.is_none() {
                self.keep_bytes(role, slot, index, data);
            }
            if self.frontiers[role].is_due() {
                done = done.max(match given.take() {
                    Some(bytes) => self.program_bytes(nand, role, Bytes::Given(bytes), ready)?,
                    None => self.program(nand, role, ready)?,
                });
                done = done.max(self.keep_pace(nand, ready)?);
            }
        }
        self.stats.host_units += u64::from(count);
        match durability {
            Durability::Buffered => {}
            Durability::Flash => {
                for role in [self.roles.host, self.roles.cold] {
                    if self.frontiers[role].has_waiting() {
                        done = done.max(self.program(nand, role, ready)?);
                    }
                }
            }
            Durability::Reliable => done = done.max(self.settle_host(nand, ready)?),
        }
        if durability != Durability::Buffered {
            done = done.max(self.keep_pace(nand, ready)?).max(self.copied_beside);
        }
        if !self.superseded.is_empty() {
            self.forget_superseded(nand);
        }
        Ok(done)
    }

    /// All host writes are in flash and no longer at risk.
    pub(super) fn settle_host(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let mut done = self.settle(nand, self.roles.host, now)?;
        if self.roles.cold != self.roles.host {
            done = done.max(self.settle(nand, self.roles.cold, now)?);
        }
        Ok(done)
    }

    /// Places a unit; answers its slot in the stripe.
    #[inline(always)]
    fn put(&mut self, nand: &Nand, role: usize, unit: u32) -> usize {
        self.note_placed(role);
        let frontier = &mut self.frontiers[role];
        let slot = (frontier.fill - frontier.start) as usize;
        let physical = frontier.place(unit);
        let old = self.map.set(unit, physical);
        if old != NO_UNIT {
            if self.keeps_orders {
                self.inherit_doubt(role, old);
                if self.keeps_data && self.waiting(old).is_none() {
                    if self.superseded.len() == SUPERSEDED_MAX {
                        self.superseded.pop_front();
                    }
                    self.superseded.push_back(Superseded { epoch: self.epoch + 1, old, order: nand.order_of(old) });
                }
            }
            let block = self.map.block_of(old);
            self.victims.lower(block, self.map.valid_in(block));
        } else if self.keeps_orders {
            self.fresh.push(unit);
        }
        slot
    }

    /// A copy that waited elsewhere is not programmed any more: blocks freed since it was placed wait for the new copy
    /// instead.
    fn inherit_doubt(&mut self, role: usize, old: u32) {
        if let Some((other, _)) = self.waiting(old) {
            let since = self.frontiers[other].unsettled_since;
            let frontier = &mut self.frontiers[role];
            frontier.unsettled_since = frontier.unsettled_since.min(since);
        }
    }

    /// The flash may drop the bytes of copies that no power cut can bring back: newer ones are settled.
    fn forget_superseded(&mut self, nand: &mut Nand) {
        self.epoch += 1;
        let of_host = [self.roles.host, self.roles.cold].map(|role| self.frontiers[role].unsettled_since);
        let settled = of_host[0].min(of_host[1]);
        let count = self.superseded.iter().take_while(|known| known.epoch <= settled).count();
        if count == 0 {
            return;
        }
        let map = &self.map;
        let mut units = Vec::with_capacity(count);
        for known in self.superseded.drain(..count) {
            let unit = nand.logical(known.old);
            let newest = if unit == NO_UNIT { NO_UNIT } else { map.lookup(unit) };
            if newest != NO_UNIT && newest != known.old {
                units.push((known.old, known.order));
            }
        }
        nand.forget(units.into_iter(), self.programmed_by);
    }

    /// The bytes of the stripe that begins with unit `index` of a write, if all of them are part of it: they need not
    /// be copied to the frontier.
    fn whole_stripe<'a>(&self, role: usize, units: Range<u32>, index: u32, data: Option<&'a [u8]>) -> Option<&'a [u8]> {
        let frontier = &self.frontiers[role];
        let (first, stripe) = (units.start + index, frontier.limit - frontier.start);
        let fits = frontier.fill == frontier.start && stripe <= units.end - first;
        if !fits || (first + 1..first + stripe).any(|unit| self.host_role(unit) != role) {
            return None;
        }
        let unit_bytes = self.geometry.unit_bytes as usize;
        Some(&data?[index as usize * unit_bytes..][..stripe as usize * unit_bytes])
    }

    #[cold]
    fn keep_bytes(&mut self, role: usize, slot: usize, index: u32, data: Option<&[u8]>) {
        let unit_bytes = self.geometry.unit_bytes as usize;
        let target = self.frontiers[role].slot_bytes(slot, unit_bytes);
        match data {
            Some(data) => target.copy_from_slice(&data[index as usize * unit_bytes..][..unit_bytes]),
            None => target.fill(0),
        }
    }

    /// The frontier for a host write.
    ///
    /// A unit is hot if the host wrote it within the last writes of half the region's size and it has not been
    /// collected since: its old copy is in a recently filled host block.
    #[inline]
    fn host_role(&self, unit: u32) -> usize {
        if self.roles.cold == self.roles.host {
            return self.roles.host;
        }
        let old = self.map.lookup(unit);
        if old == NO_UNIT {
            return self.roles.cold;
        }
        let born = self.states[(self.map.block_of(old) - self.first_block) as usize].born;
        let is_hot = born != 0 && self.stats.host_units - born < u64::from(self.map.units() / 2);
        if is_hot { self.roles.host } else { self.roles.cold }
    }
}
