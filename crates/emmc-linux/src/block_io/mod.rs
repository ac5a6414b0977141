//! A block device or a file of this machine as the target of a bench: direct I/O, in real time.
//!
//! Requests go through io_uring, or through plain calls if it is missing; a single request and a trim always use plain
//! calls. `now` is CLOCK_MONOTONIC. A request's time starts when it is submitted to the kernel and ends when its
//! completion is seen. Written data is random and never repeats, read data is ignored, except in requests with content.
//! Absent on purpose: whether the target may be written (`usage`).

mod calls;
pub(crate) mod clock;
mod crew;
pub(crate) mod data;
pub(crate) mod discard;
mod open;
mod outcome;
mod ranges;
mod saved_content;
mod scratch_file;
mod target_handle;
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64",
        target_arch = "loongarch64",
        target_arch = "powerpc64"
    )),
    path = "no_uring.rs"
)]
mod uring;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_port::{BlockContent, BlockDone, BlockOp, BlockRequest, BlockTarget, TargetError, TargetShape};
use emmc_units::{Instant, Nanos};
use memmap2::MmapMut;

use calls::{Calls, Files};
use clock::Clock;
use crew::Crew;
pub use open::{EngineChoice, OpenError, Opening, open, reserve, writable_bytes};
use outcome::Answer;
pub use saved_content::{Keeper, Saved};
pub use scratch_file::ScratchFile;
pub use target_handle::TargetHandle;
use uring::Uring;

use crate::hold;

/// Most outstanding requests.
const DEPTH_MAX: u32 = 256;
/// Largest request; the kernel's own limit is slightly below twice this. Unit: bytes.
const REQUEST_BYTES_MAX: u64 = 1 << 30;
/// Most queued requests beyond those in progress.
const AHEAD: u32 = 128;
/// Their total size. Unit: bytes.
const AHEAD_BYTES: u64 = 8 << 20;

/// A block device or a file under measurement.
pub struct BlockIo {
    shape: TargetShape,
    files: Files,
    clock: Clock,
    engine: Engine,
    /// For requests that do not go to the engine.
    calls: Calls,
    /// Completed at submission.
    done: VecDeque<Answer>,
    stop: Arc<AtomicBool>,
    is_direct: bool,
    /// Aligned memory of requests with content.
    content: Option<MmapMut>,
}

enum Engine {
    Uring(Box<Uring>),
    Pread {
        /// Not started yet; a single one is performed by this thread.
        waiting: Vec<BlockRequest>,
        crew: Option<Crew>,
    },
}

impl Engine {
    fn outstanding(&self) -> usize {
        match self {
            Self::Uring(uring) => uring.outstanding(),
            Self::Pread { waiting, crew } => waiting.len() + crew.as_ref().map_or(0, Crew::outstanding),
        }
    }
}

impl BlockIo {
    /// Whether requests use direct I/O; the filesystem may not support it.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// The parts of a range that hold content; the rest are holes of a file, which read as zeros. A device has none.
    /// Unit: bytes.
    ///
    /// Errors: the kernel's.
    pub fn content_ranges(&self, from_bytes: u64, to_bytes: u64) -> io::Result<Vec<[u64; 2]>> {
        ranges::with_content(&self.files.file, from_bytes, to_bytes)
    }

    /// Discards a range: `BLKDISCARD`, or a hole in a file. Unit: bytes.
    ///
    /// Errors: the kernel's.
    pub fn discard(&self, offset_bytes: u64, bytes: u64) -> io::Result<()> {
        discard::discard(&self.files, offset_bytes, bytes)
    }

    /// Discards a range with all copies: `BLKSECDISCARD`. Unit: bytes.
    ///
    /// Errors: the kernel's; EOPNOTSUPP for a file.
    pub fn secure_discard(&self, offset_bytes: u64, bytes: u64) -> io::Result<()> {
        discard::secure_discard(&self.files, offset_bytes, bytes)
    }

    /// Makes a range read as zeros: `BLKZEROOUT`, or `fallocate` in a file. Unit: bytes.
    ///
    /// Errors: the kernel's.
    pub fn zero(&self, offset_bytes: u64, bytes: u64) -> io::Result<()> {
        discard::zero(&self.files, offset_bytes, bytes)
    }

    /// Drops what the kernel has in memory of a device that changed below it, and has it read the partition table
    /// again, as far as nobody else uses it.
    pub fn forget_cached(&self) {
        discard::forget_cached(&self.files.file);
    }

    /// A second handle of the same open file, for plain calls of another thread.
    ///
    /// Errors: no memory.
    pub fn another(&self) -> Result<Self, TargetError> {
        let calls = Calls::new(self.files.clone(), data::PAGE_BYTES, 0);
        let calls = calls.map_err(|error| self.broken(format!("memory: {error}")))?;
        Ok(Self {
            shape: TargetShape { engine: "pread", ..self.shape.clone() },
            files: self.files.clone(),
            clock: self.clock,
            engine: Engine::Pread { waiting: Vec::new(), crew: None },
            calls,
            done: VecDeque::new(),
            stop: Arc::clone(&self.stop),
            is_direct: self.is_direct,
            content: None,
        })
    }

    /// The file, for saving and restoring.
    pub(crate) fn file(&self) -> &std::fs::File {
        &self.files.file
    }

    fn outstanding(&self) -> usize {
        self.engine.outstanding() + self.done.len()
    }

    fn failed(&self, request: &BlockRequest, error: &io::Error) -> TargetError {
        outcome::failed(&self.shape.name, request, error)
    }

    fn check(&self, request: &BlockRequest) -> Result<(), TargetError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(TargetError::Failed { name: self.shape.name.clone(), reason: "stopped".into() });
        }
        self.shape.check(request)?;
        let rule = if self.outstanding() >= self.shape.depth_max as usize {
            format!("expected at most {} requests at once", self.shape.depth_max)
        } else if request.bytes > REQUEST_BYTES_MAX && matches!(request.op, BlockOp::Read | BlockOp::Write) {
            format!("expected at most {REQUEST_BYTES_MAX} bytes at once")
        } else {
            return Ok(());
        };
        let BlockRequest { op, offset_bytes, bytes, .. } = *request;
        Err(TargetError::Request { name: self.shape.name.clone(), op, offset_bytes, bytes, rule })
    }

    /// Performs a request now, in this thread.
    fn call(&mut self, request: BlockRequest) -> Result<Answer, TargetError> {
        self.calls.make_room(&request).map_err(|error| self.failed(&request, &error))?;
        let submitted = self.clock.now();
        let result = self.calls.call(&request);
        Ok(Answer { request, submitted, done: self.clock.now(), result })
    }

    fn crew(&mut self) -> Option<&mut Crew> {
        let Engine::Pread { crew, .. } = &mut self.engine else { return None };
        Some(crew.get_or_insert_with(|| Crew::new(self.files.clone(), self.clock, 1)))
    }

    fn wait_for_answer(&mut self) -> Result<Answer, TargetError> {
        if let Some(answer) = self.done.pop_front() {
            return Ok(answer);
        }
        if self.outstanding() == 0 {
            let reason = "waited for a request, and none is outstanding".into();
            return Err(TargetError::Failed { name: self.shape.name.clone(), reason });
        }
        let name = &self.shape.name;
        let broken = |reason: String| TargetError::Failed { name: name.clone(), reason };
        match &mut self.engine {
            Engine::Uring(uring) => uring.next(self.clock).map_err(|error| broken(format!("io_uring: {error}"))),
            Engine::Pread { waiting, crew } => {
                if crew.as_ref().map_or(0, Crew::outstanding) == 0 && waiting.len() == 1 {
                    let request = waiting.remove(0);
                    return self.call(request);
                }
                if !crew.as_ref().is_some_and(Crew::can_wait) {
                    let mut requests = std::mem::take(waiting);
                    let handed = self.crew().map_or(Ok(()), |crew| crew.hand_over(&mut requests));
                    handed.map_err(|error| self.broken(format!("threads: {error}")))?;
                    // The list's memory is reused.
                    if let Engine::Pread { waiting, .. } = &mut self.engine {
                        *waiting = requests;
                    }
                }
                let answer = self.crew().and_then(Crew::next);
                answer.ok_or_else(|| self.broken("threads: ended".into()))
            }
        }
    }

    /// Performs a request with content, in this thread.
    fn exchange(
        &mut self,
        request: BlockRequest,
        call: impl FnOnce(&Calls, &mut [u8]) -> io::Result<usize>,
    ) -> Result<BlockDone, TargetError> {
        self.shape.check(&request)?;
        let bytes = request.bytes as usize;
        let mut memory = match self.content.take().filter(|memory| memory.len() >= bytes) {
            Some(memory) => memory,
            None => data::zeros(bytes).map_err(|error| self.failed(&request, &error))?,
        };
        let submitted = self.clock.now();
        let result = call(&self.calls, &mut memory[..bytes]);
        let answer = Answer { request, submitted, done: self.clock.now(), result };
        self.content = Some(memory);
        outcome::done(&self.shape.name, answer)
    }

    fn broken(&self, reason: String) -> TargetError {
        TargetError::Failed { name: self.shape.name.clone(), reason }
    }
}

impl BlockTarget for BlockIo {
    fn shape(&self) -> &TargetShape {
        &self.shape
    }

    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    fn processor(&mut self) -> Option<Nanos> {
        Some(Clock::processor())
    }

    /// Trims are performed one at a time, and so is a flush with nothing else outstanding: they are complete when this
    /// returns.
    #[inline]
    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
        self.check(&request)?;
        if request.op == BlockOp::Trim || request.op == BlockOp::Flush && self.outstanding() == 0 {
            let answer = self.call(request)?;
            self.done.push_back(answer);
            return Ok(());
        }
        match &mut self.engine {
            Engine::Uring(uring) => uring.push(request).map_err(|error| self.failed(&request, &error)),
            Engine::Pread { waiting, .. } => {
                waiting.push(request);
                Ok(())
            }
        }
    }

    /// Threads take the next request themselves; the ring gets many with one call anyway.
    fn line_up(&mut self, depth: u32, request_bytes: u64) -> u32 {
        let Engine::Pread { waiting, crew } = &mut self.engine else { return 0 };
        if depth == 0 {
            let dropped = waiting.len() + crew.as_mut().map_or(0, Crew::dismiss);
            waiting.clear();
            return dropped as u32;
        }
        let fitting = (AHEAD_BYTES / request_bytes.max(1)).min(u64::from(AHEAD)) as u32;
        let ahead = if depth < 2 { 0 } else { fitting.min(DEPTH_MAX.saturating_sub(depth)) };
        if ahead > 0 {
            let crew = crew.get_or_insert_with(|| Crew::new(self.files.clone(), self.clock, 1));
            crew.line_up(depth as usize, ahead as usize);
        }
        ahead
    }

    #[inline]
    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        let answer = self.wait_for_answer()?;
        if answer.request.op == BlockOp::Write {
            hold::reached(hold::Point::Written, &self.stop);
        }
        outcome::done(&self.shape.name, answer)
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.clock.idle(time, &self.stop);
        Ok(())
    }

    fn content(&mut self) -> Option<&mut dyn BlockContent> {
        Some(self)
    }
}

impl BlockContent for BlockIo {
    fn read_into(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<BlockDone, TargetError> {
        let bytes = into.len() as u64;
        let request = BlockRequest { op: BlockOp::Read, offset_bytes, bytes, through: false, tag: 0 };
        self.exchange(request, |calls, memory| {
            let read = calls.read_into(&request, memory);
            into.copy_from_slice(memory);
            read
        })
    }

    fn write_from(&mut self, offset_bytes: u64, data: &[u8], through: bool) -> Result<BlockDone, TargetError> {
        let request = BlockRequest { op: BlockOp::Write, offset_bytes, bytes: data.len() as u64, through, tag: 0 };
        self.exchange(request, |calls, memory| {
            memory.copy_from_slice(data);
            calls.write_from(&request, memory)
        })
    }
}
