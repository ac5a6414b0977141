//! The flash as bytes, to be kept and brought back. Taken without power, so that nothing is under way.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::kept::{Kept, PageState};
use super::{Block, BlockHealth, CellMode, Counters, Keep, NO_UNIT, Nand};
use crate::sim::Rng;

/// Flash without its configuration.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NandImage {
    blocks: Vec<BlockImage>,
    counters: Counters,
    steps: u64,
    failing: Rng,
    timing: Rng,
    power: Rng,
    next_program_failure: u64,
    kept: Option<KeptImage>,
}

#[derive(Debug, Serialize, Deserialize)]
struct BlockImage {
    erase_count: u32,
    endurance: u32,
    mode: CellMode,
    health: u8,
    next_page: u32,
    /// Spare area of what has been programmed, one more than the unit and 0 for none: small numbers stay short.
    spare: Vec<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptImage {
    data: bool,
    orders: Vec<u64>,
    states: Vec<u8>,
    stamps: Vec<u32>,
    unsound: Vec<bool>,
    records: Vec<(u32, u32, Vec<u8>)>,
    /// Block, unit in block, bytes.
    payload: Vec<(u32, u32, Vec<u8>)>,
    next_order: u64,
}

impl Nand {
    /// All that it holds.
    pub(crate) fn to_image(&self) -> NandImage {
        let spare = |block: u32| self.spare(block).iter().map(|unit| unit.wrapping_add(1)).collect();
        let blocks = (0..).zip(&self.blocks).map(|(number, block)| BlockImage {
            erase_count: block.erase_count,
            endurance: block.endurance,
            mode: block.mode,
            health: block.health as u8,
            next_page: block.next_page,
            spare: spare(number),
        });
        NandImage {
            blocks: blocks.collect(),
            counters: self.counters,
            steps: self.steps,
            failing: self.failing.rng().clone(),
            timing: self.timing.rng().clone(),
            power: self.power.rng().clone(),
            next_program_failure: self.failing.next_program,
            kept: self.kept.as_deref().map(Kept::to_image),
        }
    }

    /// Becomes what an image holds. `false`: the image is of flash of another shape, and nothing has changed.
    pub(crate) fn restore(&mut self, image: NandImage) -> bool {
        let fits = |block: &BlockImage| {
            block.next_page <= self.geometry.pages_in(block.mode)
                && block.spare.len() == (block.next_page * self.geometry.units_per_page) as usize
                && (block.mode == self.geometry.native || block.mode == self.geometry.native.single_bit())
        };
        let kept = match image.kept {
            Some(kept) => match Kept::from_image(kept, &self.geometry) {
                Some(kept) => Some(Box::new(kept)),
                None => return false,
            },
            None => None,
        };
        if image.blocks.len() != self.blocks.len() || !image.blocks.iter().all(fits) {
            return false;
        }
        self.spare.fill(NO_UNIT);
        for (number, block) in (0..).zip(image.blocks) {
            let first = self.geometry.first_unit(number, 0) as usize;
            for (unit, stored) in self.spare[first..].iter_mut().zip(&block.spare) {
                *unit = stored.wrapping_sub(1);
            }
            let health = match block.health {
                0 => BlockHealth::Good,
                1 => BlockHealth::FactoryBad,
                _ => BlockHealth::GrownBad,
            };
            let BlockImage { erase_count, endurance, mode, next_page, .. } = block;
            self.blocks[number as usize] = Block { erase_count, endurance, next_page, mode, health };
        }
        self.wary = kept.is_some();
        (self.kept, self.counters, self.steps) = (kept, image.counters, image.steps);
        self.failing.set_rng(image.failing);
        self.failing.next_program = image.next_program_failure;
        self.timing.set_rng(image.timing);
        self.power.set_rng(image.power);
        self.set_alarm();
        true
    }
}

impl Kept {
    fn to_image(&self) -> KeptImage {
        let records = self.records.iter().map(|(&(block, page), bytes)| (block, page, bytes.to_vec()));
        let mut payload = Vec::new();
        for (block, units) in (0..).zip(&self.payload) {
            for (unit, bytes) in (0..).zip(units.iter().flat_map(|units| units.iter())) {
                payload.extend(bytes.as_ref().map(|bytes| (block, unit, bytes.to_vec())));
            }
        }
        KeptImage {
            data: self.keeps_data(),
            orders: self.orders.clone(),
            states: self.states.iter().map(|state| *state as u8).collect(),
            stamps: self.stamps.clone(),
            unsound: self.unsound.clone(),
            records: records.collect(),
            payload,
            next_order: self.next_order,
        }
    }

    fn from_image(image: KeptImage, geometry: &super::Geometry) -> Option<Self> {
        let mut kept = Self::new(geometry, if image.data { Keep::Data } else { Keep::Orders });
        let same = kept.orders.len() == image.orders.len()
            && kept.states.len() == image.states.len()
            && kept.stamps.len() == image.stamps.len()
            && kept.unsound.len() == image.unsound.len();
        if !same {
            return None;
        }
        let state = |code: &u8| match code {
            0 => PageState::Erased,
            1 => PageState::Good,
            2 => PageState::Unstable,
            _ => PageState::Torn,
        };
        kept.states = image.states.iter().map(state).collect();
        (kept.orders, kept.stamps, kept.unsound) = (image.orders, image.stamps, image.unsound);
        kept.next_order = image.next_order;
        for (block, page, bytes) in image.records {
            kept.records.insert((block, page), Arc::from(bytes));
        }
        let units = geometry.units_per_block() as usize;
        for (block, unit, bytes) in image.payload {
            let of_block = kept.payload.get_mut(block as usize)?;
            let of_block = of_block.get_or_insert_with(|| vec![None; units].into_boxed_slice());
            *of_block.get_mut(unit as usize)? = Some(Arc::from(bytes));
        }
        Some(kept)
    }
}
