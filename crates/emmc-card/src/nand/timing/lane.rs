//! The timing of flash with one lane during a bulk copy: the one die and its channel are in registers, and no program
//! can join another.

use emmc_units::{Instant, Nanos, Rng};

use super::{Channel, Clockwork, Die, Timing, stray};
use crate::nand::{CellMode, Geometry};

/// The lane.
pub(in crate::nand) struct Lane<'a> {
    timing: &'a Timing,
    now: LaneNow,
}

/// How the lane has changed.
pub(in crate::nand) struct LaneNow {
    busy_until: Instant,
    sent: Instant,
    rng: Rng,
}

impl Timing {
    /// The one lane; `None` if there are several.
    pub(in crate::nand) fn lane(&self, geometry: &Geometry) -> Option<Lane<'_>> {
        let ([die], [channel], 1) = (&self.dies[..], &self.channels[..], geometry.lanes()) else { return None };
        let now = LaneNow { busy_until: die.busy_until, sent: channel.free_at(), rng: self.rng.clone() };
        Some(Lane { timing: self, now })
    }

    /// Continues from the lane's time.
    pub(in crate::nand) fn take_over(&mut self, lane: LaneNow) {
        // Nothing joins a program to the only page of a row.
        self.dies[0] = Die::busy_until(lane.busy_until);
        self.channels[0] = Channel::free_from(lane.sent);
        self.rng = lane.rng;
    }
}

impl Lane<'_> {
    /// The lane's time.
    pub(in crate::nand) fn end(self) -> LaneNow {
        self.now
    }
}

impl Clockwork for Lane<'_> {
    #[inline(always)]
    fn read(&mut self, geometry: &Geometry, mode: CellMode, _: u32, _: u32, bytes: u32, now: Instant) -> Instant {
        let times = self.timing.times(mode, geometry.native);
        let sensed = now.max(self.now.busy_until) + stray(&mut self.now.rng, times.read, times.spread);
        let transfer = Nanos((u64::from(bytes) * self.timing.byte_transfer) >> 16);
        self.now.sent = sensed.max(self.now.sent) + transfer;
        self.now.busy_until = self.now.sent;
        self.now.sent
    }

    #[inline(always)]
    fn program(&mut self, geometry: &Geometry, mode: CellMode, _: u32, page: u32, now: Instant) -> (Instant, Instant) {
        let times = self.timing.times(mode, geometry.native);
        let turn = self.timing.place(page).turn[usize::from(mode != geometry.native)];
        let free = if self.timing.cached_program { now } else { now.max(self.now.busy_until) };
        self.now.sent = free.max(self.now.sent) + self.timing.page_transfer;
        let time = stray(&mut self.now.rng, times.program[turn as usize], times.spread);
        let start = self.now.sent.max(self.now.busy_until);
        self.now.busy_until = start + time;
        (start, start + time)
    }
}
