//! Commands of software: sending, responses, checks.

use emmc_card::card::{Card, Reply};
use emmc_regs::command::{Response, ResponseKind};
use emmc_regs::r1::R1;
use emmc_units::Instant;

use super::Sdhci;
use super::faults::HostError;
use super::lines::Lines;
use super::registers::{
    ARGUMENT, CAPABILITIES, CLOCK_CONTROL, COMMAND, POWER_CONTROL, RESPONSE_0, RESPONSE_3, SDMA_ADDRESS, TRANSFER_MODE,
    control_2, int, mode,
};
use super::transfer::Step;

/// Fields of COMMAND.
const RESPONSE_TYPE: u16 = 3;
const LONG: u16 = 1;
const SHORT_BUSY: u16 = 3;
const CHECK_CRC: u16 = 1 << 3;
const CHECK_INDEX: u16 = 1 << 4;
const DATA: u16 = 1 << 5;
const TYPE: u16 = 3 << 6;
const ABORT: u16 = 3 << 6;
/// AUTO_CMD_STATUS: no response; a damaged one; one with an error bit.
pub(super) const AUTO_TIMEOUT: u16 = 1 << 1;
pub(super) const AUTO_CRC: u16 = 1 << 2;
pub(super) const AUTO_RESPONSE: u16 = 1 << 5;
/// The status bits of R1 that the controller treats as errors, if checking is enabled.
///
/// Source: SD Host Controller Simplified Specification 4.20, Response Error Check Enable.
const R1_ERRORS: u32 = 0xfdf9_8008;

/// How a command ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandEnd {
    /// For the response registers; absent: they keep their content.
    words: Option<(u16, [u32; 4])>,
    /// Interrupts to raise.
    interrupts: u32,
}

impl Sdhci {
    /// Sends the command that software wrote.
    pub(super) fn issue(&mut self, card: &mut Card, lines: &mut Lines, now: Instant) {
        let command = self.registers.get16(COMMAND);
        let index = (command >> 8 & 0x3f) as u8;
        let with_data = command & DATA != 0;
        // A second transfer cannot start before the first has ended; software must not try.
        if with_data && (self.transfer.is_some() || self.next.is_some()) {
            return;
        }
        if command & TYPE == ABORT {
            self.transfer = None;
            self.next = None;
        }
        if !self.is_clocked() {
            self.command = Some((now, CommandEnd { words: None, interrupts: int::COMMAND_TIMEOUT }));
            return;
        }
        card.set_host_clock(self.clock_hz());
        let mut from = now;
        if with_data && self.counts_by_itself() {
            match self.announce_count(card, lines, now) {
                Some(at) => from = at,
                None => return,
            }
        }
        let sent = lines.send(card, index, self.registers.get32(ARGUMENT), from);
        if index == 7 && sent.reply.response == Response::None {
            // A card that is deselected releases the data lines.
            lines.busy_until = sent.at;
        }
        let mut end = self.judge(command, &sent.reply);
        if sent.fault == Some(HostError::CommandCrc) {
            end = CommandEnd { words: None, interrupts: int::COMMAND_CRC };
        }
        let failed = end.interrupts & int::ERRORS != 0;
        self.command = Some((sent.at, end));
        if failed {
            return;
        }
        let busy = command & RESPONSE_TYPE == SHORT_BUSY;
        if with_data || busy {
            let blocks = if with_data { self.blocks(self.registers.get16(TRANSFER_MODE)).unwrap_or(0) } else { 0 };
            lines.accounts.begin((index, self.registers.get32(ARGUMENT)), blocks, now, sent.at);
        }
        if with_data {
            self.begin_transfer(card, index, &sent);
        } else if busy {
            let until = sent.reply.busy_until.unwrap_or(sent.at).max(sent.at);
            self.await_busy(until, sent.at);
        }
    }

    /// The card is busy from `from` on: the transfer is complete at its end, or times out.
    pub(super) fn await_busy(&mut self, until: Instant, from: Instant) {
        let limit = from + self.data_timeout();
        self.next = Some(if until <= limit { (until, Step::Complete) } else { (limit, Step::Fail(int::DATA_TIMEOUT)) });
    }

    /// Whether clock and power are switched on at the controller.
    fn is_clocked(&self) -> bool {
        self.registers.get16(CLOCK_CONTROL) & 5 == 5 && self.registers.get8(POWER_CONTROL) & 1 == 1
    }

    /// The card's clock: the base clock, or an even part of it.
    ///
    /// Source: SD Host Controller Simplified Specification 4.20, 10-bit Divided Clock Mode. Unit: Hz.
    fn clock_hz(&self) -> u64 {
        let base_hz = u64::from(self.registers.get32(CAPABILITIES) >> 8 & 0xff) * 1_000_000;
        let clock = u64::from(self.registers.get16(CLOCK_CONTROL));
        let divisor = 2 * (clock >> 8 | (clock >> 6 & 3) << 8);
        base_hz / divisor.max(1)
    }

    /// Whether CMD23 is sent before the command: auto CMD23, or auto select where version 4 prefers CMD23.
    fn counts_by_itself(&self) -> bool {
        let auto = self.registers.get16(TRANSFER_MODE) & (mode::AUTO_CMD12 | mode::AUTO_CMD23);
        auto == mode::AUTO_CMD23 || auto == mode::AUTO_CMD12 | mode::AUTO_CMD23 && self.has(control_2::CMD23)
    }

    /// Whether CMD12 is sent after the data.
    pub(super) fn stops_by_itself(&self) -> bool {
        let auto = self.registers.get16(TRANSFER_MODE) & (mode::AUTO_CMD12 | mode::AUTO_CMD23);
        auto == mode::AUTO_CMD12 || auto == mode::AUTO_CMD12 | mode::AUTO_CMD23 && !self.has(control_2::CMD23)
    }

    /// Sends an automatic CMD23; returns the time at which the command itself may follow. Absent: it failed, and no
    /// command follows.
    fn announce_count(&mut self, card: &mut Card, lines: &mut Lines, now: Instant) -> Option<Instant> {
        let sent = lines.send(card, 23, self.registers.get32(SDMA_ADDRESS), now);
        let status = match sent.reply.response {
            Response::R1(_) if sent.fault == Some(HostError::CommandCrc) => AUTO_CRC,
            Response::R1(r1) if self.is_error(r1) => AUTO_RESPONSE,
            Response::R1(_) => return Some(sent.at),
            _ => AUTO_TIMEOUT,
        };
        self.raise_auto(status);
        None
    }

    /// Whether a status has an error bit, and the controller is to check it.
    pub(super) fn is_error(&self, r1: R1) -> bool {
        self.registers.get16(TRANSFER_MODE) & mode::CHECK_RESPONSE != 0 && r1.0 & R1_ERRORS != 0
    }

    /// Checks a response.
    fn judge(&self, command: u16, reply: &Reply) -> CommandEnd {
        let wanted = command & RESPONSE_TYPE;
        let mode = self.registers.get16(TRANSFER_MODE);
        let kind = reply.response.kind();
        let end = |words, interrupts| CommandEnd { words, interrupts };
        let complete = if mode & mode::NO_RESPONSE_INTERRUPT != 0 { 0 } else { int::COMMAND_COMPLETE };
        if self.has(control_2::EXECUTE_TUNING) {
            // Only data interrupts are raised during tuning.
            return end(None, if kind == ResponseKind::None { int::COMMAND_TIMEOUT } else { 0 });
        }
        if wanted == 0 {
            return end(None, complete);
        }
        if kind == ResponseKind::None {
            return end(None, int::COMMAND_TIMEOUT);
        }
        if (kind == ResponseKind::R2) != (wanted == LONG) {
            return end(None, int::COMMAND_END_BIT);
        }
        let words = Some((RESPONSE_0, response_words(&reply.response)));
        let mut errors = 0;
        if command & CHECK_INDEX != 0 && matches!(kind, ResponseKind::R2 | ResponseKind::R3) {
            errors |= int::COMMAND_INDEX;
        }
        if command & CHECK_CRC != 0 && kind == ResponseKind::R3 {
            errors |= int::COMMAND_CRC;
        }
        if let Response::R1(r1) | Response::R1b(r1) = reply.response {
            if self.is_error(r1) {
                errors |= int::RESPONSE;
            }
        }
        end(words, if errors == 0 { complete } else { errors })
    }

    /// The response has arrived, or has timed out.
    pub(super) fn end_command(&mut self, end: &CommandEnd) {
        if let Some((at, words)) = end.words {
            self.put_response(at, words);
        }
        self.raise(end.interrupts);
    }

    fn put_response(&mut self, at: u16, words: [u32; 4]) {
        // A short response leaves the other registers: the last one holds the response of an automatic command.
        let count = if words[1..] == [0; 3] { 1 } else { 4 };
        for (offset, word) in (at..).step_by(4).zip(words).take(count) {
            self.registers.set32(offset, word);
        }
    }

    /// The response to an automatic command.
    pub(super) fn put_auto_response(&mut self, response: &Response) {
        self.registers.set32(RESPONSE_3, response.words()[0]);
    }
}

/// A response as in the four response registers: of a long one bits 127:8, the lowest first.
fn response_words(response: &Response) -> [u32; 4] {
    match response {
        Response::R2(register) => {
            let bits = u128::from_be_bytes(*register) >> 8;
            [0, 32, 64, 96].map(|low| (bits >> low) as u32)
        }
        short => short.words(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_response_has_no_checksum() {
        let register = [0x15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff];
        let words = response_words(&Response::R2(register));
        assert_eq!(words, [0x0b0c_0d0e, 0x0708_090a, 0x0304_0506, 0x0015_0102]);
    }
}
