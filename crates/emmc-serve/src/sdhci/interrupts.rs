//! Interrupt status: set where enabled, cleared by software, combined into one line.

use super::Sdhci;
use super::registers::{AUTO_CMD_STATUS, INT_ENABLE, INT_STATUS, SIGNAL_ENABLE, int};

impl Sdhci {
    /// Sets status bits that are enabled.
    pub(super) fn raise(&mut self, bits: u32) {
        let enabled = self.registers.get32(INT_ENABLE);
        let status = self.registers.get32(INT_STATUS) | bits & enabled;
        self.registers.set32(INT_STATUS, status);
    }

    /// Errors that the command queueing engine had on the bus.
    pub(crate) fn raise_errors(&mut self, bits: u32) {
        self.raise(bits & int::ERRORS);
    }

    /// An automatic command failed.
    pub(super) fn raise_auto(&mut self, status: u16) {
        self.registers.set16(AUTO_CMD_STATUS, self.registers.get16(AUTO_CMD_STATUS) | status);
        self.raise(int::AUTO_CMD);
    }

    /// INT_STATUS as software reads it: with the error summary bit, and the engine's interrupt while that is asserted.
    pub(super) fn status(&self, engine: bool) -> u32 {
        let status = self.registers.get32(INT_STATUS);
        let sum = if status & int::ERRORS != 0 { int::ERROR } else { 0 };
        let engine = if engine { int::CQE & self.registers.get32(INT_ENABLE) } else { 0 };
        status | sum | engine
    }

    /// Whether the interrupt line is asserted.
    pub(crate) fn interrupt(&self, engine: bool) -> bool {
        self.status(engine) & self.registers.get32(SIGNAL_ENABLE) != 0
    }

    /// Software forces errors: FORCE_AUTO_CMD or FORCE_ERROR was written.
    pub(super) fn force(&mut self, auto: u16, errors: u16) {
        if auto & 0xbf != 0 {
            self.raise_auto(auto & 0xbf);
        }
        self.raise(u32::from(errors) << 16);
    }
}
