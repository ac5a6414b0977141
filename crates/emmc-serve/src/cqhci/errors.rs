//! Errors of tasks, and how software sees them.
//!
//! A response with error bits of ERROR_MASK is a response error of the engine. Bus errors (no response, no data) and
//! bad memory are error interrupts of the host controller. TASK_ERROR names the task in both cases.

use emmc_regs::command::Response;

use super::Cqhci;
use super::registers::{ERROR_MASK, RESPONSE, RESPONSE_INDEX, TASK_ERROR, int};
use crate::sdhci::HostError;
use crate::sdhci::lines::Sent;
use crate::sdhci::registers::int as host;

const COMMAND_VALID: u32 = 1 << 15;
const DATA_VALID: u32 = 1 << 31;

impl Cqhci {
    /// Checks the response to a task's command; returns the status if it is without error.
    pub(super) fn check(&mut self, slot: usize, index: u8, sent: &Sent) -> Option<u32> {
        if sent.fault == Some(HostError::CommandCrc) {
            self.command_failed(slot, index);
            self.errors |= host::COMMAND_CRC;
            return None;
        }
        let (Response::R1(status) | Response::R1b(status)) = sent.reply.response else {
            self.command_failed(slot, index);
            self.errors |= host::COMMAND_TIMEOUT;
            return None;
        };
        self.registers.set32(RESPONSE_INDEX, index.into());
        self.registers.set32(RESPONSE, status.0);
        if status.0 & self.registers.get32(ERROR_MASK) == 0 {
            return Some(status.0);
        }
        self.command_failed(slot, index);
        self.raise(int::RESPONSE_ERROR);
        None
    }

    fn command_failed(&mut self, slot: usize, index: u8) {
        self.failed = true;
        self.registers.set32(TASK_ERROR, COMMAND_VALID | (slot as u32) << 8 | u32::from(index));
    }

    /// The data of a task, or its descriptor, failed.
    pub(super) fn data_failed(&mut self, slot: usize, index: u8, errors: u32) {
        self.failed = true;
        self.registers.set32(TASK_ERROR, DATA_VALID | (slot as u32) << 24 | u32::from(index) << 16);
        self.errors |= errors;
    }
}
