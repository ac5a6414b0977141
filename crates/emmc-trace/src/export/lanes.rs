//! Lanes on which requests do not overlap.

use std::collections::{BTreeSet, HashMap};

use emmc_units::Nanos;

/// The lanes of all devices.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    devices: HashMap<u32, Device>,
}

#[derive(Debug)]
struct Device {
    number: u32,
    /// When each lane is free, and the lane.
    free: BTreeSet<(u64, u32)>,
}

/// A place for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    /// The device, counted from 0 as they occur.
    pub(super) device: u32,
    /// The lane, counted from 0.
    pub(super) lane: u32,
    /// Whether the device is new.
    pub(super) is_first: bool,
    /// Whether the lane is new.
    pub(super) is_new: bool,
}

impl Lanes {
    /// The lane that became free last before the request begins; a new one if none is free.
    pub(super) fn place(&mut self, device: u32, from: Nanos, to: Nanos) -> Lane {
        let next = self.devices.len() as u32;
        let entry = self.devices.entry(device);
        let found = entry.or_insert_with(|| Device { number: next, free: BTreeSet::new() });
        let is_first = found.free.is_empty();
        let free = found.free.range(..=(from.0, u32::MAX)).next_back().copied();
        let lane = free.map_or(found.free.len() as u32, |(_, lane)| lane);
        if let Some(free) = free {
            found.free.remove(&free);
        }
        found.free.insert((to.0, lane));
        Lane { device: found.number, lane, is_first, is_new: free.is_none() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_lane_never_overlap() {
        let mut lanes = Lanes::default();
        let mut place = |from, to| lanes.place(7, Nanos(from), Nanos(to)).lane;
        // The second begins before the first ends; the fourth fits behind the second better than behind the first.
        assert_eq!([place(0, 10), place(5, 20), place(20, 30), place(12, 40), place(31, 50)], [0, 1, 1, 0, 1]);
        let other = lanes.place(8, Nanos(0), Nanos(1));
        assert_eq!(other, Lane { device: 1, lane: 0, is_first: true, is_new: true });
    }
}
