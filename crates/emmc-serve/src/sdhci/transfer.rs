//! Data transfers: start, steps and end.

use emmc_card::card::Card;
use emmc_regs::CardKind;
use emmc_regs::command::{DataDirection, Response};
use emmc_units::{Instant, Nanos};

use super::Sdhci;
use super::command::{AUTO_CRC, AUTO_RESPONSE, AUTO_TIMEOUT};
use super::descriptor::{Form, Walk};
use super::faults::HostError;
use super::lines::{Lines, Sent};
use super::memory::GuestMemory;
use super::pio::Buffer;
use super::registers::{
    ADMA_ADDRESS, BLOCK_COUNT, BLOCK_SIZE, HOST_CONTROL, HOST_CONTROL_2, SDMA_ADDRESS, TIMEOUT_CONTROL, TRANSFER_MODE,
    control_2, int, mode, state,
};

/// The next step on the data lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Blocks move.
    Move,
    /// The controller sends CMD12.
    Stop,
    /// It is over.
    Complete,
    /// SDMA has come to a boundary.
    Pause,
    /// Failed, with these error interrupts.
    Fail(u32),
}

/// Who moves the data between controller and memory.
#[derive(Clone, Debug)]
pub(super) enum Mover {
    /// Software, through the buffer port.
    Pio(Buffer),
    /// The controller, up to the next boundary.
    Sdma {
        /// The next byte.
        address: u64,
        /// Unit: bytes.
        boundary: u64,
        /// Part of a block that the boundary has split: the rest to write to memory, or the bytes read from it.
        carry: Vec<u8>,
    },
    /// The controller, by a list.
    Adma(Walk),
}

/// The current transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) read: bool,
    pub(super) block_bytes: usize,
    /// Blocks left; absent: until CMD12.
    pub(super) left: Option<u32>,
    pub(super) mover: Mover,
    /// Time up to which the bus is used.
    pub(super) at: Instant,
    /// The card is busy with written data until then.
    pub(super) busy_until: Option<Instant>,
    is_tuning: bool,
}

impl Transfer {
    /// Its bits of PRESENT_STATE.
    pub(super) fn present_state(&self) -> u32 {
        let ready = matches!(&self.mover, Mover::Pio(buffer) if buffer.is_ready());
        match (self.read, ready) {
            (true, false) => state::READ_ACTIVE,
            (true, true) => state::READ_ACTIVE | state::BUFFER_READ,
            (false, false) => state::WRITE_ACTIVE,
            (false, true) => state::WRITE_ACTIVE | state::BUFFER_WRITE,
        }
    }
}

impl Sdhci {
    /// How long data or busy may take.
    ///
    /// Source: TIMEOUT_CONTROL counts 2^13 to 2^27 clocks of the timeout clock, which is 50 MHz in all identities.
    pub(crate) fn data_timeout(&self) -> Nanos {
        let shift = 13 + u32::from(self.registers.get8(TIMEOUT_CONTROL).min(14));
        Nanos(20 << shift)
    }

    /// A command with data has been answered: the data follows.
    pub(super) fn begin_transfer(&mut self, card: &Card, index: u8, sent: &Sent) {
        let at = sent.at;
        let mode = self.registers.get16(TRANSFER_MODE);
        let read = mode & mode::READ != 0;
        let direction = if read { DataDirection::Read } else { DataDirection::Write };
        let block_bytes = usize::from(self.registers.get16(BLOCK_SIZE) & 0xfff);
        let left = self.blocks(mode);
        if left == Some(0) {
            self.next = Some((at, Step::Complete));
            return;
        }
        let Some(phase) = sent.reply.data.filter(|phase| phase.direction == direction) else {
            self.next = Some((at + self.data_timeout(), Step::Fail(int::DATA_TIMEOUT)));
            return;
        };
        if sent.fault == Some(HostError::DataTimeout) {
            self.next = Some((at + self.data_timeout(), Step::Fail(int::DATA_TIMEOUT)));
            return;
        }
        if block_bytes == 0 || sent.fault == Some(HostError::DataCrc) || !self.lines_fit(card, index) {
            self.next = Some((phase.ready.max(at), Step::Fail(int::DATA_CRC)));
            return;
        }
        self.transfer = Some(Transfer {
            read,
            block_bytes,
            left,
            mover: self.mover(mode),
            at: phase.ready.max(at),
            busy_until: None,
            is_tuning: self.has(control_2::EXECUTE_TUNING) && matches!(index, 19 | 21),
        });
        // The card's blocks are fetched immediately: each has the time at which it has crossed the bus.
        let from = if matches!(self.transfer, Some(Transfer { mover: Mover::Pio(_), .. })) { phase.ready } else { at };
        self.next = Some((from.max(at), Step::Move));
    }

    /// Blocks to transfer; absent: until CMD12.
    pub(super) fn blocks(&self, mode: u16) -> Option<u32> {
        if mode & mode::MULTIPLE == 0 {
            return Some(1);
        }
        if mode & mode::COUNTED == 0 {
            return None;
        }
        // Version 4 has a 32-bit count, used if the short one is 0.
        let count = match self.registers.get16(BLOCK_COUNT) {
            0 if self.has(control_2::VERSION_4) => self.registers.get32(SDMA_ADDRESS),
            count => count.into(),
        };
        Some(count)
    }

    fn mover(&self, mode: u16) -> Mover {
        if mode & mode::DMA == 0 {
            return Mover::Pio(Buffer::default());
        }
        let (version_4, wide) = (self.has(control_2::VERSION_4), self.has(control_2::ADDRESS_64));
        let select = self.registers.get8(HOST_CONTROL) >> 3 & 3;
        let long = self.registers.get64(ADMA_ADDRESS);
        if select == 0 {
            let address = match (version_4, wide) {
                (false, _) => self.registers.get32(SDMA_ADDRESS).into(),
                (true, false) => long & 0xffff_ffff,
                (true, true) => long,
            };
            let boundary = 4096 << (self.registers.get16(BLOCK_SIZE) >> 12 & 7);
            return Mover::Sdma { address, boundary, carry: Vec::new() };
        }
        let form = match (version_4, wide, select) {
            (true, true, _) => Form::Bits128,
            (false, _, 3) => Form::Bits96,
            _ => Form::Bits64,
        };
        let base = if form == Form::Bits64 { long & 0xffff_ffff } else { long };
        Mover::Adma(Walk::new(form, base))
    }

    /// Whether host and card agree on bus width and data rate; if not, data arrive corrupted. Bus test patterns and the
    /// tuning block exist to find that out. SD cards leave their modes to the profile.
    fn lines_fit(&self, card: &Card, index: u8) -> bool {
        if matches!(index, 14 | 19 | 21) || card.device().profile().kind == CardKind::Sd {
            return true;
        }
        let control = self.registers.get8(HOST_CONTROL);
        let lines = match (control >> 5 & 1, control >> 1 & 1) {
            (1, _) => 8,
            (_, 1) => 4,
            _ => 1,
        };
        // DDR50, and HS400 in the two codes that hosts use.
        let ddr = matches!(self.registers.get16(HOST_CONTROL_2) & control_2::TIMING, 4 | 5 | 7);
        let bus = card.device().bus().mode();
        lines == bus.width() && ddr == bus.ddr()
    }

    /// Performs the step that is due on the data lines.
    pub(super) fn step(&mut self, card: &mut Card, memory: &dyn GuestMemory, lines: &mut Lines) {
        let Some((at, step)) = self.next.take() else { return };
        // What a card was doing when it lost power was not done.
        let step = match step {
            Step::Move | Step::Stop | Step::Complete if card.state(at).is_none() => Step::Fail(int::DATA_TIMEOUT),
            other => other,
        };
        match step {
            Step::Move => self.move_blocks(card, memory, lines, at),
            Step::Stop => self.stop(card, lines, at),
            Step::Complete => {
                self.transfer = None;
                lines.accounts.end(at, 0);
                self.raise(int::TRANSFER_COMPLETE);
            }
            Step::Pause => self.raise(int::DMA),
            Step::Fail(errors) => {
                self.transfer = None;
                lines.accounts.end(at, errors);
                self.raise(errors);
            }
        }
    }

    /// Moves the available blocks: one by PIO, all by DMA.
    fn move_blocks(&mut self, card: &mut Card, memory: &dyn GuestMemory, lines: &mut Lines, at: Instant) {
        let Some(mut transfer) = self.transfer.take() else { return };
        transfer.at = transfer.at.max(at);
        let next = if transfer.is_tuning {
            self.tune(&transfer, card)
        } else if matches!(transfer.mover, Mover::Pio(_)) {
            self.move_by_software(&mut transfer, card, at)
        } else if transfer.read {
            self.move_to_memory(&mut transfer, card, memory, at)
        } else {
            self.move_to_card(&mut transfer, card, memory, at)
        };
        if let Some(until) = transfer.busy_until {
            lines.busy_until = until;
        }
        lines.accounts.cross(transfer.at);
        self.registers_follow(&transfer);
        self.next = next;
        self.transfer = (!transfer.is_tuning).then_some(transfer);
    }

    /// All blocks are done: CMD12 or the end follows, after the busy time of a write.
    pub(super) fn finish(&self, transfer: &Transfer) -> (Instant, Step) {
        let until = transfer.busy_until.unwrap_or(transfer.at).max(transfer.at);
        let limit = transfer.at + self.data_timeout();
        if until > limit {
            return (limit, Step::Fail(int::DATA_TIMEOUT));
        }
        (until, if self.stops_by_itself() { Step::Stop } else { Step::Complete })
    }

    /// Sends an automatic CMD12.
    fn stop(&mut self, card: &mut Card, lines: &mut Lines, at: Instant) {
        let sent = lines.send(card, 12, 0, at);
        lines.accounts.stop(at);
        self.put_auto_response(&sent.reply.response);
        match sent.reply.response {
            _ if sent.fault == Some(HostError::CommandCrc) => self.raise_auto(AUTO_CRC),
            Response::R1(r1) | Response::R1b(r1) if self.is_error(r1) => self.raise_auto(AUTO_RESPONSE),
            Response::R1(_) | Response::R1b(_) => {}
            _ => self.raise_auto(AUTO_TIMEOUT),
        }
        self.await_busy(sent.reply.busy_until.unwrap_or(sent.at).max(sent.at), sent.at);
    }

    /// A tuning block: the controller checks it itself, and after a few of them the sampling clock is found.
    fn tune(&mut self, transfer: &Transfer, card: &mut Card) -> Option<(Instant, Step)> {
        const BLOCKS: u8 = 4;
        let block = card.poll_data(transfer.at)?;
        self.tuning_blocks += 1;
        if self.tuning_blocks >= BLOCKS && block.bytes.len() == transfer.block_bytes {
            let control = self.registers.get16(HOST_CONTROL_2) & !control_2::EXECUTE_TUNING;
            self.registers.set16(HOST_CONTROL_2, control | control_2::TUNED_CLOCK);
            self.tuning_blocks = 0;
        }
        self.raise(int::BUFFER_READ);
        None
    }

    /// Updates registers in which software sees the progress of a transfer.
    fn registers_follow(&mut self, transfer: &Transfer) {
        if let (Some(left), true) = (transfer.left, self.registers.get16(BLOCK_COUNT) > 0) {
            self.registers.set16(BLOCK_COUNT, left.min(0xffff) as u16);
        }
        match &transfer.mover {
            Mover::Pio(_) => {}
            Mover::Sdma { address, .. } if self.has(control_2::VERSION_4) => {
                self.registers.set64(ADMA_ADDRESS, *address);
            }
            Mover::Sdma { address, .. } => self.registers.set32(SDMA_ADDRESS, *address as u32),
            Mover::Adma(walk) => self.registers.set64(ADMA_ADDRESS, walk.next),
        }
    }
}
