//! Undo information for operations that a power cut prevents.

use std::sync::Arc;

use emmc_units::Instant;

use super::content::Content;
use super::page_store::{Contents, PageState};
use super::{Block, Geometry};

/// The largest number of remembered operations if no caller reports the time ([`super::Nand::passed`]): far more than
/// can be in progress in any flash.
const ENTRIES_MAX: usize = 1 << 16;

/// An operation that may still be in progress.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// When its cells began to change, and when they were done.
    pub(super) start: Instant,
    pub(super) done: Instant,
    pub(super) block: u32,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Program {
        page: u32,
    },
    Erase(Box<BlockImage>),
    /// An erase that failed: the block is bad.
    FailedErase(Box<BlockImage>),
    /// The block was taken out of use.
    Retire,
    /// The bytes of physical units are not wanted any more: each with where they are.
    Forget(Vec<(u32, Content)>),
}

/// Block and page of a record, and its bytes.
pub(super) type Record = ((u32, u32), Arc<[u8]>);

/// A block before its erase.
#[derive(Clone, Debug)]
pub(super) struct BlockImage {
    pub(super) block: Block,
    pub(super) spare: Vec<u32>,
    pub(super) orders: Vec<u64>,
    pub(super) states: Vec<PageState>,
    pub(super) stamp: u32,
    pub(super) unsound: bool,
    pub(super) contents: Option<Contents>,
    pub(super) records: Vec<Record>,
}

impl BlockImage {
    pub(super) fn new(block: Block, spare: Vec<u32>) -> Self {
        Self {
            block,
            spare,
            orders: Vec::new(),
            states: Vec::new(),
            stamp: 0,
            unsound: false,
            contents: None,
            records: Vec::new(),
        }
    }
}

impl super::page_store::PageStore {
    pub(super) fn note(&mut self, geometry: &Geometry, entry: Entry) {
        if self.journal.len() == ENTRIES_MAX {
            let oldest = self.journal.pop_front();
            oldest.into_iter().for_each(|entry| self.settle(geometry, entry));
        }
        self.journal.push_back(entry);
    }

    /// No cut is before `now`: operations that ended earlier are final.
    pub(super) fn forget_done(&mut self, geometry: &Geometry, now: Instant) {
        while self.journal.front().is_some_and(|entry| entry.done <= now) {
            let done = self.journal.pop_front();
            done.into_iter().for_each(|entry| self.settle(geometry, entry));
        }
    }

    /// No operation in progress can be undone any more.
    pub(super) fn forget_all(&mut self, geometry: &Geometry) {
        for entry in std::mem::take(&mut self.journal) {
            self.settle(geometry, entry);
        }
    }

    /// A final operation: the content of an erased block is gone, and so is unneeded content.
    pub(super) fn settle(&mut self, geometry: &Geometry, entry: Entry) {
        match entry.what {
            What::Erase(image) | What::FailedErase(image) => self.release(image.contents),
            What::Forget(units) => units.into_iter().for_each(|(unit, content)| self.forget(geometry, unit, content)),
            What::Program { .. } | What::Retire => {}
        }
    }
}
