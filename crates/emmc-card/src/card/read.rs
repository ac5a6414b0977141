//! Reads of an area: CMD17, CMD18.
//!
//! Sectors are prefetched in chunks: counted transfers whole up to a limit, open-ended ones in growing chunks, since
//! the card cannot know where the host will stop. The flash works on the next chunk while the last one is transferred:
//! all are requested at the time of the command.

use emmc_regs::command::{DataDirection, SetBlockCount};
use emmc_regs::r1::{R1, State};
use emmc_units::Instant;

use super::legality::Phase;
use super::transfer::Transfer;
use super::{Area, Card, DataBlock, DataPhase, Reply};
use crate::device::StorageError;
use crate::ftl::FtlError;

/// Sectors per fetch: first of an open-ended read, and the maximum.
const FIRST_CHUNK: u32 = 8;
const LAST_CHUNK: u32 = 1024;
/// Chunk boundaries of an open-ended read.
const BOUNDARY: u32 = 64;

/// Which sectors to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadRequest {
    pub(crate) area: Area,
    pub(crate) lba: u64,
    /// Absent: until CMD12.
    pub(crate) blocks: Option<u32>,
}

/// A read in progress.
#[derive(Clone, Debug)]
pub(crate) struct ReadTransfer {
    area: Area,
    /// The next sector to fetch.
    next: u64,
    /// Blocks left for the host; absent: until CMD12.
    left: Option<u32>,
    /// Sectors of the next fetch.
    chunk: u32,
    /// Fetched blocks, and the number of bytes already sent.
    fetched: Vec<u8>,
    sent: usize,
    /// When the last of these has crossed the bus.
    fetched_at: Instant,
    started: Instant,
    /// No more data: an error, or the end of the area. The host must send CMD12.
    halted: bool,
}

impl ReadTransfer {
    /// Its buffer, for the next transfer.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.fetched
    }
}

impl Card {
    /// CMD17.
    pub(super) fn read_single(&mut self, address: u32, now: Instant) -> Reply {
        self.read_at(address, Some(1), now)
    }

    /// CMD18.
    pub(super) fn read_multiple(&mut self, address: u32, now: Instant) -> Reply {
        let count = self.block_count.take().unwrap_or_default();
        if let Some(reply) = self.read_stream(count, now) {
            return reply;
        }
        let blocks = blocks_of(count).or_else(|| self.take_sd_count());
        self.read_at(address, blocks, now)
    }

    fn read_at(&mut self, address: u32, blocks: Option<u32>, now: Instant) -> Reply {
        let lba = match self.check_blocks(blocks).and_then(|()| self.sector_at(address)) {
            Ok(lba) => lba,
            Err(bits) => return self.refuse(bits),
        };
        let r1 = self.r1();
        let area = self.area();
        let data = self.start_reading(ReadRequest { area, lba, blocks }, now);
        Self::answer_with(r1, data)
    }

    /// Starts to send sectors.
    pub(super) fn start_reading(&mut self, request: ReadRequest, now: Instant) -> DataPhase {
        let ReadRequest { area, lba, blocks } = request;
        let chunk = blocks.unwrap_or(FIRST_CHUNK).clamp(1, LAST_CHUNK);
        let mut fetched = std::mem::take(&mut self.spare);
        fetched.clear();
        let (next, left) = (lba, blocks);
        let read =
            ReadTransfer { area, next, left, chunk, fetched, sent: 0, fetched_at: now, started: now, halted: false };
        self.transfer = Some(Transfer::Read(read));
        self.phase = Phase::In(State::Data);
        let ready = self.fetch(true).unwrap_or(now);
        DataPhase { direction: DataDirection::Read, block_bytes: 512, blocks, ready }
    }

    /// Fetches the next chunk; returns when its first block will have been transferred.
    fn fetch(&mut self, is_first: bool) -> Option<Instant> {
        loop {
            let Some(Transfer::Read(read)) = &mut self.transfer else { return None };
            let (area, next, started) = (read.area, read.next, read.started);
            let left = self.device.sectors(area).saturating_sub(next);
            let wanted = read.left.map_or(read.chunk, |left| left.min(read.chunk));
            let sectors = u64::from(wanted).min(left) as u32;
            if sectors == 0 {
                return self.halt(R1::OUT_OF_RANGE);
            }
            if !is_first {
                self.device.go_on();
            }
            let mut bytes = std::mem::take(&mut read.fetched);
            read.sent = 0;
            bytes.clear();
            bytes.resize(sectors as usize * 512, 0);
            let out = self.device.nand().keeps_data().then_some(&mut bytes[..]);
            match self.device.read(area, next, sectors, out, started) {
                Ok(done) => return self.fetched(bytes, sectors, done.transferred),
                // Data before the bad sector is good.
                Err(StorageError::Ftl(FtlError::Uncorrectable { .. })) if sectors > 1 => {
                    self.set_chunk(sectors / 2);
                }
                Err(error) => {
                    self.note_error(&error);
                    return self.halt(R1(0));
                }
            }
        }
    }

    fn set_chunk(&mut self, sectors: u32) {
        if let Some(Transfer::Read(read)) = &mut self.transfer {
            read.chunk = sectors;
        }
    }

    /// No more data can be sent. A single-block read ends, any other waits for CMD12.
    fn halt(&mut self, bits: R1) -> Option<Instant> {
        self.status.raise(bits);
        let Some(Transfer::Read(read)) = &mut self.transfer else { return None };
        read.halted = true;
        None
    }

    /// A chunk whose last block has been transferred at `end`; returns when the first has.
    fn fetched(&mut self, bytes: Vec<u8>, sectors: u32, end: Instant) -> Option<Instant> {
        let Some(Transfer::Read(read)) = &mut self.transfer else { return None };
        (read.fetched, read.sent, read.fetched_at) = (bytes, 0, end);
        read.next += u64::from(sectors);
        // Then up to a boundary, so that no flash page is read twice, and on in growing steps.
        let to_boundary = BOUNDARY - (read.next % u64::from(BOUNDARY)) as u32;
        read.chunk = if sectors < BOUNDARY { to_boundary } else { (sectors * 2).min(LAST_CHUNK) };
        Some(self.crossed(sectors - 1))
    }

    /// The time at which a block of the chunk has been transferred, with `after` blocks following.
    fn crossed(&self, after: u32) -> Instant {
        let Some(Transfer::Read(read)) = &self.transfer else { return Instant::START };
        let rest = self.device.bus().read(1) * u64::from(after);
        Instant(read.fetched_at.since(Instant(rest.0)).0)
    }

    /// CMD12: a read ends early.
    pub(super) fn stop_reading(&mut self, now: Instant) {
        if let Some(Transfer::Read(read)) = &self.transfer {
            let end = read.next - ((read.fetched.len() - read.sent) / 512) as u64;
            self.device.stop_read(read.area, end, now);
        }
        self.end_transfer();
    }

    /// The next block of a read.
    pub(super) fn read_block(&mut self, now: Instant) -> Option<DataBlock> {
        let mut bytes = Vec::with_capacity(512);
        let at = self.read_blocks(1, &mut bytes, now)?;
        Some(DataBlock { bytes, at })
    }

    /// Up to `most` blocks of a read; returns when the last of them has been transferred.
    pub(super) fn read_blocks(&mut self, most: u32, into: &mut Vec<u8>, now: Instant) -> Option<Instant> {
        let is_empty = |read: &ReadTransfer| read.sent >= read.fetched.len();
        let Some(Transfer::Read(read)) = &self.transfer else { return None };
        if is_empty(read) && !read.halted {
            self.fetch(false);
        }
        let Some(Transfer::Read(read)) = &mut self.transfer else { return None };
        if is_empty(read) {
            return None;
        }
        let there = &read.fetched[read.sent..];
        let count = (there.len() / 512).min(most as usize).min(read.left.map_or(usize::MAX, |left| left as usize));
        into.extend_from_slice(&there[..count * 512]);
        let after = there.len() / 512 - count;
        read.sent += count * 512;
        read.left = read.left.map(|left| left - count as u32);
        let is_over = read.left == Some(0);
        let at = self.crossed(after as u32).max(now);
        if is_over {
            self.end_transfer();
        }
        Some(at)
    }
}

/// The block count of CMD23; 0 and no CMD23 both mean until CMD12.
pub(super) fn blocks_of(count: SetBlockCount) -> Option<u32> {
    (count.blocks > 0).then_some(u32::from(count.blocks))
}
