//! The part of the map that reads need: spans of addresses, of which the latest used ones are in memory.
//!
//! A read that touches a span that is not in memory loads it first, so that a read across the border of two spans, such
//! as allocation units, takes longer than one inside. Absent on purpose: the map of the page-mapped layer, whose pages
//! lie in flash (`ftl::mapping_cache`).

use std::collections::VecDeque;

use emmc_units::{Nanos, SECTOR_BYTES};

use crate::device::op::Area;
use crate::profile::Controller;

/// The spans in memory.
#[derive(Clone, Debug)]
pub(super) struct MapSpans {
    load: Nanos,
    /// Sectors of a span; 0: the whole map is in memory.
    sectors: u64,
    count: usize,
    /// The latest used one last.
    held: VecDeque<(Area, u64)>,
}

impl MapSpans {
    pub(super) fn new(controller: &Controller) -> Self {
        Self {
            load: Nanos::from_micros_f64(controller.map_load_us),
            sectors: u64::from(controller.map_span_bytes) / SECTOR_BYTES,
            count: controller.map_spans as usize,
            held: VecDeque::new(),
        }
    }

    /// Power is lost.
    pub(super) fn forget(&mut self) {
        self.held.clear();
    }

    /// The time to load what sectors need.
    #[inline]
    pub(super) fn load(&mut self, area: Area, first: u64, end: u64) -> Nanos {
        if self.sectors == 0 {
            return Nanos::ZERO;
        }
        let mut time = Nanos::ZERO;
        for span in first / self.sectors..end.div_ceil(self.sectors) {
            match self.held.iter().position(|held| *held == (area, span)) {
                Some(at) => drop(self.held.remove(at)),
                None => time += self.load,
            }
            self.held.push_back((area, span));
            if self.held.len() > self.count {
                self.held.pop_front();
            }
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_across_a_border_loads_two_spans() {
        let held = |count| MapSpans { load: Nanos(10), sectors: 8, count, held: VecDeque::new() };
        let mut spans = held(2);
        let mut load = |first, end| spans.load(Area::User, first, end).0;
        assert_eq!([load(0, 8), load(3, 8), load(7, 9), load(0, 4), load(16, 17)], [10, 0, 10, 0, 10]);
        // The second span was used least lately.
        assert_eq!([load(0, 1), load(8, 9)], [0, 10]);
        let mut none = MapSpans { sectors: 0, ..held(0) };
        assert_eq!(none.load(Area::User, 0, 1 << 20), Nanos::ZERO);
    }
}
