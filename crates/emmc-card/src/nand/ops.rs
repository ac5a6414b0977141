//! Read, program, erase: the contract of the flash, on the hot path.

use emmc_units::Instant;

use super::journal::{BlockImage, Entry, What};
use super::page_store::PageState;
use super::timing::Clockwork;
use super::{Block, BlockHealth, CellMode, NO_UNIT, Nand, NandError};

/// For events that do not concern a whole block.
const NO_BLOCK: u32 = u32::MAX;

/// What a page is programmed with, beside the numbers of its units.
#[derive(Clone, Copy)]
enum Content<'a> {
    Nothing,
    Bytes(&'a [u8]),
    Record(&'a [u8]),
}

impl Nand {
    /// Reads part of a page.
    ///
    /// Errors: [`NandError::Uncorrectable`], [`NandError::PowerLost`].
    #[inline]
    pub fn read(&mut self, block: u32, page: u32, bytes: u32, now: Instant) -> Result<Instant, NandError> {
        if self.wary {
            self.check_read(block, page)?;
        }
        self.counters.page_reads += 1;
        if self.ages() {
            self.turn_to(block, now);
        }
        let mode = self.blocks[block as usize].mode;
        Ok(self.timing.read(&self.geometry, mode, block, page, bytes, now))
    }

    #[inline(never)]
    fn check_read(&self, block: u32, page: u32) -> Result<(), NandError> {
        if !self.power.is_on() {
            return Err(NandError::PowerLost);
        }
        let torn = |store: &super::PageStore| store.state(&self.geometry, block, page) == PageState::Torn;
        if self.store.as_deref().is_some_and(torn) {
            return Err(NandError::Uncorrectable { block, page });
        }
        Ok(())
    }

    /// Programs the next page of a block: `units` are the logical units that its units hold.
    ///
    /// Shape: `units` has units_per_page entries; `data` is a page, or absent where payload is not simulated.
    /// Errors: [`NandError::ProgramFailed`], [`NandError::PowerLost`].
    #[inline]
    pub fn program(
        &mut self,
        block: u32,
        page: u32,
        units: &[u32],
        data: Option<&[u8]>,
        now: Instant,
    ) -> Result<Instant, NandError> {
        self.program_with(block, page, units, data.map_or(Content::Nothing, Content::Bytes), now)
    }

    /// Programs the next page of a block with a record of the layer's own instead of units. Its bytes are kept whenever
    /// sequence numbers are.
    ///
    /// Shape: `record` is at most a page and, in its spare area, 32 bytes more.
    /// Errors: as [`Nand::program`].
    pub fn program_record(&mut self, block: u32, page: u32, record: &[u8], now: Instant) -> Result<Instant, NandError> {
        if record.len() > self.geometry.page_bytes() as usize + 32 {
            self.violation("record longer than a page");
        }
        // 64 KiB pages of 512-byte units, twice what any profile may have.
        const PADDING: [u32; 128] = [NO_UNIT; 128];
        let units = &PADDING[..self.geometry.units_per_page as usize];
        self.program_with(block, page, units, Content::Record(record), now)
    }

    #[inline(always)]
    fn program_with(
        &mut self,
        block: u32,
        page: u32,
        units: &[u32],
        content: Content<'_>,
        now: Instant,
    ) -> Result<Instant, NandError> {
        let state = self.blocks[block as usize];
        let in_order = page == state.next_page && page < self.timing.pages_in(state.mode);
        if !in_order || state.health != BlockHealth::Good || units.len() != self.geometry.units_per_page as usize {
            self.violation("program");
        }
        if !self.power.is_on() {
            return Err(NandError::PowerLost);
        }
        self.blocks[block as usize].next_page = page + 1;
        let first = self.geometry.first_unit(block, page) as usize;
        self.spare[first..first + units.len()].copy_from_slice(units);
        self.counters.page_programs += 1;
        self.counters.unit_programs += units.len() as u64;
        self.steps += 1;
        if self.ages() {
            self.turn_to(block, now);
            if page == 0 {
                self.begin_block(block, now);
            }
        }
        let (start, done) = self.timing.program(&self.geometry, state.mode, block, page, now);
        if self.store.is_some() {
            self.keep_program(block, page, units, content, (start, done));
        }
        if self.steps >= self.alarm {
            self.disturb_program(block, page, (start, done))?;
        }
        Ok(done)
    }

    #[inline(never)]
    fn keep_program(&mut self, block: u32, page: u32, units: &[u32], content: Content<'_>, span: (Instant, Instant)) {
        let geometry = self.geometry;
        let Some(store) = self.store.as_deref_mut() else { return };
        let unsound = store.unsound[block as usize];
        store.program(&geometry, block, page);
        match content {
            Content::Bytes(data) if store.keeps_data() => store.put_page(&geometry, block, page, units, data),
            Content::Record(record) => drop(store.records.insert((block, page), record.into())),
            Content::Bytes(_) | Content::Nothing => {}
        }
        store.log_program(&geometry, block, page, units);
        store.note(&geometry, Entry { start: span.0, done: span.1, block, what: What::Program { page } });
        if unsound {
            self.violation("program into a block that must be erased first");
        }
    }

    /// An exceptional step: the program fails, or power is lost.
    #[cold]
    fn disturb_program(&mut self, block: u32, page: u32, span: (Instant, Instant)) -> Result<(), NandError> {
        self.cut_if_due(span)?;
        if self.steps < self.failing.next_program {
            return Ok(());
        }
        self.failing.draw_program(self.steps);
        self.set_alarm();
        self.counters.program_failures += 1;
        self.clear_spare(block, page);
        if let Some(store) = &mut self.store {
            store.set_state(&self.geometry, block, page, PageState::Torn);
        }
        self.changed(block);
        Err(NandError::ProgramFailed { block, done: span.1 })
    }

    /// Erases a block.
    ///
    /// Errors: [`NandError::EraseFailed`] when its endurance is used up, [`NandError::PowerLost`].
    pub fn erase(&mut self, block: u32, now: Instant) -> Result<Instant, NandError> {
        if !self.power.is_on() {
            return Err(NandError::PowerLost);
        }
        let before = *self.block(block);
        if before.health != BlockHealth::Good {
            self.violation("erase");
        }
        self.steps += 1;
        if self.ages() {
            self.turn_to(block, now);
        }
        let (start, done) = self.timing.erase(&self.geometry, before.mode, now);
        if before.erase_count >= self.endurance_of(block) || self.failing.erase_fails() {
            return self.fail_erase(block, before, (start, done));
        }
        self.counters.erases += 1;
        if let Some(aged) = self.timing.aged.as_deref_mut() {
            aged.erased(block);
        }
        if let Some(store) = &mut self.store {
            let units = self.geometry.first_unit(block, 0) as usize..self.geometry.first_unit(block + 1, 0) as usize;
            let mut image = Box::new(BlockImage::new(before, self.spare[units.clone()].to_vec()));
            store.erase(&self.geometry, block, &mut image);
            store.note(&self.geometry, Entry { start, done, block, what: What::Erase(image) });
            store.changes.iter_mut().for_each(|changes| changes.erase(block, before.erase_count + 1));
            self.spare[units].fill(NO_UNIT);
        }
        let state = &mut self.blocks[block as usize];
        state.next_page = 0;
        state.erase_count += 1;
        if self.steps >= self.alarm {
            self.cut_if_due((start, done))?;
        }
        Ok(done)
    }

    /// The block is bad from now on, and none of its pages can be read.
    #[cold]
    fn fail_erase(&mut self, block: u32, before: Block, span: (Instant, Instant)) -> Result<Instant, NandError> {
        self.counters.erase_failures += 1;
        self.blocks[block as usize].health = BlockHealth::GrownBad;
        let units = self.geometry.first_unit(block, 0) as usize..self.geometry.first_unit(block + 1, 0) as usize;
        if let Some(store) = &mut self.store {
            let mut image = Box::new(BlockImage::new(before, self.spare[units.clone()].to_vec()));
            store.erase(&self.geometry, block, &mut image);
            for page in 0..before.next_page {
                store.set_state(&self.geometry, block, page, PageState::Torn);
            }
            let entry = Entry { start: span.0, done: span.1, block, what: What::FailedErase(image) };
            store.note(&self.geometry, entry);
        }
        self.spare[units].fill(NO_UNIT);
        self.changed(block);
        if self.steps >= self.alarm {
            self.cut_if_due(span)?;
        }
        Err(NandError::EraseFailed { block })
    }

    /// Changes how a block is used. It must be erased, or bad.
    pub fn set_mode(&mut self, block: u32, mode: CellMode) {
        let found = self.block(block);
        if found.next_page != 0 && found.health == BlockHealth::Good {
            self.violation("set_mode");
        }
        self.blocks[block as usize].mode = mode;
        if let Some(changes) = self.store.as_deref_mut().and_then(|store| store.changes.as_mut()) {
            changes.mode(block, mode);
        }
    }

    /// Gives a block a stamp, by which its owner recognises its role. It is stored in the spare area of each of its
    /// pages, and must be set before the first program. Plain simulation does not store it.
    pub fn set_stamp(&mut self, block: u32, stamp: u32) {
        if self.block(block).next_page != 0 {
            self.violation("set_stamp");
        }
        if let Some(store) = &mut self.store {
            store.stamps[block as usize] = stamp;
            store.changes.iter_mut().for_each(|changes| changes.stamp(block, stamp));
        }
    }

    /// Retires a block permanently, after a program in it has failed and its valid data are elsewhere. It is so from
    /// `at`: after an earlier cut the block is unchanged.
    pub fn mark_bad(&mut self, block: u32, at: Instant) {
        let before = std::mem::replace(&mut self.blocks[block as usize].health, BlockHealth::GrownBad);
        if let Some(store) = self.store.as_deref_mut().filter(|_| before == BlockHealth::Good) {
            store.note(&self.geometry, Entry { start: at, done: at, block, what: What::Retire });
        }
        self.changed(block);
    }

    /// The bytes of physical units are unneeded from `at` on, because newer, final ones are in flash: the units then
    /// read as zeros, if they have the given sequence number. An earlier cut leaves them unchanged.
    pub(crate) fn forget(&mut self, units: impl Iterator<Item = (u32, u64)>, at: Instant) {
        let Some(store) = self.store.as_deref_mut().filter(|store| store.keeps_data()) else { return };
        let geometry = self.geometry;
        let known = units.filter_map(|(unit, order)| {
            let (content, of_page) = store.content(&geometry, unit);
            (of_page == order && content.slot().is_some()).then_some((unit, content))
        });
        let units: Vec<_> = known.collect();
        if !units.is_empty() {
            store.note(&geometry, Entry { start: at, done: at, block: NO_BLOCK, what: What::Forget(units) });
        }
    }

    /// The sequence number of a physical unit's page; 0 where none is kept.
    pub(crate) fn order_of(&self, unit: u32) -> u64 {
        let order = |store: &super::PageStore| store.orders[(unit / self.geometry.units_per_page) as usize];
        self.store.as_deref().map_or(0, order)
    }

    /// A block differs from the log of changes; it is recorded completely.
    pub(super) fn changed(&mut self, block: u32) {
        if let Some(changes) = self.store.as_deref_mut().and_then(|store| store.changes.as_mut()) {
            changes.block(block);
        }
    }

    pub(super) fn clear_spare(&mut self, block: u32, page: u32) {
        let first = self.geometry.first_unit(block, page) as usize;
        self.spare[first..first + self.geometry.units_per_page as usize].fill(NO_UNIT);
    }
}
