//! Power loss and power-on: the effects described in `fault`.

use emmc_units::{Instant, Nanos, Rng};

use super::journal::{BlockImage, What};
use super::page_store::{NO_STAMP, PageState, SESSION_SHIFT};
use super::{BlockHealth, Nand, NandError};
use crate::nand::FaultPlan;

/// Whether there is power, and when it is to go.
#[derive(Clone, Debug)]
pub(super) struct Power {
    off_at: Option<Instant>,
    plan: Option<FaultPlan>,
    rng: Rng,
}

impl Power {
    pub(super) fn new(seed: u64) -> Self {
        Self { off_at: None, plan: None, rng: Rng::new(seed) }
    }

    /// The random state, for saving.
    pub(super) fn rng(&self) -> &Rng {
        &self.rng
    }

    /// Restores the random state.
    pub(super) fn set_rng(&mut self, rng: Rng) {
        self.rng = rng;
    }

    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        self.off_at.is_none()
    }
}

impl Nand {
    /// Arms a power cut at a step. It replaces an earlier plan; a plan that is armed while power is off applies after
    /// power-on.
    pub fn arm(&mut self, plan: FaultPlan) {
        if self.store.is_none() {
            self.violation("a power cut is armed without sequence numbers");
        }
        self.power.plan = Some(plan);
        self.set_alarm();
    }

    /// No cut is armed any more.
    pub fn disarm(&mut self) {
        self.power.plan = None;
        self.set_alarm();
    }

    /// When power was lost; `None` while it is on. Operations due before it are done.
    pub fn off_since(&self) -> Option<Instant> {
        self.power.off_at
    }

    /// The host's clock has reached `now`: no cut is before it, so earlier operations need not be remembered.
    pub fn passed(&mut self, now: Instant) {
        if let Some(store) = &mut self.store {
            store.forget_done(&self.geometry, now);
        }
    }

    /// Completed data that the last cut damaged, because it shares word lines with an interrupted operation: block and
    /// logical unit. For checks; no controller knows it.
    pub fn damaged_pairs(&self) -> &[(u32, u32)] {
        self.store.as_ref().map_or(&[], |store| &store.damaged_pairs)
    }

    /// Power is lost at `now`: operations in progress are interrupted.
    pub fn power_off(&mut self, now: Instant) {
        if self.power.is_on() {
            let mut rng = Rng::new(self.power.rng.next_u64());
            self.cut(now, &mut rng);
        }
    }

    /// Power is back at `now`; unstable pages may have stopped reading.
    pub fn power_on(&mut self, now: Instant) {
        self.timing.stop(now);
        let mut rng = Rng::new(self.power.rng.next_u64());
        self.power.off_at = None;
        self.weaken(|| rng.below(2) == 0);
        if let Some(store) = self.store.as_deref_mut() {
            store.forget_all(&self.geometry);
            // A stamp that no page has taken to flash was in memory.
            for (stamp, block) in store.stamps.iter_mut().zip(&self.blocks) {
                if block.next_page == 0 {
                    *stamp = NO_STAMP;
                }
            }
            store.next_order = ((store.next_order >> SESSION_SHIFT) + 1) << SESSION_SHIFT;
            let next_order = store.next_order;
            store.changes.iter_mut().for_each(|changes| changes.session(next_order));
        }
        self.wary = self.store.is_some();
        self.set_alarm();
    }

    /// Time has passed since the power came back: no unstable page reads any more.
    pub fn decay(&mut self) {
        self.weaken(|| true);
    }

    /// Makes a page unreadable, as by charge loss. For tests of the layers above.
    pub fn spoil(&mut self, block: u32, page: u32) {
        if let Some(store) = self.store.as_deref_mut() {
            store.set_state(&self.geometry, block, page, PageState::Torn);
            self.wary = true;
            self.changed(block);
        }
    }

    fn weaken(&mut self, mut fails: impl FnMut() -> bool) {
        let geometry = self.geometry;
        let Some(store) = self.store.as_deref_mut() else { return };
        let mut torn = Vec::new();
        for (index, state) in store.states.iter_mut().enumerate() {
            if *state == PageState::Unstable && fails() {
                *state = PageState::Torn;
                torn.push(index as u32);
            }
        }
        for index in torn {
            self.clear_spare(index / geometry.pages_per_block, index % geometry.pages_per_block);
            self.changed(index / geometry.pages_per_block);
        }
    }

    /// The next step at which something is to be done beside the step itself.
    pub(super) fn set_alarm(&mut self) {
        let cut = self.power.plan.map_or(u64::MAX, |plan| plan.step);
        self.alarm = cut.min(self.failing.next_program);
    }

    /// Cuts power if this step, whose cells changed within `span`, is the one.
    pub(super) fn cut_if_due(&mut self, span: (Instant, Instant)) -> Result<(), NandError> {
        let Some(plan) = self.power.plan.filter(|plan| self.steps >= plan.step) else { return Ok(()) };
        let mut rng = Rng::new(plan.seed);
        let length = span.1.since(span.0).0;
        let at = match rng.below(8) {
            0 => span.0,
            1 => span.1,
            _ => span.0 + Nanos(1 + rng.below(length.saturating_sub(1))),
        };
        self.cut(at, &mut rng);
        Err(NandError::PowerLost)
    }

    /// Undoes operations that had not started by `at`, newest first, and damages those in progress.
    fn cut(&mut self, at: Instant, rng: &mut Rng) {
        self.power.off_at = Some(at);
        self.power.plan = None;
        self.wary = true;
        self.timing.stop(at);
        let Some(store) = self.store.as_deref_mut() else { return };
        store.damaged_pairs.clear();
        let mut touched = Vec::new();
        let (under_way, done): (Vec<_>, Vec<_>) =
            std::mem::take(&mut store.journal).into_iter().partition(|entry| entry.done > at);
        done.into_iter().for_each(|entry| store.settle(&self.geometry, entry));
        for entry in under_way.into_iter().rev() {
            let begun = entry.start < at;
            if !matches!(entry.what, What::Forget(_)) {
                touched.push(entry.block);
            }
            match entry.what {
                What::Program { page } if begun => self.tear(entry.block, page, rng),
                What::Program { page } => self.undo_program(entry.block, page),
                What::Erase(image) => {
                    self.counters.erases -= u64::from(!begun);
                    self.undo_erase(entry.block, *image, begun.then_some(&mut *rng));
                }
                What::FailedErase(image) => {
                    self.counters.erase_failures -= 1;
                    self.counters.erases += u64::from(begun);
                    self.undo_erase(entry.block, *image, begun.then_some(&mut *rng));
                }
                What::Forget(_) => {}
                What::Retire => self.blocks[entry.block as usize].health = BlockHealth::Good,
            }
        }
        for block in touched {
            self.find_damage(block);
            self.changed(block);
        }
    }

    /// An interrupted program.
    fn tear(&mut self, block: u32, page: u32, rng: &mut Rng) {
        let mode = self.block(block).mode;
        for other in self.geometry.word_line(mode, page).filter(|&other| other <= page) {
            let odds = rng.below(4);
            if other != page && odds != 3 {
                let pairs = self.page_units(block, other).iter().map(|&unit| (block, unit)).collect::<Vec<_>>();
                self.store.iter_mut().for_each(|store| store.damaged_pairs.extend(&pairs));
            }
            match odds {
                0 => self.damage(block, other, PageState::Unstable),
                3 if other != page => {}
                _ => self.damage(block, other, PageState::Torn),
            }
        }
    }

    fn damage(&mut self, block: u32, page: u32, state: PageState) {
        let geometry = self.geometry;
        let Some(store) = self.store.as_deref_mut() else { return };
        if store.reads(&geometry, block, page) {
            store.set_state(&geometry, block, page, state);
            if state == PageState::Torn {
                self.clear_spare(block, page);
            }
        }
    }

    /// A program that had not begun.
    fn undo_program(&mut self, block: u32, page: u32) {
        let geometry = self.geometry;
        let Some(store) = self.store.as_deref_mut() else { return };
        store.wipe_page(&geometry, block, page);
        let programmed = |page: &u32| store.state(&geometry, block, *page) != PageState::Erased;
        let end = self.blocks[block as usize].next_page;
        self.blocks[block as usize].next_page = (0..end).rev().find(programmed).map_or(0, |last| last + 1);
        self.clear_spare(block, page);
        self.counters.page_programs -= 1;
        self.counters.unit_programs -= u64::from(geometry.units_per_page);
    }

    /// An erase that had not begun or, if there is chance to draw from, was interrupted.
    fn undo_erase(&mut self, block: u32, image: BlockImage, interrupted: Option<&mut Rng>) {
        let geometry = self.geometry;
        let first = geometry.first_unit(block, 0) as usize;
        self.spare[first..first + image.spare.len()].copy_from_slice(&image.spare);
        self.blocks[block as usize] = image.block;
        if let Some(store) = self.store.as_deref_mut() {
            store.restore(&geometry, block, image);
        }
        if let Some(rng) = interrupted {
            self.half_erase(block, rng);
        }
    }

    /// The block has worn, parts of it still read, and it must be erased again. Its first page never reads as erased.
    fn half_erase(&mut self, block: u32, rng: &mut Rng) {
        let geometry = self.geometry;
        self.blocks[block as usize].erase_count += 1;
        let end = self.block(block).next_page.max(1);
        self.blocks[block as usize].next_page = end;
        for page in 0..end {
            let state = match rng.below(4) {
                _ if page == 0 => PageState::Torn,
                0 => PageState::Unstable,
                1 => PageState::Erased,
                _ => PageState::Torn,
            };
            let Some(store) = self.store.as_deref_mut() else { return };
            store.unsound[block as usize] = true;
            match state {
                PageState::Erased => store.wipe_page(&geometry, block, page),
                PageState::Unstable if !store.reads(&geometry, block, page) => continue,
                state => store.set_state(&geometry, block, page, state),
            }
            if state != PageState::Unstable {
                self.clear_spare(block, page);
            }
        }
    }

    /// A block with a torn page, or an erased one below a programmed one, takes no more programs.
    fn find_damage(&mut self, block: u32) {
        let (geometry, end) = (self.geometry, self.block(block).next_page);
        let Some(store) = self.store.as_deref_mut() else { return };
        if (0..end).any(|page| !store.reads(&geometry, block, page)) {
            store.unsound[block as usize] = true;
        }
    }
}
