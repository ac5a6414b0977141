//! Data transfers: one at a time, block by block.

use emmc_regs::command::DataDirection;
use emmc_regs::r1::State;
use emmc_units::Instant;

use super::legality::Phase;
use super::read::ReadTransfer;
use super::write::WriteTransfer;
use super::{Card, DataBlock, DataPhase, DataStatus, Reply};

/// The content of a transfer and its destination.
#[derive(Clone, Debug)]
pub(crate) enum Transfer {
    /// From an area to the host.
    Read(ReadTransfer),
    /// From the host to an area.
    Write(WriteTransfer),
    /// Known bytes, to the host.
    Send(Sending),
    /// Bytes from the host that are processed together.
    Collect(Collecting),
}

/// Bytes that go to the host.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    pub(crate) bytes: Vec<u8>,
    pub(crate) block_bytes: usize,
    /// Bytes sent so far.
    pub(crate) sent: usize,
    /// When the next block may start.
    pub(crate) from: Instant,
}

/// Bytes from the host, until complete.
#[derive(Clone, Debug)]
pub(crate) struct Collecting {
    pub(crate) purpose: Purpose,
    pub(crate) block_bytes: usize,
    /// Blocks still to come; absent: until CMD12.
    pub(crate) left: Option<u32>,
    pub(crate) bytes: Vec<u8>,
}

/// The purpose of collected bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// CMD19.
    BusTest,
    /// CMD26.
    Cid,
    /// CMD27.
    Csd,
    /// CMD42.
    Lock,
    /// CMD49.
    Time,
    /// CMD56 to the card.
    Maker,
    /// CMD25 to RPMB; `reliable` comes from its CMD23.
    Rpmb { reliable: bool },
    /// CMD25 to FFU_ARG.
    Firmware,
    /// A packed command: its header, and the data of a write.
    Packed,
}

impl Card {
    /// The host sends a block.
    pub fn handle_data(&mut self, block: &[u8], now: Instant) -> DataStatus {
        self.settle(now);
        match &self.transfer {
            Some(Transfer::Write(_)) if block.len() == 512 => self.write_block(block, now),
            Some(Transfer::Collect(collecting)) if fits(collecting, block) => self.collect(block, now),
            Some(Transfer::Write(_) | Transfer::Collect(_)) => self.handle_damaged_data(now),
            Some(Transfer::Read(_) | Transfer::Send(_)) | None => DataStatus::Ignored,
        }
    }

    /// A block with a wrong checksum arrived. It is dropped with the rest of the transfer; a multi-block transfer then
    /// waits for CMD12, a single-block transfer ends.
    pub fn handle_damaged_data(&mut self, now: Instant) -> DataStatus {
        self.settle(now);
        match &mut self.transfer {
            Some(Transfer::Write(write)) if !write.is_single => {
                write.halted = true;
                DataStatus::Rejected
            }
            Some(Transfer::Write(_) | Transfer::Collect(_)) => {
                self.transfer = None;
                self.phase = Phase::In(State::Tran);
                DataStatus::Rejected
            }
            Some(Transfer::Read(_) | Transfer::Send(_)) | None => DataStatus::Ignored,
        }
    }

    /// The next block for the host, with the time at which it has been transferred; absent: no block.
    pub fn poll_data(&mut self, now: Instant) -> Option<DataBlock> {
        self.settle(now);
        if let Some(acknowledge) = self.features.boot.acknowledge.take() {
            return Some(acknowledge);
        }
        match &mut self.transfer {
            Some(Transfer::Read(_)) => self.read_block(now),
            Some(Transfer::Send(_)) => self.send_block(now),
            Some(Transfer::Write(_) | Transfer::Collect(_)) | None => None,
        }
    }

    /// Several blocks in one call, if the card sends sectors: appends at most `most` to `into`. Returns when the last
    /// of them has been transferred; absent: no block, or [`Card::poll_data`] must be used.
    ///
    /// Shape: blocks of 512 bytes.
    pub fn poll_blocks(&mut self, most: u32, into: &mut Vec<u8>, now: Instant) -> Option<Instant> {
        self.settle(now);
        match &self.transfer {
            Some(Transfer::Read(_)) if self.features.boot.acknowledge.is_none() => self.read_blocks(most, into, now),
            _ => None,
        }
    }

    /// Starts to send bytes to the host at `now`; the card is in `data` meanwhile.
    pub(super) fn start_sending(&mut self, bytes: Vec<u8>, block_bytes: usize, now: Instant) -> DataPhase {
        let blocks = bytes.len().div_ceil(block_bytes.max(1)) as u32;
        let ready = now + self.device.bus().command() + self.bus_time(block_bytes);
        self.transfer = Some(Transfer::Send(Sending { bytes, block_bytes, sent: 0, from: ready }));
        self.phase = Phase::In(State::Data);
        DataPhase { direction: DataDirection::Read, block_bytes: block_bytes as u32, blocks: Some(blocks), ready }
    }

    fn send_block(&mut self, now: Instant) -> Option<DataBlock> {
        let Some(Transfer::Send(sending)) = &mut self.transfer else { return None };
        let end = (sending.sent + sending.block_bytes).min(sending.bytes.len());
        let block = DataBlock { bytes: sending.bytes[sending.sent..end].to_vec(), at: sending.from };
        sending.sent = end;
        let is_last = end == sending.bytes.len();
        let next = block.at.max(now) + self.bus_time(block.bytes.len());
        match &mut self.transfer {
            Some(Transfer::Send(sending)) if !is_last => sending.from = next,
            _ => self.end_transfer(),
        }
        Some(block)
    }

    /// All data has been sent: the card waits for the next command.
    pub(super) fn end_transfer(&mut self) {
        if let Some(Transfer::Read(read)) = self.transfer.take() {
            self.spare = read.into_buffer();
        }
        self.phase = Phase::In(State::Tran);
        self.finish_task();
        if std::mem::take(&mut self.features.boot.is_active) {
            self.phase = Phase::PreIdle;
        }
    }

    /// Expects bytes from the host; the card is in `state` meanwhile.
    pub(super) fn start_collecting(&mut self, collecting: Collecting, state: State, now: Instant) -> DataPhase {
        let phase = DataPhase {
            direction: DataDirection::Write,
            block_bytes: collecting.block_bytes as u32,
            blocks: collecting.left,
            ready: now + self.device.bus().command(),
        };
        self.transfer = Some(Transfer::Collect(collecting));
        self.phase = Phase::In(state);
        phase
    }

    /// Expects one block of `block_bytes`, for `purpose`.
    pub(super) fn collect_one(&mut self, purpose: Purpose, block_bytes: usize, now: Instant) -> Reply {
        let r1 = self.r1();
        let collecting = Collecting { purpose, block_bytes, left: Some(1), bytes: Vec::new() };
        let data = self.start_collecting(collecting, State::Rcv, now);
        Self::answer_with(r1, data)
    }

    fn collect(&mut self, block: &[u8], now: Instant) -> DataStatus {
        let Some(Transfer::Collect(collecting)) = &mut self.transfer else { return DataStatus::Ignored };
        collecting.bytes.extend_from_slice(block);
        collecting.left = collecting.left.map(|left| left - 1);
        if collecting.left != Some(0) {
            return DataStatus::Accepted { busy_until: None };
        }
        DataStatus::Accepted { busy_until: self.finish_collecting(now) }
    }

    /// Everything has arrived and is processed. Returns the end of busy.
    pub(super) fn finish_collecting(&mut self, now: Instant) -> Option<Instant> {
        let Some(Transfer::Collect(Collecting { purpose, bytes, .. })) = self.transfer.take() else { return None };
        if purpose == Purpose::BusTest {
            self.test_pattern = bytes;
            return None;
        }
        let done = match purpose {
            Purpose::BusTest => now,
            Purpose::Cid => self.store_cid(&bytes, now),
            Purpose::Csd => self.store_csd(&bytes, now),
            Purpose::Lock => self.use_lock_data(&bytes, now),
            Purpose::Time => self.store_time(bytes, now),
            Purpose::Maker | Purpose::Rpmb { .. } | Purpose::Firmware | Purpose::Packed => {
                self.use_stream(purpose, &bytes, now)
            }
        };
        if self.phase != Phase::Off {
            self.program_until(done);
        }
        Some(done)
    }

    /// CMD12: ends the current transfer.
    pub(super) fn stop_transmission(&mut self, now: Instant) -> Reply {
        let r1 = self.r1();
        match &self.transfer {
            Some(Transfer::Write(_)) => {
                let done = self.finish_writing(now);
                return Self::answer_busy(r1, done);
            }
            Some(Transfer::Collect(Collecting { left: None, .. })) => {
                let done = self.finish_collecting(now).unwrap_or(now);
                return Self::answer_busy(r1, done);
            }
            Some(Transfer::Read(_)) => self.stop_reading(now),
            Some(Transfer::Collect(_) | Transfer::Send(_)) | None => self.end_transfer(),
        }
        Reply::with(emmc_regs::command::Response::R1(r1))
    }
}

/// CMD19 and CMD42 accept any length; all other commands have blocks of one size.
fn fits(collecting: &Collecting, block: &[u8]) -> bool {
    match collecting.purpose {
        Purpose::BusTest => !block.is_empty(),
        _ => block.len() == collecting.block_bytes,
    }
}
