//! A function with a card and memory, and a driver that waits by advancing to the next event.

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_units::{Instant, Nanos};

use super::{Function, Identity};
use crate::sdhci::{FlatMemory, GuestMemory};

pub(crate) const MEMORY_BYTES: usize = 8 << 20;

/// Flags of COMMAND: no answer, long, short, short with busy; checks; data.
pub(crate) const NONE: u16 = 0;
pub(crate) const R2: u16 = 0x09;
pub(crate) const R3: u16 = 0x02;
pub(crate) const R1: u16 = 0x1a;
pub(crate) const R1B: u16 = 0x1b;
pub(crate) const DATA: u16 = 0x20;
/// Of TRANSFER_MODE: DMA, counted, automatic CMD12, read, several blocks.
pub(crate) const DMA: u16 = 1;
pub(crate) const COUNTED: u16 = 2;
pub(crate) const AUTO_CMD12: u16 = 4;
pub(crate) const AUTO_CMD23: u16 = 8;
pub(crate) const READ: u16 = 0x10;
pub(crate) const MULTIPLE: u16 = 0x20;

pub(crate) struct Rig {
    pub(crate) function: Function,
    pub(crate) card: Card,
    pub(crate) memory: FlatMemory,
    pub(crate) now: Instant,
}

impl Rig {
    /// A function that is bus master, with clock and power on and all interrupts enabled; the card as after power-up.
    pub(crate) fn new(identity: Identity) -> Self {
        let profile = shipped::named("generic-8g").unwrap();
        let card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 }).unwrap();
        let memory = FlatMemory::new(MEMORY_BYTES);
        let mut rig = Self { function: Function::new(identity), card, memory, now: Instant(1_000_000_000) };
        rig.set_up();
        rig
    }

    /// Driver set-up after a reset.
    pub(crate) fn set_up(&mut self) {
        self.function.write_config(4, 2, 6);
        self.write(0x29, 1, 0x0f);
        self.write(0x2c, 2, 0x0005);
        self.write(0x2e, 1, 0x0e);
        self.write(0x34, 4, 0xffff_ffff);
        self.write(0x38, 4, 0xffff_ffff);
    }

    /// The card identified and selected, at HS400 on eight lines.
    pub(crate) fn ready(identity: Identity) -> Self {
        let mut rig = Self::new(identity);
        rig.identify();
        rig
    }

    pub(crate) fn identify(&mut self) {
        self.command(0, 0, NONE, 0).unwrap();
        while self.command(1, 0x40ff_8080, R3, 0).unwrap()[0] >> 31 == 0 {
            self.now = self.now + Nanos::from_millis(1);
        }
        self.command(2, 0, R2, 0).unwrap();
        self.command(3, 0x1_0000, R1, 0).unwrap();
        self.command(7, 0x1_0000, R1B, 0).unwrap();
        self.switch(0x03b9_0100);
        self.switch(0x03b7_0600);
        self.switch(0x03b9_0300);
        self.write(0x28, 1, 0x20);
        self.write(0x3e, 2, 0x0005);
    }

    /// CMD6.
    pub(crate) fn switch(&mut self, argument: u32) {
        let answer = self.command(6, argument, R1B, 0).unwrap();
        assert_eq!(answer[0] & 0xfff9_a080, 0, "CMD6 {argument:#x}: {answer:x?}");
    }

    pub(crate) fn read(&mut self, offset: usize, bytes: usize) -> u64 {
        self.function.read(offset, bytes, self.now)
    }

    pub(crate) fn write(&mut self, offset: usize, bytes: usize, value: u64) {
        self.function.write(offset, bytes, value, self.now);
        if self.function.wants_service() {
            self.service();
        }
    }

    pub(crate) fn service(&mut self) {
        self.function.service(&mut self.card, &self.memory, self.now);
    }

    /// Advances to the next event; returns whether there is one.
    pub(crate) fn next(&mut self) -> bool {
        let Some(at) = self.function.poll_timeout() else { return false };
        self.now = self.now.max(at);
        self.service();
        true
    }

    /// Waits for the interrupt; returns INT_STATUS and clears it.
    pub(crate) fn interrupt(&mut self) -> u32 {
        while !self.function.interrupt() {
            assert!(self.next(), "nothing more happens, and no interrupt: state {:#x}", self.read(0x24, 4));
        }
        let status = self.read(0x30, 4) as u32;
        self.write(0x30, 4, status.into());
        status
    }

    /// Writes a command; with data, TRANSFER_MODE is `mode`.
    pub(crate) fn issue(&mut self, index: u8, argument: u32, flags: u16, mode: u16) {
        self.write(0x08, 4, argument.into());
        self.write(0x0c, 4, u64::from(u32::from(index) << 24 | u32::from(flags) << 16 | u32::from(mode)));
    }

    /// Runs a command to its end; returns the answer, or INT_STATUS of the error.
    pub(crate) fn command(&mut self, index: u8, argument: u32, flags: u16, mode: u16) -> Result<[u32; 4], u32> {
        self.issue(index, argument, flags, mode);
        let ends = if flags & DATA != 0 || flags & 3 == 3 { 3 } else { 1 };
        let mut status = 0;
        while status & ends != ends {
            status |= self.interrupt();
            if status & 0xffff_0000 != 0 {
                return Err(status);
            }
        }
        Ok([0x10, 0x14, 0x18, 0x1c].map(|at| self.read(at, 4) as u32))
    }

    /// Sets block size and count; the list at `at` is ADMA2's 64-bit form.
    pub(crate) fn prepare(&mut self, blocks: u16, at: u64) {
        self.write(0x04, 4, u64::from(blocks) << 16 | 0x7200);
        self.write(0x28, 1, 0x30);
        self.write(0x58, 8, at);
    }

    pub(crate) fn fill(&self, at: u64, bytes: &[u8]) {
        self.memory.write(at, bytes).unwrap();
    }

    pub(crate) fn take(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        self.memory.read(at, &mut out).unwrap();
        out
    }

    /// A descriptor of 8 bytes: `act` is 4 for data, 6 for a link.
    pub(crate) fn descriptor(&self, at: u64, act: u16, end: bool, bytes: u16, address: u32) {
        let attributes = 1 | u32::from(end) << 1 | u32::from(act) << 3 | u32::from(bytes) << 16;
        self.fill(at, &attributes.to_le_bytes());
        self.fill(at + 4, &address.to_le_bytes());
    }
}

/// Bytes that depend on position and seed.
pub(crate) fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
}
