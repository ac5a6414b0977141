//! A virtual card's user area as the target of a benchmark, in simulated time.
//!
//! Outstanding requests share the card's queue: as many in parallel as it has slots, one without a command queue; the
//! rest wait in the host. Absent on purpose: the host's own cost (`emmc-host`).

mod serve;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use emmc_port::{
    BlockDone, BlockOp, BlockRequest, BlockTarget, SimulatedTarget, TargetError, TargetFill, TargetKind, TargetShape,
};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;
use emmc_units::{Agenda, Instant, Nanos, SECTOR_BYTES};

use crate::device::{Area, Device, StorageError, WriteFlags};
use crate::ftl::{FtlError, TrimKind};

/// The largest command of a host; larger requests are several commands in sequence.
///
/// Source: `max_req_size` in the kernel's sdhci.c. Unit: bytes.
const COMMAND_BYTES: u64 = 512 << 10;
/// Most requests that a host may have outstanding, the default of Linux' block layer.
const DEPTH_MAX: u32 = 256;

/// A powered virtual card that stores no data, or stores data and is written with zeros.
#[derive(Debug)]
pub struct SimTarget {
    device: Device,
    shape: TargetShape,
    now: Instant,
    /// Parallel requests in the card.
    slots: usize,
    /// When the used slots of the card become free.
    taken: BinaryHeap<Reverse<Instant>>,
    /// Outstanding requests, the first to complete on top.
    outstanding: Agenda<Outstanding>,
    payload: Vec<u8>,
}

#[derive(Debug)]
struct Outstanding {
    submitted: Instant,
    request: BlockRequest,
    error: Option<String>,
}

impl SimTarget {
    /// A card at the time `now`, under the user's name for it; with or without command queueing. Its cache is switched
    /// on, if it has one, as in Linux; [`Device::set_cache`] switches it off.
    pub fn new(mut device: Device, name: &str, now: Instant, queueing: bool) -> Self {
        // Only switching off does work that can fail.
        let has_cache = device.set_cache(true, now).unwrap_or(false);
        if has_cache && device.profile().kind == CardKind::Emmc {
            device.registers_mut().ext_csd[reg::CACHE_CTRL] = 1;
        }
        let shape = TargetShape {
            name: name.into(),
            kind: TargetKind::Simulated,
            size_bytes: device.sectors(Area::User) * SECTOR_BYTES,
            sector_bytes: SECTOR_BYTES as u32,
            depth_max: DEPTH_MAX,
            can_trim: true,
            engine: "simulated",
        };
        let slots = if queueing { usize::from(device.profile().controller.queue_depth).max(1) } else { 1 };
        let (taken, outstanding) = (BinaryHeap::new(), Agenda::new());
        Self { device, shape, now, slots, taken, outstanding, payload: Vec::new() }
    }

    /// Whether the card can process several requests in parallel.
    pub fn queues(&self) -> bool {
        self.slots > 1
    }

    /// The card, for inspection.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The card, for changes between requests.
    pub fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    /// When the card can start a request that is submitted now.
    fn start(&mut self) -> Instant {
        let mut start = self.now;
        while self.taken.peek().is_some_and(|Reverse(end)| *end <= start) {
            self.taken.pop();
        }
        while self.taken.len() >= self.slots {
            let Some(Reverse(end)) = self.taken.pop() else { break };
            start = start.max(end);
        }
        start
    }

    /// Returns when all commands of a request are done.
    fn hand_over(&mut self, request: &BlockRequest, now: Instant) -> Result<Instant, StorageError> {
        if request.bytes <= COMMAND_BYTES || matches!(request.op, BlockOp::Trim | BlockOp::Flush) {
            return self.command(request, now);
        }
        let (mut at, mut left) = (now, *request);
        while left.bytes > 0 {
            let bytes = left.bytes.min(COMMAND_BYTES);
            at = self.command(&BlockRequest { bytes, ..left }, at)?;
            left.offset_bytes += bytes;
            left.bytes -= bytes;
        }
        Ok(at)
    }

    fn command(&mut self, request: &BlockRequest, now: Instant) -> Result<Instant, StorageError> {
        let (area, lba, sectors) = (Area::User, request.offset_bytes / SECTOR_BYTES, request.bytes / SECTOR_BYTES);
        let flags = WriteFlags { reliable: false, force: request.through };
        let keeps = self.device.keeps_data() && matches!(request.op, BlockOp::Read | BlockOp::Write);
        if keeps {
            self.payload.resize(request.bytes as usize, 0);
        }
        let payload = keeps.then_some(&mut self.payload[..]);
        let done = match request.op {
            BlockOp::Read => self.device.read(area, lba, sectors as u32, payload, now)?,
            BlockOp::Write => self.device.write(area, lba, sectors as u32, flags, payload.as_deref(), now)?,
            BlockOp::Trim => self.device.trim(area, lba, sectors, TrimKind::Discard, now)?,
            BlockOp::Flush => self.device.flush(now)?,
        };
        Ok(done.done)
    }

    /// When the card completes a request that starts at `start`, and its own error, if any.
    fn outcome(&mut self, request: &BlockRequest, start: Instant) -> Result<(Instant, Option<String>), TargetError> {
        match self.hand_over(request, start) {
            Ok(done) => Ok((done, None)),
            Err(StorageError::Ftl(FtlError::WornOut)) => Err(TargetError::WornOut { name: self.shape.name.clone() }),
            Err(error @ StorageError::Ftl(FtlError::Uncorrectable { .. })) => Ok((start, Some(error.to_string()))),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, reason: impl ToString) -> TargetError {
        TargetError::Failed { name: self.shape.name.clone(), reason: reason.to_string() }
    }
}

impl BlockTarget for SimTarget {
    fn shape(&self) -> &TargetShape {
        &self.shape
    }

    fn now(&mut self) -> Instant {
        self.now
    }

    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
        self.shape.check(&request)?;
        if self.outstanding.len() >= DEPTH_MAX as usize {
            return Err(self.failed(format!("more than {DEPTH_MAX} requests outstanding")));
        }
        let (submitted, start) = (self.now, self.start());
        let (done, error) = self.outcome(&request, start)?;
        self.taken.push(Reverse(done));
        self.outstanding.push(done, Outstanding { submitted, request, error });
        Ok(())
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        let Some((done, Outstanding { submitted, request, error })) = self.outstanding.pop() else {
            return Err(self.failed("nothing is outstanding"));
        };
        self.now = self.now.max(done);
        Ok(BlockDone { request, submitted, done, error })
    }

    fn fill(&self) -> Option<TargetFill> {
        Some(self.device.fullness())
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        let until = self.now + time;
        self.now = until.max(self.rest(self.now, until)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceOptions;
    use crate::nand::StoredContent;
    use crate::profile::shipped;

    fn target(profile: &str, queueing: bool) -> SimTarget {
        let profile = shipped::named(profile).unwrap();
        let device = Device::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
        SimTarget::new(device, "sim:test", Instant::START, queueing)
    }

    fn request(op: BlockOp, offset_bytes: u64, bytes: u64, tag: u64) -> BlockRequest {
        BlockRequest { op, offset_bytes, bytes, through: false, tag }
    }

    /// Reads 64 blocks, `depth` at a time; returns the duration.
    fn reads(target: &mut SimTarget, depth: u64) -> Nanos {
        let began = target.now();
        for tag in 0..64 {
            if tag >= depth {
                target.wait().unwrap();
            }
            target.submit(request(BlockOp::Read, tag * (1 << 20), 4096, tag)).unwrap();
        }
        while target.wait().is_ok() {}
        target.now().since(began)
    }

    #[test]
    fn a_queue_runs_dies_in_parallel() {
        let [queued, one_by_one] = [true, false].map(|queueing| {
            let mut target = target("odroid-64g", queueing);
            for tag in 0..64 {
                target.submit(request(BlockOp::Write, tag * (1 << 20), 4096, tag)).unwrap();
                target.wait().unwrap();
            }
            target.submit(request(BlockOp::Flush, 0, 0, 0)).unwrap();
            target.wait().unwrap();
            (reads(&mut target, 1), reads(&mut target, 16))
        });
        // Flash times vary by some percent; without a queue that is the only difference.
        let alike = |left: Nanos, right: Nanos| (left.0 as f64 / right.0 as f64 - 1.0).abs() < 0.02;
        assert!(alike(queued.0, one_by_one.0) && alike(one_by_one.1, one_by_one.0), "{queued:?} {one_by_one:?}");
        assert!(queued.1.0 * 3 < queued.0.0 * 2, "{} against {}", queued.1, queued.0);
    }

    #[test]
    fn a_present_cache_is_enabled_also_in_the_registers() {
        for (name, has_cache) in [("odroid-64g", true), ("friendlyelec-emmc-8g", false)] {
            let target = target(name, true);
            assert_eq!(target.device().registers().ext_csd[reg::CACHE_CTRL], u8::from(has_cache), "{name}");
        }
    }

    #[test]
    fn a_large_request_is_split_as_linux_splits_it() {
        let mut target = target("generic-8g", true);
        let mut took = |bytes: u64| {
            let before = target.now();
            for at in (0..4u64 << 20).step_by(bytes as usize) {
                target.submit(request(BlockOp::Read, at, bytes, 0)).unwrap();
                target.wait().unwrap();
            }
            target.now().since(before)
        };
        assert_eq!(took(4 << 20), took(512 << 10));
    }

    /// Counted unit by unit, over layers with a map, with a log before it, and with segments.
    #[test]
    fn the_mapped_share_is_exact() {
        for name in ["generic-8g", "jetson-tx1-8g", "toshiba-7au"] {
            let mut target = target(name, false);
            let empty = target.fill().unwrap();
            assert_eq!((empty.holds_share, empty.erased_share), (0.0, 0.0), "{name}");
            let mut work = |op, from_mib: u64, mib: u64| {
                for at in from_mib * 4..(from_mib + mib) * 4 {
                    target.submit(request(op, at * (256 << 10), 256 << 10, at)).unwrap();
                    target.wait().unwrap();
                }
                target.submit(request(BlockOp::Flush, 0, 0, 0)).unwrap();
                target.wait().unwrap();
            };
            work(BlockOp::Write, 8, 64);
            work(BlockOp::Write, 16, 8);
            work(BlockOp::Trim, 20, 16);
            let sectors = target.device.sectors(Area::User);
            let held = (0..sectors).step_by(8).filter(|lba| target.device.is_mapped(Area::User, *lba)).count();
            let counted = target.fill().unwrap().holds_share * (sectors / 8) as f64;
            assert!(held > 0 && (counted - held as f64).abs() < 0.5, "{name}: {counted} of {held}");
        }
    }

    #[test]
    fn invalid_requests_are_refused() {
        let mut target = target("generic-8g", true);
        let size = target.shape().size_bytes;
        assert!(matches!(target.submit(request(BlockOp::Read, size, 512, 0)), Err(TargetError::Request { .. })));
        assert!(matches!(target.wait(), Err(TargetError::Failed { .. })));
        let before = target.now();
        target.idle(Nanos::from_secs(3)).unwrap();
        assert_eq!(target.now(), before + Nanos::from_secs(3));
    }
}
