//! Caches of single-bit cells of random cards, and how fast they really refill.

use emmc_port::{BlockOp, BlockRequest, BlockTarget};
use emmc_sim::SimTarget;
use emmc_units::{Nanos, Rng};

use super::{MIB, TrueCard, pick};

/// A cache of single-bit cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrueSlc {
    /// Blocks of the log, without the two of its records.
    blocks: u64,
    /// Blocks that stay free.
    low: u64,
    /// Unit: bytes.
    block_bytes: u64,
    /// Whether writes fold in steps.
    is_paced: bool,
    /// Whether a rest empties it.
    rests: bool,
    /// Whether large writes bypass it.
    bypassed: bool,
}

impl TrueSlc {
    /// One for a card with this size of blocks and this number of bits a cell, in about half of the cases.
    pub(super) fn random(rng: &mut Rng, block_bytes: u64, bits: u64, user_bytes: u64) -> Option<Self> {
        let block_bytes = block_bytes / bits;
        let (bytes, low) = (pick(rng, &[16, 32, 48, 64, 96, 128, 192, 256]) * MIB, 1 + rng.below(3));
        let blocks = (bytes / block_bytes).max(low + 3).min(user_bytes / block_bytes / 20);
        let (is_paced, rests, bypassed) = (rng.below(3) > 0, rng.below(5) > 0, rng.below(5) == 0);
        let found = Self { blocks, low, block_bytes, is_paced, rests, bypassed };
        (bits > 1 && rng.below(2) == 0 && blocks >= low + 2).then_some(found)
    }

    /// Its sections of a profile: for the flash, and for the layer.
    pub(super) fn sections(&self, program_us: u64) -> (String, String) {
        let nand = format!(
            "[nand.slc]\nread_us = 30.0\nprogram_us = [{}.0]\nerase_ms = 3.0\nendurance = 20000\ntime_spread = 0.05\n\
             endurance_spread = 0.1\n",
            program_us / 2
        );
        let bypass = if self.bypassed { 8192 } else { 0 };
        let pace = if self.is_paced { "paced" } else { "at_once" };
        let ftl = format!(
            "gc_pace = \"{pace}\"\nslc_cache = {{ blocks = {}, low_blocks = {}, bypass_bytes = {bypass}, idle_fold = {} }}\n",
            self.blocks + 2,
            self.low,
            self.rests
        );
        (nand, ftl)
    }

    /// Its blocks in the built mode of the flash.
    pub(super) fn flash_blocks(&self) -> u64 {
        self.blocks + 2
    }

    /// Whether a sustained write shows it.
    pub fn shows(&self) -> bool {
        self.rests && !self.bypassed
    }
}

impl TrueCard {
    /// Whether a size is that of its cache: within 15 %, or a block of what a new card takes before it folds.
    pub(super) fn is_slc_size(&self, measured: u64) -> bool {
        let Some(slc) = self.slc.filter(TrueSlc::shows) else { return false };
        self.slc_takes(&slc).is_ok_and(|(bytes, _)| {
            measured.abs_diff(bytes) as f64 <= (0.15 * bytes as f64).max(slc.block_bytes as f64)
        })
    }

    /// Whether a rate is that at which its cache becomes free in a rest, within a quarter.
    pub(super) fn is_slc_refill(&self, measured: f64) -> bool {
        let Some(slc) = self.slc.filter(TrueSlc::shows) else { return false };
        self.slc_refills(&slc).is_ok_and(|rate| (measured / rate - 1.0).abs() < 0.25)
    }

    /// What a new card takes before it folds, by its own counters, and the card with one and a half times as much.
    /// Unit: bytes.
    fn slc_takes(&self, slc: &TrueSlc) -> Result<(u64, SimTarget), String> {
        let mut target = self.target()?;
        let (mut at, mut takes) = (0, None);
        while takes.is_none_or(|takes| at < takes * 3 / 2) {
            if takes.is_none() && at > (slc.blocks + 2) * slc.block_bytes {
                return Err("it does not fold".into());
            }
            let (op, bytes) = (BlockOp::Write, MIB / 2);
            let request = BlockRequest { op, offset_bytes: at, bytes, through: false, tag: 0 };
            target.complete(request).map_err(|error| error.to_string())?;
            if takes.is_none() && target.device().stats().copied_units > 0 {
                takes = Some(at);
            }
            at += bytes;
        }
        Ok((takes.unwrap_or(at), target))
    }

    /// How fast its cache becomes free in a rest, by the card's own counters. Unit: MB/s.
    fn slc_refills(&self, slc: &TrueSlc) -> Result<f64, String> {
        let (_, mut target) = self.slc_takes(slc)?;
        let folds = |target: &SimTarget| target.device().stats().folds;
        let (mut seen, mut first, mut last) = (folds(&target), None, (0.0, 0));
        let start = target.now();
        for _ in 0..3000 {
            target.idle(Nanos::from_millis(20)).map_err(|error| error.to_string())?;
            let (now, count) = (target.now().since(start).as_secs_f64(), folds(&target));
            if count > seen {
                seen = count;
                first.get_or_insert((now, count));
                last = (now, count);
            }
        }
        let (from, one) = first.ok_or("it does not fold in a rest")?;
        Ok((last.1 - one) as f64 * slc.block_bytes as f64 / 1e6 / (last.0 - from))
    }
}
