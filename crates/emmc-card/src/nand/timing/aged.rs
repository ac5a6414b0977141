//! Flash that ages: what wear, time and reads do to the times of operations.
//!
//! Programs get faster and erases slower with wear. A read senses its page again and again until the data can be
//! corrected: the more often, the more the block is worn, the longer its data is there, and the more it was read
//! (retries). Nothing here is random: a part of a retry is carried over to the next read. Absent on purpose: data that
//! can not be corrected any more, and temperature.

use emmc_units::{Instant, Nanos};

use crate::profile::Ageing;

/// A year. Unit: seconds.
const YEAR_S: f64 = 365.25 * 86_400.0;
/// Reads of a block for which `retries_disturbed` is given.
const DISTURBING_READS: f64 = 100_000.0;
/// As many entries as a table of read voltages has at most. Source: retry tables of 3D flash have some 40 to 50.
const RETRIES_MAX: f64 = 40.0;

/// The age of each block, and of the one that an operation is about to use.
#[derive(Clone, Debug)]
pub(in crate::nand) struct Aged {
    config: Ageing,
    /// Senses of a block since its erase, and when its first page was programmed.
    blocks: Vec<(u32, Instant)>,
    now: AgedNow,
}

/// What the next operation meets.
#[derive(Clone, Copy, Debug, Default)]
struct AgedNow {
    block: usize,
    /// Times of programs and erases, as a share of 65536.
    program: u64,
    erase: u64,
    /// Retries of a read, and what is left of a part of one.
    retries: f64,
    carried: f64,
}

impl Aged {
    pub(in crate::nand) fn new(config: Ageing, blocks: u32) -> Self {
        Self { config, blocks: vec![(0, Instant::START); blocks as usize], now: AgedNow::default() }
    }

    /// The next operation uses a block that has used up `wear` of its rating.
    pub(in crate::nand) fn turn_to(&mut self, block: u32, wear: f64, now: Instant) {
        let Ageing { program_faster, erase_slower, retries_worn, retries_year, retries_disturbed, .. } = self.config;
        let wear = wear.min(1.0);
        let (reads, programmed) = self.blocks[block as usize];
        let years = now.since(programmed.min(now)).as_secs_f64() / YEAR_S;
        let retries = retries_worn + retries_year * years + retries_disturbed * f64::from(reads) / DISTURBING_READS;
        self.now = AgedNow {
            block: block as usize,
            program: (65536.0 * (1.0 - program_faster * wear)) as u64,
            erase: (65536.0 * (1.0 + erase_slower * wear)) as u64,
            retries: (wear * retries).min(RETRIES_MAX),
            carried: self.now.carried,
        };
    }

    pub(super) fn program(&self, time: Nanos) -> Nanos {
        Nanos((time.0 * self.now.program) >> 16)
    }

    pub(super) fn erase(&self, time: Nanos) -> Nanos {
        Nanos((time.0 * self.now.erase) >> 16)
    }

    /// The time of all senses of a read, and notes it.
    pub(super) fn sense(&mut self, time: Nanos) -> Nanos {
        let AgedNow { block, retries, ref mut carried, .. } = self.now;
        let reads = &mut self.blocks[block].0;
        *reads = reads.saturating_add(1);
        *carried += retries;
        let whole = *carried as u64;
        *carried -= whole as f64;
        time * (1 + whole)
    }

    /// The first page of a block is programmed.
    pub(in crate::nand) fn begin(&mut self, block: u32, now: Instant) {
        self.blocks[block as usize].1 = now;
    }

    pub(in crate::nand) fn erased(&mut self, block: u32) {
        self.blocks[block as usize].0 = 0;
    }

    pub(in crate::nand) fn reads(&self, block: u32) -> u32 {
        self.blocks[block as usize].0
    }

    pub(in crate::nand) fn programmed(&self, block: u32) -> Instant {
        self.blocks[block as usize].1
    }
}
