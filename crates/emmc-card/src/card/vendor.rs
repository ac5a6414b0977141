//! The vendor report: the response to CMD56, in the tables of Micron's parts.
//!
//! It shows the same wear and the same blocks as EXT_CSD's PRE_EOL_INFO and DEVICE_LIFE_TIME_EST, in the arguments and
//! byte orders that hosts' tools expect. Parts of other makers return zeros, like parts without a report. Absent on
//! purpose: argument 0xA7 (starts a refresh, which is not simulated), the list of single failures (0x81) and other
//! makers' reports.
//!
//! Source: Micron's emmcparm 1.0 in public copies, and TN-FC-42 after a kernel module that cites it; where they
//! disagree (bytes 4..6 of argument 0x11) emmcparm's reading holds: all spare blocks, the factory's bad ones among
//! them.

use emmc_regs::ext_csd::reg;

use crate::device::{Device, EraseCounts, Health};
use crate::nand::BlockHealth;

use super::power_notify::PowerLog;

/// Bytes of a reply.
pub(crate) const REPORT_BYTES: usize = 512;
/// Blocks in a table.
const TABLE_ROWS: usize = 128;
/// Saturation of a 16-bit count; 0xffff means "not set".
const MOST: u32 = 0xfffe;
/// MIDs of the CID that identify a Micron part.
const MICRON: [u8; 2] = [0x13, 0xfe];

/// The report of a card, read without commands: arguments and replies; empty if the part has none.
pub fn vendor_replies(device: &Device) -> Vec<(u32, [u8; REPORT_BYTES])> {
    if !MICRON.contains(&device.stored_registers().cid[0]) || device.profile().kind != emmc_regs::CardKind::Emmc {
        return Vec::new();
    }
    let log = PowerLog::default();
    [0x11, 0x21, 0x23, 0x25].map(|argument| (argument, report(device, &log, argument))).to_vec()
}

/// The reply to CMD56 with this argument.
pub(crate) fn report(device: &Device, power: &PowerLog, argument: u32) -> [u8; REPORT_BYTES] {
    let mut reply = Reply([0; REPORT_BYTES]);
    if !MICRON.contains(&device.stored_registers().cid[0]) {
        return reply.0;
    }
    let health = device.health();
    // Bits 8 to 23 choose a table; bits above have no meaning.
    let (table, is_table) = (argument >> 8, argument <= 0xffff);
    match argument & 0xff {
        0x01 if argument == 0x01 => reply.0[..8].copy_from_slice(&firmware(device)),
        0x11 if argument == 0x11 => reply.bad_blocks(&health),
        0x21 if argument == 0x21 => reply.erases_16(&health.all),
        0x23 if argument == 0x23 => reply.erases_16(&health.single_bit),
        0x25 if argument == 0x25 => reply.erases_16(&health.multi_bit),
        0x39 if argument == 0x39 => reply.smart(&health, power),
        0x83 if argument == 0x83 => reply.0[0] = tables(device),
        0x85 if is_table => reply.table(device, table, |block| block.erase_count.min(MOST)),
        0x87 if is_table => reply.table(device, table, |block| u32::from(block.mode.bits() == 1)),
        _ => {}
    }
    reply.0
}

fn firmware(device: &Device) -> [u8; 8] {
    let mut version = [0; 8];
    version.copy_from_slice(&device.stored_registers().ext_csd[reg::FIRMWARE_VERSION.range()]);
    version
}

/// Tables of 128 blocks; the count has one byte, so a part with more shows its first 32640 blocks.
fn tables(device: &Device) -> u8 {
    u8::try_from(device.nand().blocks().len().div_ceil(TABLE_ROWS)).unwrap_or(u8::MAX)
}

/// A reply under construction.
struct Reply([u8; REPORT_BYTES]);

impl Reply {
    fn be16(&mut self, at: usize, value: u32) {
        self.0[at..at + 2].copy_from_slice(&(value.min(MOST) as u16).to_be_bytes());
    }

    fn be32(&mut self, at: usize, value: u64) {
        self.0[at..at + 4].copy_from_slice(&u32::try_from(value).unwrap_or(u32::MAX - 1).to_be_bytes());
    }

    fn le32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn bad_blocks(&mut self, health: &Health) {
        self.be16(0, health.factory_bad);
        self.be16(2, health.grown_bad);
        // Once the spares are used up, over-provisioning replaces bad blocks: it has served as spares too.
        self.be16(4, health.factory_bad + health.spares.max(health.grown_bad));
    }

    fn erases_16(&mut self, counts: &EraseCounts) {
        self.be16(0, counts.min);
        self.be16(2, counts.max);
        self.be16(4, mean(counts));
    }

    /// The report of TN-FC-42; its bytes 4..6 are the spare blocks left.
    fn smart(&mut self, health: &Health, power: &PowerLog) {
        self.be16(0x00, health.factory_bad);
        self.be16(0x02, health.grown_bad);
        self.be16(0x04, health.spares_left);
        for (at, counts) in [(0x10, &health.multi_bit), (0x20, &health.single_bit)] {
            let values = [u64::from(counts.min), u64::from(counts.max), u64::from(mean(counts)), counts.total];
            for (at, value) in (at..).step_by(4).zip(values) {
                self.be32(at, value);
            }
        }
        self.le32(0x30, power.cycles);
        self.le32(0xc0, power.unannounced);
    }

    /// Numbers of good blocks in the first half, their values in the second; the rest of a table is 0xff.
    fn table(&mut self, device: &Device, table: u32, value: impl Fn(&crate::nand::Block) -> u32) {
        if table >= u32::from(tables(device)) {
            return;
        }
        self.0[..2 * TABLE_ROWS].fill(0xff);
        let first = table as usize * TABLE_ROWS;
        let blocks = (0u32..).zip(device.nand().blocks()).skip(first).take(TABLE_ROWS);
        for (row, (number, block)) in blocks.filter(|(_, block)| block.health == BlockHealth::Good).enumerate() {
            self.be16(2 * row, number);
            self.be16(2 * (TABLE_ROWS + row), value(block));
        }
    }
}

fn mean(counts: &EraseCounts) -> u32 {
    counts.mean().min(f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceOptions;
    use crate::profile::shipped;

    fn device(manufacturer_id: u8) -> Device {
        let mut profile = shipped::named("generic-8g").unwrap();
        profile.identity.manufacturer_id = manufacturer_id;
        Device::new(profile, DeviceOptions { keep: crate::nand::StoredContent::Nothing, seed: 1 }).unwrap()
    }

    fn be16(reply: &[u8], at: usize) -> u32 {
        u32::from(u16::from_be_bytes([reply[at], reply[at + 1]]))
    }

    #[test]
    fn the_tables_agree_with_the_flash() {
        let device = device(0xfe);
        let health = device.health();
        let power = PowerLog { cycles: 7, unannounced: 2 };
        let bad = report(&device, &power, 0x11);
        assert_eq!((be16(&bad, 0), be16(&bad, 2)), (health.factory_bad, health.grown_bad));
        assert!(health.factory_bad > 0, "the profile has bad blocks");
        let count = report(&device, &power, 0x83)[0];
        assert_eq!(usize::from(count), device.nand().blocks().len().div_ceil(TABLE_ROWS));
        let mut listed = Vec::new();
        for table in 0..u32::from(count) {
            let (erases, kinds) =
                (report(&device, &power, table << 8 | 0x85), report(&device, &power, table << 8 | 0x87));
            assert_eq!(erases[..256], kinds[..256], "the same blocks");
            for row in (0..TABLE_ROWS).filter(|row| be16(&erases, 2 * row) != 0xffff) {
                let block = device.nand().block(be16(&erases, 2 * row));
                assert_eq!(be16(&erases, 256 + 2 * row), block.erase_count);
                assert_eq!(be16(&kinds, 256 + 2 * row), u32::from(block.mode.bits() == 1));
                listed.push(be16(&erases, 2 * row));
            }
        }
        assert_eq!(listed.len() as u32, health.all.blocks);
        let smart = report(&device, &power, 0x39);
        assert_eq!((be16(&smart, 4), smart[0x30], smart[0xc0]), (health.spares_left, 7, 2));
        assert_eq!(&report(&device, &power, 1)[..8], b"EMMCLAB1");
    }

    #[test]
    fn a_vendor_reply_needs_its_request() {
        let power = PowerLog::default();
        for argument in [0, 0xa7, 0x13, 0x0001_0085, 0x111, 0xff85, u32::MAX] {
            assert_eq!(report(&device(0xfe), &power, argument), [0; REPORT_BYTES], "{argument:#x}");
        }
        assert_eq!(report(&device(0x15), &power, 0x11), [0; REPORT_BYTES], "another maker's part");
    }
}
