//! Ages a card: worn, filled, partly overwritten.
//!
//! The erase counts are set, not simulated: simulating a whole life takes minutes. The content is simulated: the card
//! is filled once and part of it is overwritten, so that garbage collection and mapping are as in use.

use emmc_units::{Instant, Rng};

use super::op::{Area, StorageError, WriteFlags};
use super::{Device, health};
use crate::nand::CellMode;

/// Sectors of one write while the card is filled: 1 MiB.
const FILL_SECTORS: u64 = 2048;
/// Scattered writes between two calls of the watcher.
const WATCH_EVERY: u64 = 256;

impl Device {
    /// Sets the erase counts of every block to `share` of the rating, plus or minus 5 %, and fills the user area.
    ///
    /// Errors: as [`Device::write`].
    pub fn age(&mut self, share: f64, now: Instant) -> Result<Instant, StorageError> {
        self.age_watched(share, now, &mut |_| {})
    }

    /// The same; `watch` learns now and then which share of the bytes is written, 0 to 1.
    ///
    /// Errors: as [`Device::write`].
    pub fn age_watched(
        &mut self,
        share: f64,
        now: Instant,
        watch: &mut dyn FnMut(f64),
    ) -> Result<Instant, StorageError> {
        let mut rng = Rng::new(self.options.seed ^ 0xa6e);
        let config = &self.profile.nand;
        let rated = |mode: CellMode| f64::from(health::rating(config, mode)) * share;
        let nand = &mut self.storage.nand;
        for block in 0..nand.geometry().blocks {
            let stray = 0.95 + 0.1 * rng.unit_f64();
            // Boot areas, RPMB and the layers' own logs are written far less than the rest.
            let part = if nand.block(block).mode == nand.geometry().native { 1.0 } else { 0.1 };
            let count = rated(nand.block(block).mode) * stray * part;
            nand.set_erase_count(block, count.round() as u32);
        }
        self.fill(now, &mut rng, watch)
    }

    /// Fills the user area, then writes a tenth of it again at random, 4 KiB at a time.
    fn fill(&mut self, mut now: Instant, rng: &mut Rng, watch: &mut dyn FnMut(f64)) -> Result<Instant, StorageError> {
        let sectors = self.sectors(Area::User);
        let scattered = sectors / 80;
        let done = |written: u64| written as f64 / (sectors + scattered * 8).max(1) as f64;
        let zeros = self.keeps_data().then(|| vec![0; (FILL_SECTORS * 512) as usize]);
        let mut lba = 0;
        while lba < sectors {
            let count = FILL_SECTORS.min(sectors - lba);
            let data = zeros.as_ref().map(|zeros| &zeros[..(count * 512) as usize]);
            now = self.write(Area::User, lba, count as u32, WriteFlags::default(), data, now)?.done;
            lba += count;
            watch(done(lba));
        }
        let data = zeros.as_ref().map(|zeros| &zeros[..4096]);
        for number in 0..scattered {
            let lba = rng.below(sectors / 8) * 8;
            now = self.write(Area::User, lba, 8, WriteFlags::default(), data, now)?.done;
            if number % WATCH_EVERY == 0 {
                watch(done(sectors + number * 8));
            }
        }
        now = self.flush(now)?.done;
        // Then it is idle, and finishes its background work.
        while let Some(done) = self.background(now)? {
            now = done;
        }
        Ok(now)
    }
}
