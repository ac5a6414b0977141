//! Refresh: data is copied before reads or time make it hard to read.
//!
//! A controller counts the reads of each block, and looks through its blocks now and then for old data. Here it knows
//! the age; a real one learns it from the bits that it must correct. Absent on purpose: the copying, which is the
//! layers'.

use emmc_units::{Instant, Nanos};

use crate::nand::Nand;
use crate::profile::FtlConfig;

/// Between two searches for old data, if the last one found none. Source: the refresh daemon of a vendor of SoCs wakes
/// every hour.
const SEARCH_EVERY: Nanos = Nanos::from_secs(3600);

/// When a block's data is to be copied.
#[derive(Clone, Copy, Debug)]
pub struct Refresh {
    /// Reads since the erase; 0: any number.
    reads: u32,
    /// Age of the data; 0: any.
    age: Nanos,
    /// The next search for old data.
    search_at: Instant,
}

impl Refresh {
    /// That of a profile; `None`: it has none.
    pub fn of(config: &FtlConfig) -> Option<Self> {
        let refresh = config.refresh?;
        let age = Nanos::from_secs(u64::from(refresh.days) * 86_400);
        Some(Self { reads: refresh.reads, age, search_at: Instant::START })
    }

    /// Whether a block was read too often.
    #[inline]
    pub fn is_worn_by_reads(&self, nand: &Nand, block: u32) -> bool {
        self.reads > 0 && nand.reads_of(block) >= self.reads
    }

    /// Whether a block with data is to be copied.
    pub fn is_due(&self, nand: &Nand, block: u32, now: Instant) -> bool {
        let is_old = self.age > Nanos::ZERO && now.since(nand.programmed_at(block).min(now)) >= self.age;
        nand.block(block).next_page > 0 && (is_old || self.is_worn_by_reads(nand, block))
    }

    /// Searches blocks with data, if that is due. The next search comes in an hour if none is found.
    pub fn search(&mut self, nand: &Nand, mut blocks: impl Iterator<Item = u32>, now: Instant) -> Option<u32> {
        if now < self.search_at {
            return None;
        }
        let found = blocks.find(|&block| self.is_due(nand, block, now));
        if found.is_none() {
            self.search_at = now + SEARCH_EVERY;
        }
        found
    }

    /// The next search comes at once.
    pub fn hurry(&mut self) {
        self.search_at = Instant::START;
    }
}
