//! A driver controlled by the input, and one that behaves correctly.

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_serve::pci::{Function, Identity};
use emmc_serve::sdhci::{FlatMemory, GuestMemory};
use emmc_units::{Instant, Nanos};

/// Memory: lists below 4 KiB, data above.
const MEMORY_BYTES: usize = 64 << 10;
/// The largest number of consecutive steps without software before the driver aborts.
const STEPS_MAX: usize = 5_000;

pub struct Driver {
    function: Function,
    card: Card,
    memory: FlatMemory,
    now: Instant,
}

impl Driver {
    pub fn new(identity: u8) -> Self {
        let mut profile = shipped::named("generic-8g").expect("a shipped profile");
        // Sector addresses, and still quick to make.
        profile.areas.user_bytes = (2 << 30) + (8 << 20);
        (profile.areas.wp_group_bytes, profile.ftl.unit_bytes) = (8 << 20, 16384);
        profile.areas.enhanced_groups_max = 8;
        (profile.areas.boot_bytes, profile.areas.rpmb_bytes) = (128 << 10, 128 << 10);
        (profile.nand.pages_per_block, profile.nand.over_provisioning) = (256, 0.1);
        (profile.nand.spare_blocks, profile.nand.factory_bad_blocks) = (8, 2);
        let card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 }).expect("a card");
        let identity = match identity % 4 {
            0 => Identity::Generic,
            1 => Identity::Gl9763eWithoutQueue,
            _ => Identity::Gl9763e,
        };
        let memory = FlatMemory::new(MEMORY_BYTES);
        let mut driver = Self { function: Function::new(identity), card, memory, now: Instant(1_000_000_000) };
        driver.bring_up();
        driver
    }

    /// As Linux does it: identified, eight lines at HS400, and queue mode where there is an engine.
    pub fn bring_up(&mut self) {
        self.function.write_config(4, 2, 6);
        for (offset, bytes, value) in
            [(0x2f, 1, 1), (0x29, 1, 0xf), (0x2c, 2, 5), (0x2e, 1, 0xe), (0x34, 4, u64::MAX), (0x38, 4, u64::MAX)]
        {
            self.write(offset, bytes, value);
        }
        self.command(0, 0, 0);
        for _ in 0..100 {
            self.command(1, 0x40ff_8080, 2);
            self.pass(10_000_000);
        }
        for (index, argument, flags) in [
            (2, 0, 0x09),
            (3, 0x1_0000, 0x1a),
            (7, 0x1_0000, 0x1b),
            (6, 0x03b9_0100, 0x1b),
            (6, 0x03b7_0600, 0x1b),
            (6, 0x03b9_0300, 0x1b),
        ] {
            self.command(index, argument, flags);
        }
        self.write(0x28, 1, 0x20);
        self.write(0x3e, 2, 5);
        if self.function.identity().has_queue() {
            self.command(6, 0x030f_0100, 0x1b);
            for (register, value) in
                [(0x20, 0), (0x44, 1), (0x40, 0x7_0001), (0x14, 0x1f), (0x18, 0x1f), (0x08, 0x1101)]
            {
                self.write(0x200 + register, 4, value);
            }
        }
    }

    pub fn write(&mut self, offset: usize, bytes: usize, value: u64) {
        self.function.write(offset, bytes.min(0x1000 - offset), value, self.now);
        if self.function.wants_service() {
            self.service();
        }
    }

    pub fn read(&mut self, offset: usize, bytes: usize) {
        self.function.read(offset, bytes.min(0x1000 - offset), self.now);
    }

    pub fn write_config(&mut self, offset: usize, value: u64) {
        self.function.write_config(offset, 8, value);
        self.function.read_config(offset, 8);
    }

    pub fn fill(&mut self, at: u64, bytes: &[u8]) {
        let _ = self.memory.write(at, bytes);
    }

    pub fn issue(&mut self, index: u8, argument: u32, flags: u8, mode: u16) {
        self.write(0x08, 4, argument.into());
        self.write(0x0c, 4, u64::from(u32::from(index) << 24 | u32::from(flags) << 16 | u32::from(mode)));
    }

    fn command(&mut self, index: u8, argument: u32, flags: u8) {
        self.issue(index, argument, flags, 0);
        self.pass(1_000_000_000);
        self.write(0x30, 4, u64::MAX);
    }

    /// CMD23 and CMD18 or CMD25, with a list, SDMA or PIO as `mode` says.
    pub fn transfer(&mut self, read: bool, lba: u32, blocks: u16, mode: u16) {
        let list = 0x23 | u64::from(blocks) << 25 | 0x2000 << 32;
        self.fill(0xf00, &list.to_le_bytes());
        self.write(0x58, 8, 0xf00);
        self.write(0x04, 4, u64::from(blocks) << 16 | 0x0200);
        self.write(0x28, 1, u64::from(mode >> 8 & 0x18) | 0x20);
        self.issue(23, blocks.into(), 0x1a, 0);
        self.pass(100_000);
        let direction = if read { 0x10 } else { 0 };
        self.issue(if read { 18 } else { 25 }, lba, 0x3a, 0x22 | direction | mode & 0x0d);
        self.next();
        if mode & 1 == 0 {
            for word in 0..128 * u64::from(blocks) {
                if read {
                    self.read(0x20, 4)
                } else {
                    self.write(0x20, 4, word)
                }
                if word % 128 == 127 {
                    self.next();
                }
            }
        }
    }

    /// A task with the one transfer descriptor that it needs.
    pub fn task(&mut self, slot: u64, flags: u16, lba: u32, blocks: u16) {
        let task = u64::from(flags) << 3 & 0xf040 | 0x2f | u64::from(blocks) << 16 | u64::from(lba) << 32;
        self.fill(slot * 32, &task.to_le_bytes());
        let transfer = 0x23 | u64::from(blocks) << 25 | 0x3000 << 32;
        self.fill(slot * 32 + 16, &transfer.to_le_bytes());
        self.fill(slot * 32 + 24, &[0; 8]);
    }

    fn service(&mut self) {
        self.function.service(&mut self.card, &self.memory, self.now);
        self.function.interrupt();
    }

    pub fn next(&mut self) {
        if let Some(at) = self.function.poll_timeout() {
            self.now = self.now.max(at);
            self.service();
        }
    }

    /// Lets time pass, and handles what is due. Unit: nanoseconds.
    pub fn pass(&mut self, nanos: u64) {
        let until = self.now + Nanos(nanos);
        for _ in 0..STEPS_MAX {
            match self.function.poll_timeout() {
                Some(at) if at <= until => {
                    self.now = self.now.max(at);
                    self.service();
                }
                _ => break,
            }
        }
        self.now = self.now.max(until);
    }

    pub fn cut_power(&mut self) {
        self.card.power_off(self.now);
    }

    pub fn give_power(&mut self) {
        self.card.power_off(self.now);
        self.now = self.card.power_on(self.now).expect("no cut is armed").max(self.now);
    }

    pub fn reset(&mut self) {
        self.function.reset();
    }

    /// Reads EXT_CSD by a list.
    pub fn must_still_work(&mut self) {
        self.reset();
        self.give_power();
        self.bring_up();
        self.fill(0xf00, &(0x23 | 512 << 16 | 0x2000u64 << 32).to_le_bytes());
        self.write(0x04, 4, 0x1_0200);
        self.write(0x28, 1, 0x30);
        self.write(0x58, 8, 0xf00);
        self.issue(8, 0, 0x3a, 0x11);
        self.pass(1_000_000_000);
        let mut revision = [0];
        self.memory.read(0x2000 + 192, &mut revision).expect("memory is there");
        assert_eq!(revision, [8], "EXT_CSD_REV, status {:#x}", self.function.read(0x30, 4, self.now));
    }
}
