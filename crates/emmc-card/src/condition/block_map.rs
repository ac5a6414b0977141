//! A map of the flash's blocks.

use serde::Serialize;

use crate::device::Device;
use crate::nand::{Block, BlockHealth, CellMode};

/// Most cells of the map.
const CELLS_MAX: usize = 4096;

/// The blocks in order of their numbers, several to a cell where there are many.
///
/// Shape: every list and text has one entry a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockMap {
    /// Blocks in all.
    pub blocks: u32,
    /// Blocks of a cell; the last one may have fewer.
    pub blocks_per_cell: u32,
    /// Mean erases of a cell's good blocks.
    pub erases: Vec<f64>,
    /// Share of the cell's units that hold valid data, 0 to 1.
    pub valid_share: Vec<f64>,
    /// Mode of the cell's first block: `S` SLC, `P` pSLC, `M` MLC, `T` TLC.
    pub mode: String,
    /// The worst of a cell: `.` good, `f` bad from the factory, `g` went bad in use.
    pub health: String,
}

impl BlockMap {
    pub(crate) fn of(device: &Device) -> Self {
        let blocks = device.nand().blocks();
        let valid = device.valid_units();
        let per_cell = blocks.len().div_ceil(CELLS_MAX).max(1);
        let cells = || blocks.chunks(per_cell);
        let units = |first: usize, count: usize| -> u64 {
            (first..first + count).map(|block| u64::from(device.nand().units_of(block as u32))).sum()
        };
        let valid_share = valid.chunks(per_cell).enumerate().map(|(cell, valid)| {
            let all = units(cell * per_cell, valid.len());
            share(valid.iter().map(|valid| u64::from(valid.unwrap_or(0))).sum(), all)
        });
        Self {
            blocks: blocks.len() as u32,
            blocks_per_cell: per_cell as u32,
            erases: cells().map(mean_erases).collect(),
            valid_share: valid_share.collect(),
            mode: cells().map(|cell| letter(cell[0].mode)).collect(),
            health: cells().map(worst).collect(),
        }
    }
}

/// To a thousandth: more would only make the file longer.
fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { (part as f64 / all as f64 * 1e3).round() / 1e3 }
}

fn mean_erases(cell: &[Block]) -> f64 {
    let good = || cell.iter().filter(|block| block.health == BlockHealth::Good);
    let total: u64 = good().map(|block| u64::from(block.erase_count)).sum();
    let count = good().count();
    if count == 0 { 0.0 } else { (total as f64 / count as f64 * 10.0).round() / 10.0 }
}

fn letter(mode: CellMode) -> char {
    match mode {
        CellMode::Slc => 'S',
        CellMode::Pslc => 'P',
        CellMode::Mlc => 'M',
        CellMode::Tlc => 'T',
    }
}

fn worst(cell: &[Block]) -> char {
    let has = |health| cell.iter().any(|block| block.health == health);
    if has(BlockHealth::GrownBad) {
        'g'
    } else if has(BlockHealth::FactoryBad) {
        'f'
    } else {
        '.'
    }
}
