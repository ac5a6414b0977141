//! Changes of the flash, as records that the edge saves, so that the flash can be rebuilt after the process dies.
//!
//! Frequent changes have a short record; any other change records the whole block, in its state when the records are
//! taken. Replayed over an earlier image ([`super::image`]), records give the flash at the time they were taken, with
//! no operation in progress. Absent on purpose: the bytes of the host, which are in slots (`payload`), random state,
//! and the registers (`card`).

use std::collections::BTreeSet;

use emmc_units::Instant;

use super::content::Content;
use super::image::WholeBlock;
use super::landing::Landing;
use super::page_store::{PageState, PageStore, page_index};
use super::payload::Slots;
use super::{CellMode, Geometry, NO_UNIT, Nand};

const PROGRAM: u8 = 1;
const RECORD: u8 = 2;
const ERASE: u8 = 3;
const STAMP: u8 = 4;
const MODE: u8 = 5;
const SESSION: u8 = 6;
const BLOCK: u8 = 7;
const FORGET: u8 = 8;
const AGE: u8 = 9;
/// As [`PROGRAM`], and then the checksum of each content that has a slot.
const SUMMED_PROGRAM: u8 = 10;

/// Records that were not taken yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    bytes: Vec<u8>,
    blocks: BTreeSet<u32>,
    /// Units whose bytes were dropped, as a run that may continue: block, first, count.
    forgotten: Option<(u32, u32, u32)>,
}

impl Changes {
    fn start(&mut self, tag: u8, block: u32) {
        self.end_forgotten();
        self.bytes.push(tag);
        self.number(block);
    }

    fn number(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn program(
        &mut self,
        (block, page, order): (u32, u32, u64),
        units: &[u32],
        contents: Option<&[Content]>,
        slots: Option<&Slots>,
    ) {
        self.start(if slots.is_some() { SUMMED_PROGRAM } else { PROGRAM }, block);
        self.number(page);
        self.bytes.extend_from_slice(&order.to_le_bytes());
        self.number(units.len() as u32);
        units.iter().for_each(|&unit| self.number(unit));
        match contents {
            Some(contents) => contents.iter().for_each(|content| self.number(content.0)),
            None => units.iter().for_each(|_| self.number(Content::NONE.0)),
        }
        if let Some(slots) = slots {
            let with_slot = contents.unwrap_or_default().iter().filter(|content| content.slot().is_some());
            with_slot.for_each(|content| self.number(slots.sum(*content)));
        }
    }

    fn record(&mut self, block: u32, page: u32, order: u64, record: &[u8]) {
        self.start(RECORD, block);
        self.number(page);
        self.bytes.extend_from_slice(&order.to_le_bytes());
        self.number(record.len() as u32);
        self.bytes.extend_from_slice(record);
    }

    pub(super) fn erase(&mut self, block: u32, erase_count: u32) {
        self.start(ERASE, block);
        self.number(erase_count);
    }

    pub(super) fn stamp(&mut self, block: u32, stamp: u32) {
        self.start(STAMP, block);
        self.number(stamp);
    }

    /// The first page of a block is programmed.
    pub(super) fn age(&mut self, block: u32, at: Instant) {
        self.start(AGE, block);
        self.bytes.extend_from_slice(&at.0.to_le_bytes());
    }

    pub(super) fn mode(&mut self, block: u32, mode: CellMode) {
        self.start(MODE, block);
        self.bytes.push(mode as u8);
    }

    /// Drops the bytes of a unit of a block. Neighbours are combined in one record.
    pub(super) fn forget(&mut self, block: u32, within: u32) {
        match &mut self.forgotten {
            Some((known, first, count)) if *known == block && *first + *count == within => *count += 1,
            _ => {
                self.end_forgotten();
                self.forgotten = Some((block, within, 1));
            }
        }
    }

    fn end_forgotten(&mut self) {
        if let Some((block, first, count)) = self.forgotten.take() {
            self.bytes.push(FORGET);
            [block, first, count].into_iter().for_each(|number| self.number(number));
        }
    }

    /// Power is back; sequence numbers continue from here.
    pub(super) fn session(&mut self, next_order: u64) {
        self.end_forgotten();
        self.bytes.push(SESSION);
        self.bytes.extend_from_slice(&next_order.to_le_bytes());
    }

    /// Records a whole block, for changes without a record of their own.
    pub(super) fn block(&mut self, block: u32) {
        self.blocks.insert(block);
    }

    /// Whether nothing has changed.
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.blocks.is_empty() && self.forgotten.is_none()
    }
}

impl PageStore {
    /// Records a page that was just programmed.
    pub(super) fn log_program(&mut self, geometry: &Geometry, block: u32, page: u32, units: &[u32]) {
        let Some(mut changes) = self.changes.take() else { return };
        let order = self.orders[page_index(geometry, block, page)];
        match self.records.get(&(block, page)) {
            Some(record) => changes.record(block, page, order, record),
            None => {
                let slots = self.slots.as_ref().filter(|slots| slots.is_outside());
                let contents = self.page_contents(geometry, block, page);
                changes.program((block, page, order), units, contents, slots);
            }
        }
        self.changes = Some(changes);
    }
}

impl Nand {
    /// From now on changes are recorded, for [`Nand::take_changes`]. For flash with sequence numbers.
    pub(crate) fn log_changes(&mut self) {
        if let Some(store) = self.store.as_deref_mut() {
            store.changes = Some(Changes::default());
        }
    }

    /// Appends the changes since the last call to `out`; `false`: none.
    pub(crate) fn take_changes(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(changes) = self.store.as_deref_mut().and_then(|store| store.changes.as_mut()) else { return false };
        if changes.is_empty() {
            return false;
        }
        changes.end_forgotten();
        out.append(&mut changes.bytes);
        for block in std::mem::take(&mut changes.blocks) {
            self.record_block(block, out);
        }
        true
    }

    /// Appends the record of a whole block in its present state.
    pub(crate) fn record_block(&self, block: u32, out: &mut Vec<u8>) {
        // Plain numbers are written to memory, which cannot fail.
        let mut bytes = postcard::to_allocvec(&self.whole_block(block)).unwrap_or_default();
        let contents = self.store.as_deref().and_then(|store| Some((store, store.contents[block as usize].as_ref()?)));
        if let Some((store, contents)) = contents {
            let programmed = self.spare(block).len();
            let sums = store.sums_of(&contents[..programmed]);
            sums.iter().for_each(|sum| bytes.extend_from_slice(&sum.to_le_bytes()));
        }
        out.push(BLOCK);
        out.extend_from_slice(&block.to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    /// The taken records are saved: the slots they released may be reused.
    pub(crate) fn changes_are_kept(&mut self) {
        if let Some(slots) = self.store.as_deref_mut().and_then(|store| store.slots.as_mut()) {
            slots.recorded();
        }
    }

    /// Makes the host's bytes durable, before the records that refer to them are saved.
    ///
    /// Errors: why that failed.
    pub(crate) fn settle_payload(&mut self) -> Result<(), String> {
        let slots = self.store.as_deref_mut().and_then(|store| store.slots.as_mut());
        slots.map_or(Ok(()), |slots| slots.settle())
    }

    /// Slots for `units` units that a client will send; `None`: it sends them elsewhere. [`Nand::end_landing`] follows.
    pub fn land(&mut self, units: u32) -> Option<Landing> {
        self.store.as_deref_mut()?.slots.as_mut()?.land(units)
    }

    /// What was received is written, or will not be.
    pub fn end_landing(&mut self, landing: Landing) {
        if let Some(slots) = self.store.as_deref_mut().and_then(|store| store.slots.as_mut()) {
            slots.end_landing(landing);
        }
    }

    /// End of the used payload slots.
    pub(crate) fn payload_end(&self) -> u32 {
        self.store.as_deref().and_then(|store| store.slots.as_ref()).map_or(0, |slots| slots.end())
    }

    /// Releases unused space of the payload.
    pub(crate) fn tidy_payload(&mut self) {
        if let Some(slots) = self.store.as_deref_mut().and_then(|store| store.slots.as_mut()) {
            slots.tidy();
        }
    }

    /// Releases some unused space of the payload; `true`: that was all.
    pub(crate) fn tidy_some_payload(&mut self) -> bool {
        let slots = self.store.as_deref_mut().and_then(|store| store.slots.as_mut());
        slots.is_none_or(|slots| slots.tidy_some())
    }

    /// Applies the first record; returns the rest. `None`: not a record of this flash.
    pub(super) fn replay<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = Rest(bytes);
        let tag = rest.byte()?;
        if tag == SESSION {
            self.store.as_deref_mut()?.next_order = rest.long()?;
            return Some(rest.0);
        }
        let block = rest.number()?;
        if block >= self.geometry.blocks {
            return None;
        }
        let index = block as usize;
        match tag {
            PROGRAM | SUMMED_PROGRAM => self.replay_program(block, tag == SUMMED_PROGRAM, &mut rest)?,
            RECORD => {
                let (page, order, length) = (rest.number()?, rest.long()?, rest.number()?);
                let record = rest.take(length as usize)?;
                self.replay_page(block, page, order)?;
                self.store.as_deref_mut()?.records.insert((block, page), record.into());
            }
            ERASE => {
                self.wipe(block)?;
                self.blocks[index].erase_count = rest.number()?;
                self.counters.erases += 1;
                self.steps += 1;
            }
            AGE => {
                let at = Instant(rest.long()?);
                if let Some(aged) = self.timing.aged.as_deref_mut() {
                    aged.begin(block, at);
                }
            }
            STAMP => self.store.as_deref_mut()?.stamps[index] = rest.number()?,
            MODE => {
                let (mode, native) = (mode(rest.byte()?)?, self.geometry.native);
                let fits = mode == native || mode == native.single_bit();
                if !fits || self.blocks[index].next_page > self.geometry.pages_in(mode) {
                    return None;
                }
                self.blocks[index].mode = mode;
            }
            FORGET => {
                let (first, count) = (rest.number()?, rest.number()?);
                let contents = self.store.as_deref_mut()?.contents[index].as_mut();
                let end = first.checked_add(count)?;
                if let Some(contents) = contents {
                    contents.get_mut(first as usize..end as usize)?.fill(Content::NONE);
                }
            }
            BLOCK => {
                let length = rest.number()?;
                let (whole, sums) = postcard::take_from_bytes::<WholeBlock>(rest.take(length as usize)?).ok()?;
                self.wipe(block)?;
                self.set_block(block, &whole).then_some(())?;
                let store = self.store.as_deref_mut()?;
                store.missing.remove(&block);
                if !sums.is_empty() {
                    let sums: Vec<u32> = sums.chunks(4).map(|sum| Rest(sum).number()).collect::<Option<_>>()?;
                    let contents = store.contents[index].clone()?;
                    store.set_sums(&self.geometry, &contents, &sums).then_some(())?;
                }
            }
            _ => return None,
        }
        Some(rest.0)
    }

    fn replay_program(&mut self, block: u32, has_sums: bool, rest: &mut Rest<'_>) -> Option<()> {
        let (page, order, count) = (rest.number()?, rest.long()?, rest.number()?);
        if count != self.geometry.units_per_page {
            return None;
        }
        self.replay_page(block, page, order)?;
        let first = self.geometry.first_unit(block, page) as usize;
        for index in 0..count as usize {
            self.spare[first + index] = rest.number()?;
        }
        let store = self.store.as_deref_mut()?;
        let mut contents = Vec::with_capacity(count as usize);
        for index in 0..count as usize {
            let content = Content(rest.number()?);
            if content != Content::NONE {
                store.put_unit(&self.geometry, block, page, index, content);
            }
            contents.push(content);
        }
        if has_sums {
            let with_slot = contents.iter().filter(|content| content.slot().is_some());
            let sums: Vec<u32> = with_slot.map(|_| rest.number()).collect::<Option<_>>()?;
            store.set_sums(&self.geometry, &contents, &sums).then_some(())?;
        }
        Some(())
    }

    /// A page is programmed; its content follows.
    fn replay_page(&mut self, block: u32, page: u32, order: u64) -> Option<()> {
        let (geometry, store) = (self.geometry, self.store.as_deref_mut()?);
        if page >= geometry.pages_in(self.blocks[block as usize].mode) {
            return None;
        }
        let index = page_index(&geometry, block, page);
        (store.states[index], store.orders[index], store.next_order) = (PageState::Good, order, order.checked_add(1)?);
        self.blocks[block as usize].next_page = page + 1;
        self.counters.page_programs += 1;
        self.counters.unit_programs += u64::from(geometry.units_per_page);
        self.steps += 1;
        Some(())
    }

    /// A block is empty.
    pub(super) fn wipe(&mut self, block: u32) -> Option<()> {
        let geometry = self.geometry;
        let units = geometry.first_unit(block, 0) as usize..geometry.first_unit(block + 1, 0) as usize;
        self.spare[units].fill(NO_UNIT);
        self.blocks[block as usize].next_page = 0;
        self.store.as_deref_mut()?.wipe_block(&geometry, block);
        Some(())
    }
}

/// A mode by its number.
fn mode(code: u8) -> Option<CellMode> {
    [CellMode::Slc, CellMode::Pslc, CellMode::Mlc, CellMode::Tlc].into_iter().find(|mode| *mode as u8 == code)
}

/// Bytes still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}
