//! What the flash remembers beside the map: order numbers, page states, stamps, records, bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::journal::{BlockImage, Entry};
use super::{Geometry, Keep};

/// Bits of an order number that count programs inside one session; those above count sessions.
pub(super) const SESSION_SHIFT: u32 = 40;

/// No stamp was set.
pub(super) const NO_STAMP: u32 = u32::MAX;

/// What a page holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum PageState {
    #[default]
    Erased,
    Good,
    /// Reads for now, and not for ever.
    Unstable,
    Torn,
}

/// Bytes of the units of a block; a unit without has `None`, one of zeros an empty slice.
pub(super) type Payload = Box<[Option<Arc<[u8]>>]>;

/// Memory of the flash for recovery and for data.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) orders: Vec<u64>,
    pub(super) states: Vec<PageState>,
    pub(super) stamps: Vec<u32>,
    /// Blocks that must be erased before anything is programmed into them.
    pub(super) unsound: Vec<bool>,
    /// By block; `None` until its first bytes.
    pub(super) payload: Vec<Option<Payload>>,
    pub(super) records: BTreeMap<(u32, u32), Arc<[u8]>>,
    pub(super) journal: VecDeque<Entry>,
    pub(super) next_order: u64,
    /// Block and logical unit of what the last cut damaged though it was done.
    pub(super) damaged_pairs: Vec<(u32, u32)>,
    zeros: Option<Box<[u8]>>,
}

impl Kept {
    pub(super) fn new(geometry: &Geometry, keep: Keep) -> Self {
        let blocks = geometry.blocks as usize;
        let pages = blocks * geometry.pages_per_block as usize;
        Self {
            orders: vec![0; pages],
            states: vec![PageState::Erased; pages],
            stamps: vec![NO_STAMP; blocks],
            unsound: vec![false; blocks],
            payload: vec![None; blocks],
            records: BTreeMap::new(),
            journal: VecDeque::new(),
            next_order: 1,
            damaged_pairs: Vec::new(),
            zeros: (keep == Keep::Data).then(|| vec![0; geometry.unit_bytes as usize].into_boxed_slice()),
        }
    }

    pub(super) fn keeps_data(&self) -> bool {
        self.zeros.is_some()
    }

    pub(super) fn state(&self, geometry: &Geometry, block: u32, page: u32) -> PageState {
        self.states[page_index(geometry, block, page)]
    }

    pub(super) fn set_state(&mut self, geometry: &Geometry, block: u32, page: u32, state: PageState) {
        self.states[page_index(geometry, block, page)] = state;
    }

    pub(super) fn reads(&self, geometry: &Geometry, block: u32, page: u32) -> bool {
        matches!(self.state(geometry, block, page), PageState::Good | PageState::Unstable)
    }

    pub(super) fn unit_data(&self, geometry: &Geometry, unit: u32) -> Option<&[u8]> {
        let block = geometry.block_of(unit);
        if !self.reads(geometry, block, geometry.page_of(unit)) {
            return None;
        }
        let within = (unit % geometry.units_per_block()) as usize;
        let bytes = self.payload[block as usize].as_ref()?[within].as_deref()?;
        if bytes.is_empty() { self.zeros.as_deref() } else { Some(bytes) }
    }

    pub(super) fn record(&self, geometry: &Geometry, block: u32, page: u32) -> Option<&[u8]> {
        let readable = self.reads(geometry, block, page);
        readable.then(|| self.records.get(&(block, page)).map(AsRef::as_ref)).flatten()
    }

    pub(super) fn stamp(&self, geometry: &Geometry, block: u32) -> Option<u32> {
        let stamp = self.stamps[block as usize];
        let readable = (0..geometry.pages_per_block).any(|page| self.reads(geometry, block, page));
        (stamp != NO_STAMP && readable).then_some(stamp)
    }

    pub(super) fn order(&self, geometry: &Geometry, block: u32, page: u32) -> Option<u64> {
        self.reads(geometry, block, page).then(|| self.orders[page_index(geometry, block, page)])
    }

    /// A page is programmed.
    pub(super) fn program(&mut self, geometry: &Geometry, block: u32, page: u32) {
        let index = page_index(geometry, block, page);
        self.states[index] = PageState::Good;
        self.orders[index] = self.next_order;
        self.next_order += 1;
    }

    /// The bytes of a page that is programmed.
    pub(super) fn put_page(&mut self, geometry: &Geometry, block: u32, page: u32, units: &[u32], data: &[u8]) {
        let unit_bytes = geometry.unit_bytes as usize;
        for ((index, &unit), bytes) in units.iter().enumerate().zip(data.chunks_exact(unit_bytes)) {
            if unit != super::NO_UNIT {
                let zero = bytes.iter().all(|&byte| byte == 0);
                let bytes = if zero { Arc::from([]) } else { Arc::from(bytes) };
                self.put_unit(geometry, block, page, index, bytes);
            }
        }
    }

    /// The bytes of one unit, shared with the one that it is a copy of.
    pub(super) fn put_copy(&mut self, geometry: &Geometry, block: u32, page: u32, index: usize, from: u32) {
        let source = geometry.block_of(from);
        let within = (from % geometry.units_per_block()) as usize;
        if let Some(bytes) = self.payload[source as usize].as_ref().and_then(|units| units[within].clone()) {
            self.put_unit(geometry, block, page, index, bytes);
        }
    }

    fn put_unit(&mut self, geometry: &Geometry, block: u32, page: u32, index: usize, bytes: Arc<[u8]>) {
        let units = geometry.units_per_block() as usize;
        let payload = self.payload[block as usize].get_or_insert_with(|| vec![None; units].into_boxed_slice());
        payload[(page * geometry.units_per_page) as usize + index] = Some(bytes);
    }

    /// A page is as if it had never been programmed.
    pub(super) fn wipe_page(&mut self, geometry: &Geometry, block: u32, page: u32) {
        let index = page_index(geometry, block, page);
        self.states[index] = PageState::Erased;
        self.orders[index] = 0;
        self.records.remove(&(block, page));
        if let Some(payload) = &mut self.payload[block as usize] {
            let first = (page * geometry.units_per_page) as usize;
            payload[first..first + geometry.units_per_page as usize].fill(None);
        }
    }

    /// A block is erased; its content goes into `image`.
    pub(super) fn erase(&mut self, geometry: &Geometry, block: u32, image: &mut BlockImage) {
        let pages = page_index(geometry, block, 0)..page_index(geometry, block + 1, 0);
        image.orders = self.orders[pages.clone()].to_vec();
        image.states = self.states[pages.clone()].to_vec();
        image.stamp = std::mem::replace(&mut self.stamps[block as usize], NO_STAMP);
        image.unsound = std::mem::replace(&mut self.unsound[block as usize], false);
        image.payload = self.payload[block as usize].take();
        self.orders[pages.clone()].fill(0);
        self.states[pages].fill(PageState::Erased);
        let known: Vec<_> = self.records.range((block, 0)..(block + 1, 0)).map(|(&key, _)| key).collect();
        image.records.extend(known.into_iter().filter_map(|key| Some((key, self.records.remove(&key)?))));
    }

    /// A block is again what it was.
    pub(super) fn restore(&mut self, geometry: &Geometry, block: u32, image: BlockImage) {
        let pages = page_index(geometry, block, 0)..page_index(geometry, block + 1, 0);
        self.orders[pages.clone()].copy_from_slice(&image.orders);
        self.states[pages].copy_from_slice(&image.states);
        self.stamps[block as usize] = image.stamp;
        self.unsound[block as usize] = image.unsound;
        self.payload[block as usize] = image.payload;
        self.records.extend(image.records);
    }
}

fn page_index(geometry: &Geometry, block: u32, page: u32) -> usize {
    block as usize * geometry.pages_per_block as usize + page as usize
}
