//! The flash as bytes, for saving and restoring: as if all operations in progress were done.
//!
//! An image is complete. An outline is an image without blocks: each of them follows as a record of its own, which may
//! be taken later than the outline, among the records of changes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::page_store::{NO_STAMP, PageState, PageStore, page_index};
use super::payload::{Payload, Slots};
use super::{Block, BlockHealth, CellMode, Counters, NO_UNIT, Nand, StoredContent};
use emmc_units::Rng;

/// Flash without its configuration.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NandImage {
    blocks: Vec<WholeBlock>,
    counters: Counters,
    steps: u64,
    failing: Rng,
    timing: Rng,
    power: Rng,
    next_program_failure: u64,
    store: Option<PageStoreImage>,
}

/// The location of the host's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BytesAre {
    /// Nowhere.
    NotKept,
    /// In the image.
    Here,
    /// In slots of the edge.
    Outside,
}

/// A block with all that is known of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WholeBlock {
    erase_count: u32,
    endurance: u32,
    mode: CellMode,
    health: u8,
    next_page: u32,
    /// Spare area of the programmed units, as the unit plus one, 0 for none: small numbers stay short.
    spare: Vec<u32>,
    stamp: u32,
    unsound: bool,
    /// By programmed page; each sequence number as the difference to the previous one.
    states: Vec<u8>,
    orders: Vec<i64>,
    contents: Vec<u32>,
    records: Vec<(u32, Vec<u8>)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PageStoreImage {
    bytes: BytesAre,
    next_order: u64,
    /// Contents with a slot, and their bytes; empty if the edge has the slots.
    payload: Vec<(u32, Vec<u8>)>,
}

impl NandImage {
    /// Where the host's bytes are.
    pub(crate) fn bytes_are(&self) -> BytesAre {
        self.store.as_ref().map_or(BytesAre::NotKept, |store| store.bytes)
    }
}

impl Nand {
    /// The whole content.
    pub(crate) fn to_image(&self) -> NandImage {
        let blocks = (0..self.geometry.blocks).map(|block| self.whole_block(block)).collect();
        NandImage { blocks, ..self.to_outline() }
    }

    /// Everything but the blocks.
    pub(crate) fn to_outline(&self) -> NandImage {
        NandImage {
            blocks: Vec::new(),
            counters: self.counters,
            steps: self.steps,
            failing: self.failing.rng().clone(),
            timing: self.timing.rng().clone(),
            power: self.power.rng().clone(),
            next_program_failure: self.failing.next_program,
            store: self.store.as_deref().map(PageStore::to_image),
        }
    }

    /// Restores an image or an outline, with the same content model as before. `false`: the image has another geometry,
    /// and this flash must not be used any more.
    pub(crate) fn restore(&mut self, image: NandImage) -> bool {
        let is_outline = image.blocks.is_empty() && image.store.is_some();
        if image.blocks.len() != self.blocks.len() && !is_outline {
            return false;
        }
        self.store = match (&image.store, self.keep()) {
            (None, _) | (_, StoredContent::Nothing) => None,
            (Some(_), keep) => Some(Box::new(PageStore::new(&self.geometry, keep))),
        };
        self.spare.fill(NO_UNIT);
        let mut fits = (0..).zip(&image.blocks).all(|(number, block)| self.set_block(number, block));
        if let (Some(store), Some(image)) = (self.store.as_deref_mut(), image.store) {
            store.next_order = image.next_order;
            if is_outline {
                store.missing.extend(0..self.geometry.blocks);
            }
            if let Some(slots) = &mut store.slots {
                for (content, bytes) in image.payload {
                    fits &= slots.put_at(Content(content), &bytes, slots_max(&self.geometry));
                }
            }
        }
        self.wary = self.store.is_some();
        (self.counters, self.steps) = (image.counters, image.steps);
        self.failing.set_rng(image.failing);
        self.failing.next_program = image.next_program_failure;
        self.timing.set_rng(image.timing);
        self.power.set_rng(image.power);
        self.set_alarm();
        fits
    }

    /// Replays records that follow an image. `false`: not records of this flash.
    pub(crate) fn replay_all(&mut self, mut records: &[u8]) -> bool {
        while !records.is_empty() {
            match self.replay(records) {
                Some(rest) => records = rest,
                None => return false,
            }
        }
        true
    }

    /// Blocks of which only the outline is known.
    pub(crate) fn missing_blocks(&self) -> usize {
        self.store.as_deref().map_or(0, |store| store.missing.len())
    }

    /// All is back; the host's bytes are where `payload` has them, if not in memory. `false`: they cannot be where they
    /// are said to be.
    pub(crate) fn restored(&mut self, payload: Option<Box<dyn Payload>>) -> bool {
        let unit_bytes = self.geometry.unit_bytes;
        let Some(store) = self.store.as_deref_mut() else { return true };
        if let Some(payload) = payload {
            let sums = store.slots.take().map(|slots| slots.sums).unwrap_or_default();
            let mut slots = Slots::outside(unit_bytes, payload);
            slots.sums = sums;
            store.slots = Some(slots);
        }
        let contents = store.contents.iter().flatten().flat_map(|contents| contents.iter().copied());
        let slots = store.slots.as_mut();
        slots.is_none_or(|slots| slots.set_used(contents, slots_max(&self.geometry)))
    }

    /// A block in its present state.
    pub(super) fn whole_block(&self, number: u32) -> WholeBlock {
        let block = self.block(number);
        let mut whole = WholeBlock {
            erase_count: block.erase_count,
            endurance: block.endurance,
            mode: block.mode,
            health: block.health as u8,
            next_page: block.next_page,
            spare: self.spare(number).iter().map(|unit| unit.wrapping_add(1)).collect(),
            stamp: NO_STAMP,
            unsound: false,
            states: Vec::new(),
            orders: Vec::new(),
            contents: Vec::new(),
            records: Vec::new(),
        };
        let Some(store) = self.store.as_deref() else { return whole };
        let pages = page_index(&self.geometry, number, 0)..page_index(&self.geometry, number, block.next_page);
        whole.stamp = store.stamps[number as usize];
        whole.unsound = store.unsound[number as usize];
        whole.states = store.states[pages.clone()].iter().map(|state| *state as u8).collect();
        let mut before = 0;
        whole.orders = store.orders[pages]
            .iter()
            .map(|&order| {
                let more = order.wrapping_sub(std::mem::replace(&mut before, order));
                more as i64
            })
            .collect();
        if let Some(contents) = &store.contents[number as usize] {
            whole.contents = contents[..whole.spare.len()].iter().map(|content| content.0).collect();
        }
        let records = store.records.range((number, 0)..(number + 1, 0));
        whole.records = records.map(|(&(_, page), record)| (page, record.to_vec())).collect();
        whole
    }

    /// An empty block gets the given state. `false`: the state does not fit.
    pub(super) fn set_block(&mut self, number: u32, whole: &WholeBlock) -> bool {
        let geometry = self.geometry;
        let is_mode = whole.mode == geometry.native || whole.mode == geometry.native.single_bit();
        let units = (whole.next_page as usize).saturating_mul(geometry.units_per_page as usize);
        let has_states = self.store.is_none() || whole.states.len() == whole.next_page as usize;
        if !is_mode
            || whole.next_page > geometry.pages_in(whole.mode)
            || whole.spare.len() != units
            || whole.orders.len() != whole.states.len()
            || !has_states
            || !(whole.contents.is_empty() || whole.contents.len() == units)
        {
            return false;
        }
        let first = geometry.first_unit(number, 0) as usize;
        for (unit, stored) in self.spare[first..].iter_mut().zip(&whole.spare) {
            *unit = stored.wrapping_sub(1);
        }
        let health = match whole.health {
            0 => BlockHealth::Good,
            1 => BlockHealth::FactoryBad,
            _ => BlockHealth::GrownBad,
        };
        let WholeBlock { erase_count, endurance, mode, next_page, .. } = *whole;
        self.blocks[number as usize] = Block { erase_count, endurance, next_page, mode, health };
        if let Some(store) = self.store.as_deref_mut() {
            store.set_block(&geometry, number, whole);
        }
        true
    }
}

/// The largest number of slots in use: one for each unit, and those that a cut of an erase in progress may restore.
pub(super) fn slots_max(geometry: &super::Geometry) -> u64 {
    2 * u64::from(geometry.blocks) * u64::from(geometry.units_per_block())
}

impl PageStore {
    fn to_image(&self) -> PageStoreImage {
        // Slots of the edge are not looked at: a request may wait for this, and there are millions.
        let payload = self.slots.as_ref().filter(|slots| !slots.is_outside()).map_or_else(Vec::new, |slots| {
            let used = self.contents.iter().flatten().flat_map(|contents| contents.iter());
            let with_slot = used.filter(|content| content.slot().is_some());
            with_slot.filter_map(|content| Some((content.0, slots.get(*content)?.to_vec()))).collect()
        });
        let bytes_are = match &self.slots {
            None => BytesAre::NotKept,
            Some(slots) if slots.is_outside() => BytesAre::Outside,
            Some(_) => BytesAre::Here,
        };
        PageStoreImage { bytes: bytes_are, next_order: self.next_order, payload }
    }

    fn set_block(&mut self, geometry: &super::Geometry, number: u32, whole: &WholeBlock) {
        self.stamps[number as usize] = whole.stamp;
        self.unsound[number as usize] = whole.unsound;
        let first = page_index(geometry, number, 0);
        let (mut order, pages) = (0u64, whole.states.iter().zip(&whole.orders));
        for (index, (state, more)) in (first..).zip(pages) {
            order = order.wrapping_add(*more as u64);
            self.orders[index] = order;
            self.states[index] = match state {
                0 => PageState::Erased,
                1 => PageState::Good,
                2 => PageState::Unstable,
                _ => PageState::Torn,
            };
        }
        if !whole.contents.is_empty() && self.keeps_data() {
            let mut contents = vec![Content::NONE; geometry.units_per_block() as usize].into_boxed_slice();
            for (content, &stored) in contents.iter_mut().zip(&whole.contents) {
                *content = Content(stored);
            }
            self.contents[number as usize] = Some(contents);
        }
        for (page, record) in &whole.records {
            self.records.insert((number, *page), Arc::from(record.as_slice()));
        }
    }

    /// A block is empty, and its slots have no owner: they are found free afterwards.
    pub(super) fn wipe_block(&mut self, geometry: &super::Geometry, block: u32) {
        let pages = page_index(geometry, block, 0)..page_index(geometry, block + 1, 0);
        self.orders[pages.clone()].fill(0);
        self.states[pages].fill(PageState::Erased);
        (self.stamps[block as usize], self.unsound[block as usize]) = (NO_STAMP, false);
        self.contents[block as usize] = None;
        let known: Vec<_> = self.records.range((block, 0)..(block + 1, 0)).map(|(&key, _)| key).collect();
        for key in known {
            self.records.remove(&key);
        }
    }
}
