//! SD cards: their differences from eMMC.
//!
//! States, transfers, erase sequence and lock are shared; identification, switching of functions, the application
//! commands and the registers SCR and SD status are SD's own. An SD card has no EXT_CSD. Absent on purpose: SPI mode,
//! content protection (its rules are not public), I/O, command queue and extension registers (no profile's card
//! announces them), SDUC.
//!
//! Source: SD physical layer simplified specification 7.10.

mod identify;
mod legality;
mod registers;
mod switch_func;

use emmc_regs::command::{AppCommand, Command, SdCommand, SdErase};
use emmc_regs::r1::R1;
use emmc_regs::scr::Scr;
use emmc_regs::ssr::Ssr;
use emmc_units::Instant;

use super::{Card, Reply};
use crate::ftl::TrimKind;

pub(crate) use legality::is_legal;
use switch_func::Functions;

/// State of an SD card beyond the part shared with eMMC.
#[derive(Clone, Debug, Default)]
pub(crate) struct SdState {
    /// CMD8 was answered: the host supports high capacity.
    knows_host: bool,
    /// ACMD41 agreed on 1.8 V.
    low_voltage_agreed: bool,
    /// CMD11 has switched to 1.8 V, until a power cycle.
    low_voltage: bool,
    functions: Functions,
    /// ACMD6: four lines instead of one.
    four_lines: bool,
    /// CMD23.
    block_count: Option<u32>,
    /// For ACMD22: blocks of the last write that were stored.
    pub(crate) well_written: u32,
    /// Addresses published so far.
    pub(crate) addresses: u16,
}

/// Whether a command belongs to an erase sequence.
pub(crate) fn is_erase(command: &Command) -> bool {
    use SdCommand as S;
    matches!(command, Command::Sd(S::EraseWrBlkStart { .. } | S::EraseWrBlkEnd { .. } | S::Erase(_)))
}

impl Card {
    /// Whether the announced features allow a command.
    pub(super) fn sd_allows(&self, command: SdCommand) -> bool {
        match command {
            SdCommand::SetBlockCount { .. } => Scr(self.device.stored_registers().scr).has_set_block_count(),
            SdCommand::SendTuningBlock => self.takes_sd_tuning(),
            _ => true,
        }
    }

    /// Executes a legal SD command.
    pub(super) fn execute_sd(&mut self, command: SdCommand, now: Instant) -> Reply {
        match command {
            SdCommand::SendRelativeAddr => self.send_relative_addr(),
            SdCommand::SendIfCond { voltage, pattern } => self.send_if_cond(voltage, pattern),
            SdCommand::VoltageSwitch => self.voltage_switch(),
            SdCommand::SwitchFunc(switch) => self.switch_func(switch, now),
            SdCommand::StopTransmission => self.stop_transmission(now),
            SdCommand::SendStatus { .. } => self.answer(),
            SdCommand::SendTuningBlock => self.send_sd_tuning_block(now),
            SdCommand::SetBlockCount { blocks } => {
                self.sd.block_count = Some(blocks);
                self.answer()
            }
            SdCommand::EraseWrBlkStart { address } => self.erase_start(address),
            SdCommand::EraseWrBlkEnd { address } => self.erase_end(address),
            SdCommand::Erase(erase) => self.erase_blocks(erase, now),
            // No state is legal for the others.
            _ => self.illegal(),
        }
    }

    /// Executes a legal application command.
    pub(super) fn execute_app(&mut self, command: AppCommand, now: Instant) -> Reply {
        // The answer says that the command was taken as an application command.
        self.after_app_cmd = true;
        let reply = match command {
            AppCommand::SdSendOpCond { ocr } => self.sd_send_op_cond(ocr, now),
            AppCommand::SetBusWidth { code } => self.set_bus_width(code),
            AppCommand::SdStatus => self.send_sd_status(now),
            AppCommand::SendScr => self.send_register(self.device.stored_registers().scr.to_vec(), now),
            AppCommand::SendNumWrBlocks => self.send_register(self.sd.well_written.to_be_bytes().to_vec(), now),
            // Hints: the expected write size, and a pull-up that is not simulated.
            AppCommand::SetWrBlkEraseCount { .. } | AppCommand::SetClrCardDetect { .. } => self.answer(),
            AppCommand::Security { .. } => self.illegal(),
        };
        self.after_app_cmd = false;
        reply
    }

    /// The block count of CMD23 for the transfer that starts now, if any.
    pub(super) fn take_sd_count(&mut self) -> Option<u32> {
        self.sd.block_count.take().filter(|blocks| *blocks > 0)
    }

    /// Another command than the transfer came after CMD23.
    pub(super) fn forget_sd_count(&mut self) {
        self.sd.block_count = None;
    }

    /// CMD38: the sectors from CMD32 to CMD33, or the whole user area.
    fn erase_blocks(&mut self, erase: SdErase, now: Instant) -> Reply {
        let range = self.erase.take_range();
        let ssr = Ssr(self.device.stored_registers().ssr);
        let area = self.area();
        let (first, last) = match (erase, range) {
            (SdErase::Fule, _) if ssr.supports_fule() => (0, self.device.sectors(area) - 1),
            (_, Some(range)) => range,
            (_, None) => return self.refuse(R1::ERASE_SEQ_ERROR),
        };
        if last < first {
            return self.refuse(R1::ERASE_PARAM);
        }
        let r1 = self.r1();
        // Cards older than the argument ignore it, and erase.
        let kind = if erase == SdErase::Discard && ssr.supports_discard() { TrimKind::Discard } else { TrimKind::Trim };
        let result = self.give_up(area, first, last + 1, kind, now);
        let done = self.done_or_failed(result, now);
        if self.phase != super::Phase::Off {
            self.program_until(done);
        }
        Self::answer_busy(r1, done)
    }

    /// Power or CMD0: clears SD's volatile state. 1.8 V stays until power is lost.
    pub(super) fn reset_sd(&mut self, power_was_away: bool) {
        let low_voltage = self.sd.low_voltage && !power_was_away;
        let addresses = self.sd.addresses;
        self.sd = SdState { low_voltage, addresses, ..SdState::default() };
        self.rca = 0;
        self.apply_functions();
    }
}
