//! The request of the block layer that a command of the MMC layer is for.

use super::commands::{Commands, MMC_MAJOR};
use super::open::{Open, Stage};
use super::table::{Handle, Table};
use crate::event::{MmcEvent, Op};

impl Commands {
    /// The request that a command is for.
    pub(super) fn join(&mut self, mmc: &MmcEvent, table: &Table) -> Option<Handle> {
        let issued = |open: &Open| open.stage == Stage::Issued;
        let found = self.devices.iter().find_map(|device| {
            if self.host_of.get(device).is_some_and(|host| *host != mmc.host) {
                return None;
            }
            let found = match mmc.opcode {
                0 | 17 | 18 | 24 | 25 | 44..=47 if mmc.blocks > 0 => sectors(mmc).into_iter().find_map(|sector| {
                    let is_write = matches!(mmc.opcode, 24 | 25);
                    let fits = |open: &Open| issued(open) && (mmc.opcode == 0 || (open.op == Op::Write) == is_write);
                    table.find_sector(*device, sector?, fits)
                }),
                // CMD6 of FLUSH_CACHE, or the function extension of SD cards.
                6 if mmc.argument >> 16 & 0xff == 32 => table.find_flush(*device, issued),
                48 | 49 => table.find_flush(*device, issued),
                35 | 36 | 38 => {
                    let erases = |open: &Open| matches!(open.op, Op::Discard | Op::Erase) && issued(open);
                    table.find_erasing(|open| open.device == *device && erases(open))
                }
                _ => None,
            };
            found.map(|found| (*device, found))
        });
        let (device, found) = found?;
        self.host_of.entry(device).or_insert(mmc.host);
        Some(found)
    }

    /// A device whose requests may be commands.
    pub(super) fn device(&mut self, device: u32) {
        if device >> 20 == MMC_MAJOR && !self.devices.contains(&device) && self.devices.len() < 64 {
            self.devices.push(device);
        }
    }
}

pub(super) fn has_data(opcode: u8) -> bool {
    matches!(opcode, 0 | 17 | 18 | 24 | 25 | 46 | 47)
}

/// The first sector: as recorded, or the argument of a card that counts blocks, or of one that counts bytes.
pub(super) fn sectors(mmc: &MmcEvent) -> [Option<u64>; 2] {
    let counts_bytes = !mmc.is_block && mmc.argument % 512 == 0;
    [Some(u64::from(mmc.argument)), counts_bytes.then_some(u64::from(mmc.argument / 512))]
}
