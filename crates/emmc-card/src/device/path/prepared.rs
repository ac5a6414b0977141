//! Queued tasks, before the host asks for the transfer: reads are fetched from flash, writes taken by the firmware.
//!
//! A queued write costs its firmware time when the firmware takes it; its transfer then needs only the bus and room in
//! the buffer. A queued read holds its chunks in the buffer until the bus has transferred them. Chunks that do not fit
//! are fetched during the transfer, as for a read that was not queued. Absent on purpose: the choice of the task
//! (`card::queue`).

use emmc_units::Instant;

use super::Path;
use super::merge::Written;
use crate::device::op::{Area, StorageError};
use crate::device::storage::Storage;
use crate::ftl::FtlError;

/// A chunk in the buffer.
#[derive(Clone, Debug)]
struct Chunk {
    area: Area,
    first: u64,
    end: u64,
    ready: Instant,
    /// Content, if the card stores it.
    bytes: Option<Vec<u8>>,
}

/// All chunks in the buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Prepared {
    chunks: Vec<Chunk>,
    held_bytes: u64,
    /// Writes that the firmware has taken, in that order.
    writes: Vec<Written>,
}

impl Prepared {
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.writes.clear();
        self.held_bytes = 0;
    }

    /// Whether no read is in the buffer.
    #[inline]
    pub(super) fn has_no_reads(&self) -> bool {
        self.chunks.is_empty()
    }

    /// When sectors are in the buffer; copies their content into `out`. `None`: they must be read from flash.
    pub(super) fn find(&self, area: Area, first: u64, end: u64, out: Option<&mut [u8]>) -> Option<Instant> {
        let holds = |chunk: &&Chunk| chunk.area == area && chunk.first <= first && end <= chunk.end;
        let chunk = self.chunks.iter().find(holds)?;
        match (out, &chunk.bytes) {
            (Some(out), Some(bytes)) => {
                out.copy_from_slice(&bytes[((first - chunk.first) * 512) as usize..][..out.len()]);
            }
            (Some(_), None) => return None,
            (None, _) => {}
        }
        Some(chunk.ready)
    }

    /// Whether the firmware has taken the write that begins with these sectors; it is over with that.
    #[inline]
    pub(super) fn take_write(&mut self, area: Area, lba: u64, sectors: u64) -> bool {
        if self.writes.is_empty() {
            return false;
        }
        let is_it = |write: &Written| (write.area, write.first) == (area, lba) && lba + sectors <= write.end;
        // The usual case, which moves nothing.
        if self.writes.last().is_some_and(is_it) && self.writes.len() == 1 {
            self.writes.clear();
            return true;
        }
        let place = self.writes.iter().position(is_it);
        place.map(|place| self.writes.remove(place)).is_some()
    }

    /// Drops chunks that overlap sectors: these are written, or their task has ended.
    #[inline]
    pub(super) fn drop_range(&mut self, area: Area, first: u64, end: u64) {
        self.keep(|chunk| chunk.area != area || chunk.end <= first || end <= chunk.first);
    }

    /// Drops chunks that have been transferred to their end.
    pub(super) fn drop_transferred(&mut self, area: Area, first: u64, end: u64) {
        self.keep(|chunk| chunk.area != area || chunk.end <= first || end < chunk.end);
    }

    #[inline]
    fn keep(&mut self, stays: impl Fn(&Chunk) -> bool) {
        if !self.chunks.is_empty() {
            self.keep_those(stays);
        }
    }

    #[inline(never)]
    fn keep_those(&mut self, stays: impl Fn(&Chunk) -> bool) {
        self.chunks.retain(stays);
        self.held_bytes = self.chunks.iter().map(|chunk| (chunk.end - chunk.first) * 512).sum();
    }
}

impl Path {
    /// Fetches a queued read into the buffer, as much as there is room for. Returns when the first chunk is there;
    /// `None`: there is no room before other tasks have been transferred.
    ///
    /// Errors: out of range, power lost. A chunk that cannot be read is left to the transfer, which reports it.
    pub(crate) fn prepare_read(
        &mut self,
        storage: &mut Storage,
        area: Area,
        lba: u64,
        sectors: u32,
        now: Instant,
    ) -> Result<Option<Instant>, StorageError> {
        storage.check(area, lba, u64::from(sectors))?;
        let end = lba + u64::from(sectors);
        let first_bytes = self.chunk_left(lba).min(end - lba) * 512;
        if self.prepared.held_bytes > 0 && self.prepared.held_bytes + first_bytes > self.buffer_bytes {
            return Ok(None);
        }
        let firmware = self.read_firmware(storage, area, lba, end);
        let asked = now.max(self.firmware_free) + self.stray(firmware, lba, now);
        self.firmware_free = asked;
        let (mut at, mut first_ready) = (lba, asked);
        while at < end {
            let run = storage.run(area, at, self.chunk_left(at).min(end - at));
            let held_bytes = run.sectors * 512;
            if at > lba && self.prepared.held_bytes + held_bytes > self.buffer_bytes {
                break;
            }
            let mut bytes = storage.nand.keeps_data().then(|| vec![0; held_bytes as usize]);
            let ready = match self.read_run(storage, &run, bytes.as_deref_mut(), asked) {
                Ok(ready) => ready,
                Err(FtlError::Uncorrectable { .. }) => break,
                Err(error) => return Err(error.into()),
            };
            if at == lba {
                first_ready = ready;
            }
            self.prepared.chunks.push(Chunk { area, first: at, end: at + run.sectors, ready, bytes });
            self.prepared.held_bytes += held_bytes;
            at += run.sectors;
        }
        Ok(Some(first_ready))
    }

    /// The firmware takes a queued write; returns when it is done with that, and the data can come.
    ///
    /// Errors: out of range.
    pub(crate) fn prepare_write(
        &mut self,
        storage: &Storage,
        area: Area,
        lba: u64,
        sectors: u32,
        now: Instant,
    ) -> Result<Instant, StorageError> {
        let sectors = u64::from(sectors);
        storage.check(area, lba, sectors)?;
        let cost = match self.has_one_cost {
            true => self.one_cost(storage, (area, lba, sectors)),
            false => {
                let last = self.prepared.writes.last().copied().or(self.merging.last());
                self.cost_after(storage, last, (area, lba, sectors)).0
            }
        };
        self.firmware_free = now.max(self.firmware_free) + self.stray(cost, lba, now);
        self.prepared.writes.push(Written { area, first: lba, end: lba + sectors });
        Ok(self.firmware_free)
    }

    /// A queued write has ended, transferred or not.
    pub(crate) fn drop_prepared_write(&mut self, area: Area, lba: u64) {
        self.prepared.writes.retain(|write| (write.area, write.first) != (area, lba));
    }

    /// Drops fetched chunks of a task that has ended.
    pub(crate) fn drop_prepared(&mut self, area: Area, first: u64, end: u64) {
        self.prepared.drop_range(area, first, end);
    }

    /// Drops all fetched chunks.
    pub(crate) fn drop_all_prepared(&mut self) {
        self.prepared.clear();
    }
}
