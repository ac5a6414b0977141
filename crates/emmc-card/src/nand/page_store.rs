//! Content of the flash beside the map: sequence numbers, page states, stamps, records, bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::changes::Changes;
use super::content::Content;
use super::journal::{BlockImage, Entry};
use super::payload::Slots;
use super::{Geometry, StoredContent};

/// Bits of an sequence number that count programs inside one session; those above count sessions.
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
    /// Readable for now, but not reliably.
    Unstable,
    Torn,
}

/// What the units of a block hold.
pub(super) type Contents = Box<[Content]>;

/// Flash content for recovery and for data.
#[derive(Clone, Debug)]
pub(super) struct PageStore {
    pub(super) orders: Vec<u64>,
    pub(super) states: Vec<PageState>,
    pub(super) stamps: Vec<u32>,
    /// Blocks that must be erased before anything is programmed into them.
    pub(super) unsound: Vec<bool>,
    /// By block; `None` until its first bytes.
    pub(super) contents: Vec<Option<Contents>>,
    /// The bytes themselves, where they are kept.
    pub(super) slots: Option<Slots>,
    pub(super) records: BTreeMap<(u32, u32), Arc<[u8]>>,
    pub(super) journal: VecDeque<Entry>,
    pub(super) next_order: u64,
    /// Block and logical unit of completed data that the last cut damaged.
    pub(super) damaged_pairs: Vec<(u32, u32)>,
    /// Changes to record, if recording is on.
    pub(super) changes: Option<Changes>,
    /// Blocks that an outline did not have, and no record since.
    pub(super) missing: BTreeSet<u32>,
}

impl PageStore {
    pub(super) fn new(geometry: &Geometry, keep: StoredContent) -> Self {
        let blocks = geometry.blocks as usize;
        let pages = blocks * geometry.pages_per_block as usize;
        Self {
            orders: vec![0; pages],
            states: vec![PageState::Erased; pages],
            stamps: vec![NO_STAMP; blocks],
            unsound: vec![false; blocks],
            contents: vec![None; blocks],
            slots: (keep == StoredContent::Data).then(|| Slots::in_memory(geometry.unit_bytes)),
            records: BTreeMap::new(),
            journal: VecDeque::new(),
            next_order: 1,
            damaged_pairs: Vec::new(),
            changes: None,
            missing: BTreeSet::new(),
        }
    }

    pub(super) fn keeps_data(&self) -> bool {
        self.slots.is_some()
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

    /// Where the bytes of a physical unit are, if its page can be read.
    #[inline]
    pub(super) fn readable_content(&self, geometry: &Geometry, unit: u32) -> Content {
        let block = geometry.block_of(unit);
        if !self.reads(geometry, block, geometry.page_of(unit)) {
            return Content::NONE;
        }
        let within = (unit % geometry.units_per_block()) as usize;
        self.contents[block as usize].as_ref().map_or(Content::NONE, |contents| contents[within])
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
            if let (true, Some(slots)) = (unit != super::NO_UNIT, &mut self.slots) {
                let content = slots.put(bytes);
                self.put_unit(geometry, block, page, index, content);
            }
        }
    }

    pub(super) fn put_unit(&mut self, geometry: &Geometry, block: u32, page: u32, index: usize, content: Content) {
        let units = geometry.units_per_block() as usize;
        let of_block = || vec![Content::NONE; units].into_boxed_slice();
        let contents = self.contents[block as usize].get_or_insert_with(of_block);
        contents[(page * geometry.units_per_page) as usize + index] = content;
    }

    /// The content of the units of a page; `None`: no unit of the block has bytes.
    pub(super) fn page_contents(&self, geometry: &Geometry, block: u32, page: u32) -> Option<&[Content]> {
        let first = (page * geometry.units_per_page) as usize;
        let contents = self.contents[block as usize].as_ref()?;
        Some(&contents[first..first + geometry.units_per_page as usize])
    }

    /// The checksums of contents that have slots of the edge, in their sequence; empty: the edge has none.
    pub(super) fn sums_of(&self, contents: &[Content]) -> Vec<u32> {
        let Some(slots) = self.slots.as_ref().filter(|slots| slots.is_outside()) else { return Vec::new() };
        contents.iter().filter(|content| content.slot().is_some()).map(|content| slots.sum(*content)).collect()
    }

    /// The checksums of contents as [`PageStore::sums_of`] gave them. `false`: there are more or fewer, or a slot that
    /// cannot be.
    pub(super) fn set_sums(&mut self, geometry: &Geometry, contents: &[Content], sums: &[u32]) -> bool {
        let Some(slots) = &mut self.slots else { return true };
        let with_slot: Vec<u32> = contents.iter().filter_map(|content| content.slot()).collect();
        let fits = with_slot.len() == sums.len()
            && with_slot.iter().all(|slot| u64::from(*slot) < super::image::slots_max(geometry));
        if fits {
            with_slot.iter().zip(sums).for_each(|(slot, sum)| slots.sums.set(*slot, *sum));
        }
        fits
    }

    /// A page is as if it had never been programmed.
    pub(super) fn wipe_page(&mut self, geometry: &Geometry, block: u32, page: u32) {
        let index = page_index(geometry, block, page);
        self.states[index] = PageState::Erased;
        self.orders[index] = 0;
        self.records.remove(&(block, page));
        if let (Some(contents), Some(slots)) = (&mut self.contents[block as usize], &mut self.slots) {
            let first = (page * geometry.units_per_page) as usize;
            let contents = &mut contents[first..first + geometry.units_per_page as usize];
            slots.release(contents);
            contents.fill(Content::NONE);
        }
    }

    /// A block is erased; its content is saved in `image`.
    pub(super) fn erase(&mut self, geometry: &Geometry, block: u32, image: &mut BlockImage) {
        let pages = page_index(geometry, block, 0)..page_index(geometry, block + 1, 0);
        image.orders = self.orders[pages.clone()].to_vec();
        image.states = self.states[pages.clone()].to_vec();
        image.stamp = std::mem::replace(&mut self.stamps[block as usize], NO_STAMP);
        image.unsound = std::mem::replace(&mut self.unsound[block as usize], false);
        image.contents = self.contents[block as usize].take();
        self.orders[pages.clone()].fill(0);
        self.states[pages].fill(PageState::Erased);
        let known: Vec<_> = self.records.range((block, 0)..(block + 1, 0)).map(|(&key, _)| key).collect();
        image.records.extend(known.into_iter().filter_map(|key| Some((key, self.records.remove(&key)?))));
    }

    /// The location of the bytes of a physical unit, and the sequence number of its page.
    pub(super) fn content(&self, geometry: &Geometry, unit: u32) -> (Content, u64) {
        let block = geometry.block_of(unit);
        let within = (unit % geometry.units_per_block()) as usize;
        let content = self.contents[block as usize].as_ref().map_or(Content::NONE, |units| units[within]);
        (content, self.orders[page_index(geometry, block, geometry.page_of(unit))])
    }

    /// The bytes of a physical unit go, if they are still those that it had.
    pub(super) fn forget(&mut self, geometry: &Geometry, unit: u32, content: Content) {
        let block = geometry.block_of(unit);
        let within = (unit % geometry.units_per_block()) as usize;
        let (Some(contents), Some(slots)) = (&mut self.contents[block as usize], &mut self.slots) else { return };
        if contents[within] == content {
            contents[within] = Content::NONE;
            slots.release(&[content]);
            self.changes.iter_mut().for_each(|changes| changes.forget(block, within as u32));
        }
    }

    /// The content of a block is unneeded.
    pub(super) fn release(&mut self, contents: Option<Contents>) {
        if let (Some(contents), Some(slots)) = (contents, &mut self.slots) {
            slots.release(&contents);
        }
    }

    /// A block is restored.
    pub(super) fn restore(&mut self, geometry: &Geometry, block: u32, image: BlockImage) {
        let pages = page_index(geometry, block, 0)..page_index(geometry, block + 1, 0);
        self.orders[pages.clone()].copy_from_slice(&image.orders);
        self.states[pages].copy_from_slice(&image.states);
        self.stamps[block as usize] = image.stamp;
        self.unsound[block as usize] = image.unsound;
        let present = std::mem::replace(&mut self.contents[block as usize], image.contents);
        self.release(present);
        self.records.extend(image.records);
    }
}

/// Where a page is in the tables over all pages.
pub(super) fn page_index(geometry: &Geometry, block: u32, page: u32) -> usize {
    block as usize * geometry.pages_per_block as usize + page as usize
}
