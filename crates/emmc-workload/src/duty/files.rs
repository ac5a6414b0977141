//! A rate as files of a modelled filesystem: a database that is overwritten at random, logs that are rotated, images.
//!
//! The filesystem writes to a target that only collects requests, on the clock of the load. Absent on purpose: reads,
//! which the page cache answers.

use std::collections::VecDeque;

use emmc_port::{BlockDone, BlockRequest, BlockTarget, TargetError, TargetKind, TargetShape};
use emmc_units::{Instant, Nanos, Rng};

use super::rate::{MemoryLogs, nanos};
use super::source::{Periods, Queue};
use super::{DAY_S, Discard, Files, FilesystemKind, Partition, Rate};
use crate::drive::stream::BenchError;
use crate::drive::watch::Unwatched;
use crate::fs::{BLOCK_BYTES, Disk, Ext4, F2fs, FileId, Filesystem, MountOptions};

/// Programs write this often. Unit: seconds.
const PERIOD_S: f64 = 5.0;
/// The share of the data that is the database, where some of the load is random.
const DATABASE_SHARE: f64 = 0.5;
/// A log is rotated at this size. Unit: bytes.
const LOG_BYTES: u64 = 8 << 20;
/// An update is written in parts, between which the kernel writes back. Unit: bytes.
const IMAGE_PART_BYTES: u64 = 8 << 20;

/// Files on a modelled filesystem.
pub(super) struct InFiles {
    discard: Discard,
    partition: Partition,
    filesystem: Box<dyn Filesystem>,
    sink: Sink,
    work: Work,
    /// Weeks that have been trimmed.
    weeks: u64,
}

/// What the programs do with their files.
struct Work {
    rate: Rate,
    rng: Rng,
    time_s: f64,
    /// Bytes that are due and not written yet.
    random_due: f64,
    stream_due: f64,
    memory: Option<MemoryLogs>,
    database: FileId,
    database_blocks: u64,
    logs: VecDeque<FileId>,
    /// Bytes of the newest log.
    log_bytes: u64,
    logs_max: usize,
    images: [Option<FileId>; 2],
    updates: u64,
    started: u64,
}

/// Collects requests; its clock is the load's.
#[derive(Debug)]
struct Sink {
    shape: TargetShape,
    now: Instant,
    takes_flushes: bool,
    requests: Vec<(Instant, BlockRequest)>,
    last: Option<BlockRequest>,
}

impl BlockTarget for Sink {
    fn shape(&self) -> &TargetShape {
        &self.shape
    }

    fn now(&mut self) -> Instant {
        self.now
    }

    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
        self.shape.check(&request)?;
        self.requests.push((self.now, request));
        self.last = Some(request);
        Ok(())
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        let failed = || TargetError::Failed { name: self.shape.name.clone(), reason: "nothing is outstanding".into() };
        let request = self.last.take().ok_or_else(failed)?;
        Ok(BlockDone { request, submitted: self.now, done: self.now, error: None })
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.now = self.now + time;
        Ok(())
    }

    fn takes_flushes(&self) -> bool {
        self.takes_flushes
    }
}

impl InFiles {
    /// Makes the filesystem, its database and its first log. Their requests come first.
    ///
    /// Errors: a partition that is too small.
    pub(super) fn new(
        rate: Rate,
        files: Files,
        partition: Partition,
        commit_s: Option<f64>,
        takes_flushes: bool,
        seed: u64,
    ) -> Result<Self, BenchError> {
        let shape = TargetShape {
            name: files.kind.name().into(),
            kind: TargetKind::Simulated,
            size_bytes: partition.bytes() / BLOCK_BYTES * BLOCK_BYTES,
            sector_bytes: 512,
            depth_max: 256,
            can_trim: true,
            engine: "collected",
        };
        let mut sink = Sink { shape, now: Instant::START, takes_flushes, requests: Vec::new(), last: None };
        let commit_s = commit_s.map_or(0, |seconds| seconds.round().max(1.0) as u32);
        let options = MountOptions { discard: files.discard == Discard::Online, commit_s };
        let mut unwatched = Unwatched;
        let mut disk = Disk::new(&mut sink, &mut unwatched, 0, u64::MAX);
        let mut filesystem: Box<dyn Filesystem> = match files.kind {
            FilesystemKind::Ext4 => Box::new(Ext4::make(&mut disk, options)?),
            FilesystemKind::F2fs => Box::new(F2fs::make(&mut disk, options)?),
        };
        let database = filesystem.create(&mut disk, 0)?;
        let data = rate.data_bytes / BLOCK_BYTES;
        let database_blocks = match rate.random_share {
            0.0 => 1,
            1.0 => data,
            _ => (data as f64 * DATABASE_SHARE) as u64,
        };
        let block = (u64::from(rate.block_bytes) / BLOCK_BYTES).max(1);
        let database_blocks = (database_blocks / block * block).max(block);
        write_through(&mut *filesystem, &mut disk, database, database_blocks * BLOCK_BYTES)?;
        filesystem.sync(&mut disk)?;
        let logs_max = ((data.saturating_sub(database_blocks)) * BLOCK_BYTES / LOG_BYTES).max(2) as usize;
        let work = Work {
            memory: MemoryLogs::of(&rate),
            rate,
            rng: Rng::new(seed),
            time_s: 0.0,
            random_due: 0.0,
            stream_due: 0.0,
            database,
            database_blocks,
            logs: VecDeque::new(),
            log_bytes: LOG_BYTES,
            logs_max,
            images: [None; 2],
            updates: 0,
            started: 0,
        };
        Ok(Self { discard: files.discard, partition, filesystem, sink, work, weeks: 0 })
    }

    /// Writes what is due in this period.
    fn period(&mut self) -> Result<(), BenchError> {
        let mut unwatched = Unwatched;
        let mut disk = Disk::new(&mut self.sink, &mut unwatched, 0, u64::MAX);
        let filesystem = &mut *self.filesystem;
        filesystem.idle(&mut disk, nanos(PERIOD_S))?;
        self.work.database(filesystem, &mut disk)?;
        self.work.logs(filesystem, &mut disk)?;
        self.work.images(filesystem, &mut disk)?;
        let weeks = (self.work.time_s / (7.0 * DAY_S)) as u64;
        if self.discard == Discard::Weekly && weeks > self.weeks {
            self.weeks = weeks;
            filesystem.trim(&mut disk)?;
        }
        disk.write_waiting()
    }
}

impl Work {
    /// What the programs write in the next period becomes due.
    fn advance(&mut self) {
        self.time_s += PERIOD_S;
        let bytes = self.rate.bytes_per_day * PERIOD_S / DAY_S;
        self.random_due += bytes * self.rate.random_share;
        let stream = bytes * (1.0 - self.rate.random_share);
        self.stream_due += match &mut self.memory {
            Some(memory) => memory.take(stream, self.time_s),
            None => stream,
        };
    }

    /// Random overwrites.
    fn database(&mut self, filesystem: &mut dyn Filesystem, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        let block = u64::from(self.rate.block_bytes).next_multiple_of(BLOCK_BYTES);
        let places = self.database_blocks * BLOCK_BYTES / block;
        while self.random_due >= f64::from(self.rate.block_bytes) {
            let offset = self.rng.below(places) * block;
            filesystem.write(disk, self.database, offset, block)?;
            self.random_due -= f64::from(self.rate.block_bytes);
        }
        Ok(())
    }

    /// Appends to the newest log; the oldest one is deleted for a new one.
    fn logs(&mut self, filesystem: &mut dyn Filesystem, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        let mut bytes = self.stream_due as u64;
        self.stream_due -= bytes as f64;
        while bytes > 0 {
            if self.log_bytes >= LOG_BYTES {
                if self.logs.len() >= self.logs_max {
                    if let Some(oldest) = self.logs.pop_front() {
                        filesystem.unlink(disk, oldest)?;
                    }
                }
                self.logs.push_back(filesystem.create(disk, 1)?);
                self.log_bytes = 0;
            }
            let part = bytes.min(LOG_BYTES - self.log_bytes);
            if let Some(newest) = self.logs.back() {
                filesystem.write(disk, *newest, self.log_bytes, part)?;
            }
            self.log_bytes += part;
            bytes -= part;
        }
        Ok(())
    }

    /// Replaces the older of two images for each update that is due.
    fn images(&mut self, filesystem: &mut dyn Filesystem, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        let Some(update) = self.rate.update else { return Ok(()) };
        let due = self.started + (self.time_s / (update.weeks * 7.0 * DAY_S)) as u64;
        while self.updates < due {
            let slot = (self.updates % 2) as usize;
            if let Some(old) = self.images[slot].take() {
                filesystem.unlink(disk, old)?;
                filesystem.sync(disk)?;
            }
            let image = filesystem.create(disk, 2)?;
            write_through(filesystem, disk, image, update.bytes)?;
            filesystem.fsync(disk, image)?;
            self.images[slot] = Some(image);
            self.updates += 1;
        }
        Ok(())
    }
}

/// Writes a file in parts, each of which the kernel writes back.
fn write_through(
    filesystem: &mut dyn Filesystem,
    disk: &mut Disk<'_>,
    file: FileId,
    bytes: u64,
) -> Result<(), BenchError> {
    let mut written = 0;
    while written < bytes {
        let part = IMAGE_PART_BYTES.min(bytes - written);
        filesystem.write(disk, file, written, part)?;
        filesystem.write_back(disk, file)?;
        written += part;
    }
    Ok(())
}

impl Periods for InFiles {
    fn next_period(&mut self, queue: &mut Queue) -> Result<(), BenchError> {
        self.work.advance();
        self.period()?;
        for (at, request) in self.sink.requests.drain(..) {
            let offset = self.partition.from_bytes + request.offset_bytes;
            queue.push(at.since(Instant::START), request.op, offset, request.bytes, request.through);
        }
        Ok(())
    }

    fn hold_updates(&mut self) {
        if let Some(update) = &mut self.work.rate.update {
            update.weeks = f64::INFINITY;
        }
    }

    fn start_update(&mut self) {
        self.work.started += u64::from(self.work.rate.update.is_some());
    }

    fn time(&self) -> Nanos {
        self.sink.now.since(Instant::START)
    }

    fn program_bytes(&self) -> f64 {
        let Work { rate, updates, time_s, .. } = &self.work;
        let images = rate.update.map_or(0, |update| updates * update.bytes);
        time_s / DAY_S * rate.bytes_per_day + images as f64
    }
}
