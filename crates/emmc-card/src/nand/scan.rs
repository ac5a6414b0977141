//! A layer's scan of the flash after power-on.
//!
//! A scan reads spare areas: whether a page is programmed, its units, its sequence number and its block's stamp. It
//! takes the time of its reads. Absent on purpose: which of several copies of a unit is current, which the layer
//! decides.

use std::collections::{BTreeMap, BTreeSet};

use emmc_units::Instant;

use super::page_store::{PageState, SESSION_SHIFT};
use super::timing::Clockwork;
use super::{BlockHealth, Nand, NandError};

/// Bytes of spare area that a scan fetches from a page.
const SPARE_BYTES: u32 = 64;

/// What a page looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageScan {
    /// Nothing was programmed since the block was erased.
    Erased,
    /// It reads. Its units are [`Nand::page_units`].
    Valid {
        /// When it was programmed, relative to all others.
        order: u64,
    },
    /// It does not read.
    Torn,
}

/// Whether a block may be used without an erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soundness {
    /// Erased: may be programmed.
    Erased,
    /// Programmed in part, without a fault. The next page may be programmed.
    Open,
    /// Programmed whole, without a fault.
    Full,
    /// Torn pages, holes, or an incomplete erase: readable pages may be read and copied; then the block must be erased
    /// before it is programmed.
    Damaged,
}

/// A block that was scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundBlock {
    /// Which.
    pub block: u32,
    /// What its owner stamped it with, if a page of it reads.
    pub stamp: Option<u32>,
    /// Whether it may be used.
    pub soundness: Soundness,
}

/// A page that read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundPage {
    /// Its block.
    pub block: u32,
    /// Which page of it.
    pub page: u32,
    /// When it was programmed, relative to all others.
    pub order: u64,
    /// It may have been interrupted, and may stop reading once recovery is over: a unit of which this is the newest
    /// copy must be copied elsewhere before recovery ends, and the previous copy must stay until then. A page without
    /// the mark reads for ever, also in a damaged block.
    pub doubtful: bool,
}

/// The result of a scan of some blocks.
///
/// The cost: an erased block, and one that is full and without fault, takes one page read; any other one read for every
/// page up to its last programmed one, and one more. Assumed: controllers close a block with a summary of its spare
/// areas; its space is neglected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// In the requested sequence; bad blocks are left out.
    pub blocks: Vec<FoundBlock>,
    /// Those that read, oldest first. Empty where no sequence numbers are kept.
    pub pages: Vec<FoundPage>,
    /// When the scan is done.
    pub done: Instant,
}

/// The session of an sequence number: power cycles rise with it.
pub const fn session_of(order: u64) -> u64 {
    order >> SESSION_SHIFT
}

impl Nand {
    /// Reads the spare area of a page.
    ///
    /// Errors: [`NandError::PowerLost`].
    pub fn scan_page(&mut self, block: u32, page: u32, now: Instant) -> Result<(PageScan, Instant), NandError> {
        if !self.power.is_on() {
            return Err(NandError::PowerLost);
        }
        let mode = self.block(block).mode;
        self.counters.page_reads += 1;
        let done = self.timing.read(&self.geometry, mode, block, page, SPARE_BYTES, now);
        Ok((self.look(block, page), done))
    }

    /// What a page looks like, for one that has paid for the look.
    pub(crate) fn look(&self, block: u32, page: u32) -> PageScan {
        let Some(store) = &self.store else {
            let programmed = page < self.block(block).next_page;
            return if programmed { PageScan::Valid { order: 0 } } else { PageScan::Erased };
        };
        match store.state(&self.geometry, block, page) {
            PageState::Erased => PageScan::Erased,
            PageState::Torn => PageScan::Torn,
            PageState::Good | PageState::Unstable => {
                PageScan::Valid { order: self.order(block, page).unwrap_or_default() }
            }
        }
    }

    /// Whether a block may be used without an erase, for a caller that has accounted for the read.
    pub(crate) fn soundness(&self, block: u32) -> Soundness {
        let end = self.block(block).next_page;
        if (0..end).any(|page| !matches!(self.look(block, page), PageScan::Valid { .. })) {
            return Soundness::Damaged;
        }
        match end {
            0 => Soundness::Erased,
            _ if end == self.pages_of(block) => Soundness::Full,
            _ => Soundness::Open,
        }
    }
}

impl Survey {
    /// Scans blocks.
    ///
    /// Errors: [`NandError::PowerLost`].
    pub fn take(nand: &mut Nand, blocks: &[u32], now: Instant) -> Result<Self, NandError> {
        let mut survey = Self { blocks: Vec::with_capacity(blocks.len()), pages: Vec::new(), done: now };
        let mut torn = Vec::new();
        for &block in blocks {
            if nand.block(block).health != BlockHealth::Good {
                continue;
            }
            let soundness = nand.soundness(block);
            survey.blocks.push(FoundBlock { block, stamp: nand.stamp(block), soundness });
            let end = nand.block(block).next_page;
            let reads = match soundness {
                Soundness::Erased | Soundness::Full => 1,
                Soundness::Open | Soundness::Damaged => (end + 1).min(nand.pages_of(block)),
            };
            for page in 0..reads {
                survey.done = survey.done.max(nand.scan_page(block, page, now)?.1);
            }
            // After an interrupted erase the first page does not read, and any other may stop to.
            let doubtful = end > 0 && nand.look(block, 0) == PageScan::Torn;
            for page in 0..if nand.keeps_orders() { end } else { 0 } {
                match nand.look(block, page) {
                    PageScan::Valid { order } => survey.pages.push(FoundPage { block, page, order, doubtful }),
                    PageScan::Torn => torn.push((block, page)),
                    PageScan::Erased => {}
                }
            }
        }
        survey.pages.sort_unstable_by_key(|page| page.order);
        survey.doubt(nand, &torn, 0);
        Ok(survey)
    }

    /// Checks doubtful pages again, for a layer that knows that a recovery was completed in session `since`:
    /// interrupted data from before was copied then. Visible damage stays doubtful at any age.
    pub(crate) fn doubt_since(&mut self, nand: &Nand, since: u64) {
        let is_torn = |&(block, page): &(u32, u32)| nand.look(block, page) == PageScan::Torn;
        let pages = self.blocks.iter().map(|found| found.block);
        let pages = pages.flat_map(|block| (0..nand.block(block).next_page).map(move |page| (block, page)));
        let torn: Vec<(u32, u32)> = pages.filter(is_torn).collect();
        for found in &mut self.pages {
            found.doubtful = is_torn(&(found.block, 0));
        }
        self.doubt(nand, &torn, since);
    }

    /// Marks pages that may have been interrupted: on each die the last program of each session (all sessions: an
    /// earlier recovery may itself have been cut), with the pages that share its word lines, and those that share one
    /// with a torn page.
    fn doubt(&mut self, nand: &Nand, torn: &[(u32, u32)], since: u64) {
        let geometry = *nand.geometry();
        let mut last = BTreeMap::new();
        for found in self.pages.iter().filter(|found| session_of(found.order) >= since) {
            last.insert((session_of(found.order), geometry.die_of(found.page)), (found.block, found.page));
        }
        let mut doubtful = BTreeSet::new();
        for (block, page) in last.into_values() {
            let (mode, first) = (nand.block(block).mode, page / geometry.planes * geometry.planes);
            let row = first..first + geometry.planes;
            doubtful.extend(row.flat_map(|page| geometry.word_line(mode, page)).map(|page| (block, page)));
        }
        for &(block, page) in torn {
            doubtful.extend(geometry.word_line(nand.block(block).mode, page).map(|page| (block, page)));
        }
        for found in &mut self.pages {
            found.doubtful |= doubtful.contains(&(found.block, found.page));
        }
    }
}
