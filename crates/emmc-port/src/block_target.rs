//! Block targets of benchmarks and probes: they accept requests and return completions, and the target owns the clock.
//!
//! So the same code runs against a device in real time and against a virtual card in simulated time. A request has no
//! content: a target with data writes its own, which cannot be compressed; [`BlockContent`] is for what must be read
//! back.
//! Absent on purpose: files and folders, and safety: the code that opens a target makes sure that it may be written.

use emmc_units::{Instant, Nanos};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Deallocate, so that the range reads as erased: TRIM, `BLKDISCARD`, a hole in a file.
    Trim,
    /// Flush: make all written data durable.
    Flush,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// Its kind.
    pub op: BlockOp,
    /// Its offset; ignored by a flush. Unit: bytes, a multiple of the target's sector.
    pub offset_bytes: u64,
    /// Its length; 0 for a flush. Unit: bytes, a multiple of the target's sector.
    pub bytes: u64,
    /// The write completes only when it is durable: `O_DSYNC`, FUA.
    pub through: bool,
    /// Returned with the completion.
    pub tag: u64,
}

/// A completed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDone {
    /// The request.
    pub request: BlockRequest,
    /// When it was submitted.
    pub submitted: Instant,
    /// When it completed.
    pub done: Instant,
    /// The error of this request alone, e.g. an uncorrectable read.
    pub error: Option<String>,
}

impl BlockDone {
    /// How long it took.
    pub fn latency(&self) -> Nanos {
        self.done.since(self.submitted)
    }
}

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TargetKind {
    /// A block device of this machine.
    Device,
    /// A file of this machine.
    File,
    /// A virtual card in simulated time.
    Simulated,
}

/// The properties of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetShape {
    /// The name that the user gave.
    pub name: String,
    /// Its kind.
    pub kind: TargetKind,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// Offsets and lengths are multiples of this. Unit: bytes.
    pub sector_bytes: u32,
    /// The maximum number of outstanding requests.
    pub depth_max: u32,
    /// Whether it supports trim.
    pub can_trim: bool,
    /// How requests are submitted, e.g. `io_uring`, `pread`, `simulated`.
    pub engine: &'static str,
}

/// How full and how used a target is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetFill {
    /// The share of its units that hold data in flash; the others were never written or were trimmed.
    pub holds_share: f64,
    /// The share of its good blocks that were erased at least once.
    pub erased_share: f64,
}

/// Why a target failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A request that the target does not support: an error of the caller.
    #[error("{name}: {op:?} of {bytes} bytes at byte {offset_bytes}: {rule}")]
    Request {
        /// The target.
        name: String,
        /// The kind of the request.
        op: BlockOp,
        /// Where.
        offset_bytes: u64,
        /// How much.
        bytes: u64,
        /// The expected request.
        rule: String,
    },
    /// The target accepts no more writes: a worn-out card.
    #[error("{name}: worn out: it takes no more writes")]
    WornOut {
        /// The target.
        name: String,
    },
    /// Anything else that ends the work.
    #[error("{name}: {reason}")]
    Failed {
        /// The target.
        name: String,
        /// The error of the system or the card.
        reason: String,
    },
}

/// A target with sectors that can be read, written and timed.
pub trait BlockTarget {
    /// Its properties.
    fn shape(&self) -> &TargetShape;

    /// The target's time.
    fn now(&mut self) -> Instant;

    /// Submits a request and returns immediately, as far as the target supports it.
    ///
    /// Errors: a request outside the target or not of whole sectors; more outstanding than [`TargetShape::depth_max`].
    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError>;

    /// The number of requests of this many bytes that the target wants queued in addition to the `depth` that are to be
    /// in progress from now on. It starts them itself as others end, and their time begins then. 0 if that gains
    /// nothing: then every submitted request starts immediately.
    ///
    /// Depth 0 ends this: requests that have not started are dropped, and their number is returned.
    fn line_up(&mut self, _depth: u32, _request_bytes: u64) -> u32 {
        0
    }

    /// Waits for the next completion: of the outstanding requests, the first that completes.
    ///
    /// Errors: nothing is outstanding; the target cannot continue.
    fn wait(&mut self) -> Result<BlockDone, TargetError>;

    /// Waits for the next completion, at most until an instant: nothing if none comes until it. A target that cannot
    /// stop waiting returns the completion.
    ///
    /// Errors: as [`BlockTarget::wait`].
    fn wait_until(&mut self, _until: Instant) -> Result<Option<BlockDone>, TargetError> {
        self.wait().map(Some)
    }

    /// The places that requests will read soon. Without effect on results: a simulation fetches what it needs to know
    /// about them into the processor's cache. Unit: bytes.
    fn foresee_reads(&mut self, _offsets_bytes: &[u64]) {}

    /// Submits a request while nothing is outstanding, and waits for its completion.
    ///
    /// Errors: as [`BlockTarget::submit`] and [`BlockTarget::wait`].
    fn complete(&mut self, request: BlockRequest) -> Result<BlockDone, TargetError> {
        self.submit(request)?;
        self.wait()
    }

    /// Stays idle for a duration; nothing is outstanding.
    ///
    /// Errors: the target cannot continue.
    fn idle(&mut self, time: Nanos) -> Result<(), TargetError>;

    /// Requests with content; none if the target stores no data.
    fn content(&mut self) -> Option<&mut dyn BlockContent> {
        None
    }

    /// How full and how used it is, if the target knows; a real card does not report it.
    fn fill(&self) -> Option<TargetFill> {
        None
    }

    /// A host in front of the target begins its file again: what lies there is allocated again as it is written. The
    /// target keeps its content, as a card does whose file system is mounted without `discard`.
    fn begin_file(&mut self, _from_bytes: u64) {}

    /// Whether the kernel sends flushes and FUA: the target has a volatile cache that it can be told to flush. Without
    /// one the block layer completes a flush at once, and FUA changes nothing.
    fn takes_flushes(&self) -> bool {
        true
    }

    /// Switches requests of this kind to the host's page cache, or back to direct I/O, which is the default. Returns
    /// whether the target has a page cache for them. If one cache serves all kinds, all of them change.
    fn through_page_cache(&mut self, _op: BlockOp, _yes: bool) -> bool {
        false
    }

    /// The time that processors have spent on this program so far, its calls of the kernel included; absent if the
    /// target has none.
    fn processor(&mut self) -> Option<Nanos> {
        None
    }
}

/// Requests with content, one at a time, while nothing else is outstanding. They work after a stop too, so that saved
/// content can be restored.
pub trait BlockContent {
    /// Reads; `into` holds what was read, if the completion has no error.
    ///
    /// Errors: as [`BlockTarget::submit`] and [`BlockTarget::wait`].
    fn read_into(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<BlockDone, TargetError>;

    /// Writes `data`; `through` as in [`BlockRequest::through`].
    ///
    /// Errors: as [`BlockTarget::submit`] and [`BlockTarget::wait`].
    fn write_from(&mut self, offset_bytes: u64, data: &[u8], through: bool) -> Result<BlockDone, TargetError>;
}

/// A target in simulated time, on which a host model can be stacked.
pub trait SimulatedTarget: BlockTarget {
    /// The completion time of a request submitted at `at`, and the error of this request alone.
    ///
    /// Shape: calls come in the order of `at`, and not between a submission and its completion.
    /// Errors: as [`BlockTarget::submit`].
    fn serve(&mut self, request: &BlockRequest, at: Instant) -> Result<(Instant, Option<String>), TargetError>;

    /// Whether outstanding requests may overtake each other, so that a host should use [`SimulatedTarget::submit_at`]
    /// for those that it has outstanding at the same time.
    fn reorders(&self) -> bool {
        false
    }

    /// As [`BlockTarget::submit`], at an instant that is not before that of the last submission.
    ///
    /// Errors: as [`BlockTarget::submit`].
    fn submit_at(&mut self, request: BlockRequest, at: Instant) -> Result<(), TargetError>;

    /// Background work while idle, until `until`; returns when the target is ready again.
    ///
    /// Errors: the target cannot continue.
    fn rest(&mut self, from: Instant, until: Instant) -> Result<Instant, TargetError>;
}

impl TargetShape {
    /// Checks that the target supports a request.
    ///
    /// Errors: [`TargetError::Request`].
    pub fn check(&self, request: &BlockRequest) -> Result<(), TargetError> {
        let refuse = |rule: String| {
            Err(TargetError::Request {
                name: self.name.clone(),
                op: request.op,
                offset_bytes: request.offset_bytes,
                bytes: request.bytes,
                rule,
            })
        };
        if request.op == BlockOp::Flush {
            return Ok(());
        }
        let sector = u64::from(self.sector_bytes.max(1));
        if request.bytes == 0 || request.bytes % sector != 0 || request.offset_bytes % sector != 0 {
            return refuse(format!("expected whole sectors of {sector} bytes"));
        }
        match request.offset_bytes.checked_add(request.bytes) {
            Some(end) if end <= self.size_bytes => Ok(()),
            _ => refuse(format!("expected an end at or before {} bytes", self.size_bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_whole_sectors_inside_the_target() {
        let shape = TargetShape {
            name: "t".into(),
            kind: TargetKind::File,
            size_bytes: 4096,
            sector_bytes: 512,
            depth_max: 1,
            can_trim: true,
            engine: "pread",
        };
        let check = |op, offset_bytes, bytes| {
            shape.check(&BlockRequest { op, offset_bytes, bytes, through: false, tag: 0 }).is_ok()
        };
        assert!(check(BlockOp::Read, 0, 4096) && check(BlockOp::Write, 3584, 512) && check(BlockOp::Flush, 1, 1));
        for (offset, bytes) in [(0, 0), (1, 512), (0, 511), (4096, 512), (3584, 1024), (u64::MAX - 511, 512)] {
            assert!(!check(BlockOp::Read, offset, bytes), "{offset} {bytes}");
        }
    }
}
