//! Writes to an area: CMD24, CMD25.
//!
//! Blocks are gathered and passed down together, when the count of CMD23 is reached, at CMD12, or at a limit; the
//! device's time counts from the command, as if it had worked on them while they arrived.

use emmc_regs::command::{DataDirection, SetBlockCount};
use emmc_regs::ext_csd::reg;
use emmc_regs::r1::{R1, State};
use emmc_units::Instant;

use super::interrupt::Busy;
use super::legality::Phase;
use super::read::blocks_of;
use super::transfer::Transfer;
use super::{Area, Card, DataPhase, DataStatus, Reply};
use crate::device::WriteFlags;

/// Sectors passed down in one call.
const GATHER: u32 = 1024;

/// Which sectors to write, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteRequest {
    pub(crate) area: Area,
    pub(crate) lba: u64,
    /// Absent: until CMD12.
    pub(crate) blocks: Option<u32>,
    pub(crate) flags: WriteFlags,
}

/// A write in progress.
#[derive(Clone, Debug)]
pub(crate) struct WriteTransfer {
    area: Area,
    flags: WriteFlags,
    /// The sector of the first gathered block.
    first: u64,
    /// Blocks gathered.
    gathered: u32,
    /// Their content, if the card stores data.
    bytes: Vec<u8>,
    /// Blocks still to come; absent: until CMD12.
    left: Option<u32>,
    /// CMD24: one block, and no CMD12 after it.
    pub(super) is_single: bool,
    started: Instant,
    /// Part of it has been passed down.
    handed: bool,
    /// When the passed part is done.
    done: Instant,
    /// Blocks are dropped from now on, until CMD12.
    pub(super) halted: bool,
}

impl Card {
    /// CMD24.
    pub(super) fn write_single(&mut self, address: u32, now: Instant) -> Reply {
        let one = SetBlockCount { blocks: 1, ..SetBlockCount::default() };
        if let Some(reply) = self.write_stream(address, one, now) {
            return reply;
        }
        self.write_at(address, Some(1), WriteFlags::default(), true, now)
    }

    /// CMD25.
    pub(super) fn write_multiple(&mut self, address: u32, now: Instant) -> Reply {
        let count = self.block_count.take().unwrap_or_default();
        if let Some(reply) = self.write_stream(address, count, now) {
            return reply;
        }
        let flags = WriteFlags { reliable: count.reliable_write, force: count.forced_programming };
        let blocks = blocks_of(count).or_else(|| self.take_sd_count());
        self.write_at(address, blocks, flags, false, now)
    }

    fn write_at(
        &mut self,
        address: u32,
        blocks: Option<u32>,
        flags: WriteFlags,
        is_single: bool,
        now: Instant,
    ) -> Reply {
        let lba = match self.check_blocks(blocks).and_then(|()| self.sector_at(address)) {
            Ok(lba) => lba,
            Err(bits) => return self.refuse(bits),
        };
        if flags.reliable && !self.takes_reliable(lba, blocks) {
            return self.refuse(R1::ERROR);
        }
        let r1 = self.r1();
        let area = self.area();
        let data = self.start_writing(WriteRequest { area, lba, blocks, flags }, is_single, now);
        Self::answer_with(r1, data)
    }

    /// Parts without EN_REL_WR write one sector reliably, or REL_WR_SEC_C sectors, at a multiple of that.
    fn takes_reliable(&self, lba: u64, blocks: Option<u32>) -> bool {
        let any = self.ext_csd_byte(reg::WR_REL_PARAM) & 4 != 0;
        let legacy = u32::from(self.ext_csd_byte(reg::REL_WR_SEC_C));
        any || blocks == Some(1) || blocks == Some(legacy) && legacy > 0 && lba % u64::from(legacy) == 0
    }

    /// Starts to accept sectors.
    pub(super) fn start_writing(&mut self, request: WriteRequest, is_single: bool, now: Instant) -> DataPhase {
        let WriteRequest { area, lba, blocks, flags } = request;
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        self.transfer = Some(Transfer::Write(WriteTransfer {
            area,
            flags,
            first: lba,
            gathered: 0,
            bytes,
            left: blocks,
            is_single,
            started: now,
            handed: false,
            done: now,
            halted: false,
        }));
        self.phase = Phase::In(State::Rcv);
        self.sd.well_written = 0;
        let ready = now + self.device.bus().command();
        DataPhase { direction: DataDirection::Write, block_bytes: 512, blocks, ready }
    }

    /// A block of a write.
    pub(super) fn write_block(&mut self, block: &[u8], now: Instant) -> DataStatus {
        let Some(Transfer::Write(write)) = &self.transfer else { return DataStatus::Ignored };
        if write.halted {
            return DataStatus::Ignored;
        }
        let (area, sector) = (write.area, write.first + u64::from(write.gathered));
        if let Some(error) = self.write_fault(area, sector) {
            self.status.raise(error);
            if let Some(Transfer::Write(write)) = &mut self.transfer {
                write.halted = true;
            }
        }
        let keeps_data = self.device.nand().keeps_data();
        let Some(Transfer::Write(write)) = &mut self.transfer else { return DataStatus::Ignored };
        if !write.halted {
            write.gathered += 1;
            if keeps_data {
                write.bytes.extend_from_slice(block);
            }
        }
        write.left = write.left.map(|left| left - 1);
        let is_last = write.left == Some(0) && (write.is_single || !write.halted);
        if is_last {
            return DataStatus::Accepted { busy_until: Some(self.finish_writing(now)) };
        }
        if write.gathered == GATHER {
            self.hand_down();
        }
        match self.phase {
            Phase::Off => DataStatus::Ignored,
            _ => DataStatus::Accepted { busy_until: None },
        }
    }

    /// Why a sector cannot be written: past the end, or protected.
    pub(super) fn write_fault(&self, area: Area, sector: u64) -> Option<R1> {
        if sector >= self.device.sectors(area) {
            return Some(R1::OUT_OF_RANGE);
        }
        self.is_protected(area, sector).then_some(R1::WP_VIOLATION)
    }

    /// Passes the gathered blocks down.
    fn hand_down(&mut self) {
        let Some(Transfer::Write(write)) = &mut self.transfer else { return };
        let (area, first, sectors, flags) = (write.area, write.first, write.gathered, write.flags);
        let (started, handed) = (write.started, std::mem::replace(&mut write.handed, true));
        let mut bytes = std::mem::take(&mut write.bytes);
        write.first += u64::from(sectors);
        write.gathered = 0;
        if sectors == 0 {
            return;
        }
        if handed {
            self.device.go_on();
        }
        let data = self.device.nand().keeps_data().then_some(&bytes[..]);
        let result = self.device.write(area, first, sectors, flags, data, started);
        let Some(Transfer::Write(write)) = &mut self.transfer else { return };
        bytes.clear();
        write.bytes = bytes;
        match result {
            Ok(done) => {
                write.done = write.done.max(done.done);
                self.sd.well_written += sectors;
            }
            Err(error) => {
                write.halted = true;
                self.note_error(&error);
            }
        }
    }

    /// The last block has arrived, or CMD12: the card programs. Returns the end of busy.
    pub(super) fn finish_writing(&mut self, now: Instant) -> Instant {
        self.hand_down();
        let Some(Transfer::Write(write)) = self.transfer.take() else { return now };
        if self.phase == Phase::Off {
            return now;
        }
        self.spare = write.bytes;
        let done = write.done.max(now);
        self.features.next_busy = Busy::Write { sectors: self.sd.well_written, from: write.started };
        self.finish_task();
        self.program_until(done);
        done
    }
}
