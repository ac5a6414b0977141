//! Failures other than power cuts: worn blocks, bad blocks, programs and erases that fail.

use super::{Block, BlockHealth, CellMode, Geometry};
use crate::profile::NandConfig;
use emmc_units::Rng;

/// The least share of its rating that a block bears: weaker ones are sorted out where flash is made.
const LEAST_ENDURANCE: f64 = 0.1;

/// Draws failures.
///
/// A block bears its rating times `1 + spread x |z|`, z normal: parts are sold by their worst block, so the rating is
/// the least. Where the profile says that blocks fail before it too, it is `1 + spread x z`.
/// With one bit a cell a block bears the same share of that mode's rating. Programs fail by a geometric countdown of
/// steps, drawn when the last failure came, so that a program pays one comparison.
#[derive(Clone, Debug)]
pub(super) struct Failing {
    rng: Rng,
    /// Ratings as built and with one bit a cell.
    native_rating: u32,
    single_bit_rating: u32,
    /// 1 / ln(1 - p) for programs; 0: none fails.
    program_scale: f64,
    erase_ppm: u32,
    /// The step at which, or as soon as possible after which, a program fails.
    pub(super) next_program: u64,
}

impl Failing {
    pub(super) fn new(config: &NandConfig, rng: Rng) -> Self {
        let chance = f64::from(config.failures.program_ppb) * 1e-9;
        let program_scale = if chance > 0.0 { 1.0 / libm::log1p(-chance.min(0.999_999)) } else { 0.0 };
        let mut failing = Self {
            rng,
            native_rating: config.native.endurance,
            single_bit_rating: config.slc.as_ref().unwrap_or(&config.native).endurance,
            program_scale,
            erase_ppm: config.failures.erase_ppm,
            next_program: 0,
        };
        failing.draw_program(0);
        failing
    }

    /// The random state, for saving.
    pub(super) fn rng(&self) -> &Rng {
        &self.rng
    }

    /// Restores the random state.
    pub(super) fn set_rng(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// The blocks of new flash.
    pub(super) fn blocks(&mut self, config: &NandConfig, geometry: &Geometry) -> Vec<Block> {
        let goes_below = config.ageing.is_some_and(|ageing| ageing.endurance_below);
        let mut blocks = Vec::with_capacity(geometry.blocks as usize);
        for _ in 0..geometry.blocks {
            let apart = config.native.endurance_spread * self.normal();
            let apart = if goes_below { apart.max(LEAST_ENDURANCE - 1.0) } else { apart.abs() };
            let endurance = (f64::from(self.native_rating) * (1.0 + apart)) as u32;
            let health = BlockHealth::Good;
            blocks.push(Block { erase_count: 0, endurance, next_page: 0, mode: geometry.native, health });
        }
        let mut left = config.factory_bad_blocks.min(geometry.blocks);
        while left > 0 {
            let block = &mut blocks[self.rng.below(u64::from(geometry.blocks)) as usize];
            if block.health == BlockHealth::Good {
                block.health = BlockHealth::FactoryBad;
                left -= 1;
            }
        }
        blocks
    }

    /// Rated erases in a mode.
    pub(super) fn rating_in(&self, mode: CellMode, native: CellMode) -> u32 {
        if mode == native { self.native_rating } else { self.single_bit_rating }.max(1)
    }

    pub(super) fn endurance_in(&self, block: &Block, native: CellMode) -> u32 {
        if block.mode == native {
            return block.endurance;
        }
        let scaled =
            u64::from(block.endurance) * u64::from(self.single_bit_rating) / u64::from(self.native_rating.max(1));
        scaled.min(u64::from(u32::MAX)) as u32
    }

    /// Whether an erase fails before its time.
    pub(super) fn erase_fails(&mut self) -> bool {
        self.erase_ppm > 0 && self.rng.below(1_000_000) < u64::from(self.erase_ppm)
    }

    /// Draws the step of the next failing program, after `step`.
    pub(super) fn draw_program(&mut self, step: u64) {
        self.next_program = u64::MAX;
        if self.program_scale != 0.0 {
            // 1 - u is in (0, 1], so its logarithm is finite.
            let steps = libm::log(1.0 - self.rng.unit_f64()) * self.program_scale;
            self.next_program = step.saturating_add(1).saturating_add(steps as u64);
        }
    }

    /// Normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.rng.unit_f64()));
        radius * libm::cos(std::f64::consts::TAU * self.rng.unit_f64())
    }
}
