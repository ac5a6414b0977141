//! An SD host controller after version 4.20 of its specification, independent of the bus: registers in, interrupt out.
//!
//! Software's accesses (`read`, `write`) only record requests; `service` executes them with the card, and the work that
//! is due. No code here reads a clock: `poll_timeout` returns the time of the next call. Commands (`command`), their
//! data by PIO, SDMA and ADMA2 (`transfer`, `pio`, `descriptor`), interrupts, resets. Absent on purpose: suspend and
//! resume, stop at block gap, ADMA3, UHS-II, card detection (the card is soldered), and the sampling of real signals:
//! tuning succeeds whenever the card sends its pattern.

mod account;
mod command;
pub(crate) mod descriptor;
mod dma;
mod faults;
mod interrupts;
pub(crate) mod lines;
mod memory;
mod pio;
pub(crate) mod register_file;
pub(crate) mod registers;
mod reset;
#[cfg(test)]
mod tests;
mod transfer;

use emmc_card::card::Card;
use emmc_units::Instant;

pub use account::RequestAccount;
pub use faults::{HostError, HostFault, HostFaults};
pub use memory::{FlatMemory, GuestMemory, Unmapped};

use command::CommandEnd;
use lines::Lines;
use register_file::{RegisterFile, touches};
use registers::{
    ADMA_ADDRESS, ADMA_ADDRESS_HIGH, BUFFER, CAPABILITIES, CAPABILITIES_1, CLOCK_CONTROL, COMMAND, FORCE_AUTO_CMD,
    FORCE_ERROR, HOST_CONTROL_2, HOST_VERSION, INT_STATUS, POWER_CONTROL, PRESENT_STATE, SDMA_ADDRESS, SLOT_INT_STATUS,
    SOFTWARE_RESET, control_2, state,
};
use transfer::{Step, Transfer};

/// Capabilities of a controller, as in its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// HOST_VERSION: specification version in the low byte.
    pub version: u16,
    /// CAPABILITIES, both words.
    pub capabilities: u64,
}

/// The controller.
#[derive(Debug)]
pub struct Sdhci {
    registers: RegisterFile,
    /// COMMAND was written: it is sent at the next service.
    start: Option<Instant>,
    /// RST_n was asserted.
    reset_card: bool,
    /// The current command, and when it ends.
    command: Option<(Instant, CommandEnd)>,
    /// The next step on the data lines.
    next: Option<(Instant, Step)>,
    transfer: Option<Transfer>,
    /// Tuning blocks seen since tuning began.
    tuning_blocks: u8,
    /// Buffer for blocks between card and memory.
    staging: Vec<u8>,
}

impl Sdhci {
    /// A controller after reset.
    pub fn new(abilities: Abilities) -> Self {
        let mut registers = RegisterFile::new(registers::TABLE, registers::SIZE);
        registers.set_reset(HOST_VERSION, abilities.version.into(), 2);
        registers.set_reset(CAPABILITIES, abilities.capabilities as u32, 4);
        registers.set_reset(CAPABILITIES_1, (abilities.capabilities >> 32) as u32, 4);
        Self {
            registers,
            start: None,
            reset_card: false,
            command: None,
            next: None,
            transfer: None,
            tuning_blocks: 0,
            staging: Vec::new(),
        }
    }

    /// Software reads; `engine`: the command queueing engine's interrupt is asserted.
    pub(crate) fn read(&mut self, offset: usize, bytes: usize, engine: bool, lines: &Lines, now: Instant) -> u64 {
        if touches(offset, bytes, BUFFER) {
            return self.read_buffer(bytes, now);
        }
        // Computed when read.
        if (offset..offset + bytes).any(|at| (0x24..0x34).contains(&at)) {
            let state = self.present_state(lines, now);
            self.registers.set32(PRESENT_STATE, state);
            let kept = self.registers.get32(INT_STATUS);
            self.registers.set32(INT_STATUS, self.status(engine));
            let value = self.registers.read(offset, bytes);
            self.registers.set32(INT_STATUS, kept);
            return value;
        }
        if offset + bytes > SLOT_INT_STATUS.into() {
            self.registers.set16(SLOT_INT_STATUS, u16::from(self.interrupt(engine)));
        }
        self.registers.read(offset, bytes)
    }

    /// Software writes.
    pub(crate) fn write(&mut self, offset: usize, bytes: usize, value: u64, now: Instant) {
        let byte = |at: u16| (value >> (8 * (usize::from(at) - offset))) as u8;
        let touched = |at: u16| touches(offset, bytes, at);
        let powered = self.registers.get8(POWER_CONTROL);
        self.registers.write(offset, bytes, value);
        if touched(BUFFER) {
            let room = bytes.min(usize::from(BUFFER) + 4 - offset);
            self.write_buffer(&value.to_le_bytes()[usize::from(BUFFER) - offset..room], now);
        }
        if touched(CLOCK_CONTROL) {
            // The internal clock is stable as soon as it runs.
            let clock = self.registers.get16(CLOCK_CONTROL);
            self.registers.set16(CLOCK_CONTROL, clock & !2 | (clock & 1) << 1);
        }
        // Bit 4 drives RST_n.
        if touched(POWER_CONTROL) && !powered & self.registers.get8(POWER_CONTROL) & 0x10 != 0 {
            self.reset_card = true;
        }
        if touched(HOST_CONTROL_2) && self.registers.get16(HOST_CONTROL_2) & control_2::EXECUTE_TUNING == 0 {
            self.tuning_blocks = 0;
        }
        let forced = |at: u16| if touched(at) { u16::from(byte(at)) } else { 0 };
        let auto = forced(FORCE_AUTO_CMD);
        let errors = forced(FORCE_ERROR) | forced(FORCE_ERROR + 1) << 8;
        if auto | errors != 0 {
            self.force(auto, errors);
        }
        if touched(SOFTWARE_RESET) {
            self.software_reset(byte(SOFTWARE_RESET));
        }
        if touched(COMMAND + 1) && self.command.is_none() {
            self.start = Some(now);
        }
        if touched(self.dma_trigger()) {
            self.resume_dma(now);
        }
    }

    /// The byte whose write lets SDMA continue: the last of its address.
    fn dma_trigger(&self) -> u16 {
        match (self.has(control_2::VERSION_4), self.has(control_2::ADDRESS_64)) {
            (false, _) => SDMA_ADDRESS + 3,
            (true, false) => ADMA_ADDRESS + 3,
            (true, true) => ADMA_ADDRESS_HIGH + 3,
        }
    }

    /// Whether a bit of HOST_CONTROL_2 is set.
    fn has(&self, bit: u16) -> bool {
        self.registers.get16(HOST_CONTROL_2) & bit != 0
    }

    /// Whether it can use the card now.
    pub(crate) fn wants_service(&self) -> bool {
        self.start.is_some() || self.reset_card
    }

    /// When it must be serviced next without an access by software.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let command = self.command.as_ref().map(|(at, _)| *at);
        let data = self.next.as_ref().map(|(at, _)| *at);
        command.into_iter().chain(data).chain(self.start).min()
    }

    /// Executes the requests of software and the work that is due at `now`.
    pub(crate) fn service(&mut self, card: &mut Card, memory: &dyn GuestMemory, lines: &mut Lines, now: Instant) {
        if std::mem::take(&mut self.reset_card) {
            // Without power there is no card to reset.
            let _ = card.hardware_reset(now);
        }
        if let Some(at) = self.start.take() {
            self.issue(card, lines, at);
        }
        while self.poll_timeout().is_some_and(|at| at <= now) {
            let command_at = self.command.as_ref().map(|(at, _)| *at);
            let data_first = self.next.as_ref().is_some_and(|(at, _)| command_at.is_none_or(|command| *at < command));
            if data_first {
                self.step(card, memory, lines);
            } else if let Some((_, end)) = self.command.take() {
                self.end_command(&end);
            }
        }
    }

    fn present_state(&self, lines: &Lines, now: Instant) -> u32 {
        let mut value = state::CARD | state::DATA_LEVELS | state::COMMAND_LEVEL;
        if lines.is_busy(now) {
            value &= !state::DATA_0;
        }
        if self.start.is_some() || self.command.is_some() {
            value |= state::COMMAND_INHIBIT;
        }
        if self.next.is_some() || self.transfer.is_some() {
            value |= state::DATA_INHIBIT | state::DATA_ACTIVE;
        }
        match &self.transfer {
            Some(transfer) => value | transfer.present_state(),
            None => value,
        }
    }
}
