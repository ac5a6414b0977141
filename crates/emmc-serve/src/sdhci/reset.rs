//! Software resets: of everything, of the command line, of the data lines.

use super::Sdhci;
use super::registers::{BLOCK_GAP_CONTROL, INT_STATUS, int};

/// Bits of SOFTWARE_RESET.
const ALL: u8 = 1;
const COMMAND_LINE: u8 = 1 << 1;
const DATA_LINES: u8 = 1 << 2;

impl Sdhci {
    /// SOFTWARE_RESET was written. The card does not notice, and the register immediately reads 0 again.
    pub(super) fn software_reset(&mut self, bits: u8) {
        if bits & ALL != 0 {
            self.reset();
            return;
        }
        if bits & COMMAND_LINE != 0 {
            self.start = None;
            self.command = None;
            self.clear(int::COMMAND_COMPLETE);
        }
        if bits & DATA_LINES != 0 {
            self.next = None;
            self.transfer = None;
            self.registers.set8(BLOCK_GAP_CONTROL, 0);
            self.clear(int::TRANSFER_COMPLETE | int::DMA | int::BUFFER_WRITE | int::BUFFER_READ);
        }
    }

    /// State as after power-up.
    pub(crate) fn reset(&mut self) {
        self.registers.reset_all();
        self.start = None;
        self.command = None;
        self.next = None;
        self.transfer = None;
        self.tuning_blocks = 0;
    }

    fn clear(&mut self, bits: u32) {
        self.registers.set32(INT_STATUS, self.registers.get32(INT_STATUS) & !bits);
    }
}
