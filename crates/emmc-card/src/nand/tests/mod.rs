//! What the flash promises, one topic a file.

mod age;
mod contract;
mod power;
mod properties;
mod times;
mod wear;

use emmc_units::{Instant, Nanos};

use super::*;
use crate::profile::{CellConfig, Failures};

/// Two dies of two planes, MLC: pages of two units, blocks of 32 pages. Every time is a round number.
fn config() -> NandConfig {
    NandConfig {
        cell: CellMode::Mlc,
        channels: 1,
        dies: 2,
        planes: 2,
        page_bytes: 1000,
        pages_per_block: 32,
        blocks: None,
        over_provisioning: 0.1,
        spare_blocks: 0,
        factory_bad_blocks: 0,
        // 10 us a page.
        channel_mb_s: 100.0,
        cached_program: true,
        multi_plane: true,
        multi_plane_read: false,
        native: CellConfig {
            read_us: 50.0,
            program_us: vec![500.0, 1500.0],
            erase_ms: 3.0,
            endurance: 20,
            time_spread: 0.0,
            endurance_spread: 0.0,
        },
        slc: Some(CellConfig {
            read_us: 25.0,
            program_us: vec![250.0],
            erase_ms: 2.0,
            endurance: 100,
            time_spread: 0.0,
            endurance_spread: 0.0,
        }),
        failures: Failures::default(),
        ageing: None,
    }
}

fn flash_of(config: &NandConfig, keep: StoredContent) -> Nand {
    Nand::new(config, Geometry::new(config, 12, 500), 5).keeping(keep)
}

fn flash(keep: StoredContent) -> Nand {
    flash_of(&config(), keep)
}

const fn us(micros: u64) -> Instant {
    Instant(micros * 1000)
}

/// Programs pages up to `end` of a block with units `10 x page` and the next, each when the last is done.
fn fill(nand: &mut Nand, block: u32, end: u32, mut now: Instant) -> Instant {
    for page in nand.block(block).next_page..end {
        let data = [page as u8 + 1; 1000];
        now = nand.program(block, page, &[10 * page, 10 * page + 1], Some(&data), now).unwrap();
    }
    now
}
