//! What a benchmark or a probe works on: requests go in, completions come out, and the target owns the clock.
//!
//! The same code so runs against a device in real time and against a virtual card in simulated time. Absent on purpose:
//! content (a target that holds data writes some of its own that does not compress), files and folders, and safety: who
//! opens a target has made sure that it may be written.

use emmc_units::{Instant, Nanos};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Give content up, so that it reads as erased: TRIM, `BLKDISCARD`, a hole in a file.
    Trim,
    /// Bring everything that was written to where a power cut leaves it.
    Flush,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// What is asked for.
    pub op: BlockOp,
    /// Where; ignored by a flush. Unit: bytes, a multiple of the target's sector.
    pub offset_bytes: u64,
    /// How much; 0 for a flush. Unit: bytes, a multiple of the target's sector.
    pub bytes: u64,
    /// A write is done when a power cut leaves it: `O_DSYNC`, FUA.
    pub through: bool,
    /// Comes back with the completion.
    pub tag: u64,
}

/// A request that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDone {
    /// The request.
    pub request: BlockRequest,
    /// When it was handed over.
    pub submitted: Instant,
    /// When it was done.
    pub done: Instant,
    /// What went wrong with it alone, e.g. an uncorrectable read.
    pub error: Option<String>,
}

impl BlockDone {
    /// How long it took.
    pub fn latency(&self) -> Nanos {
        self.done.since(self.submitted)
    }
}

/// What kind of thing a target is.
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

/// What a target is and can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetShape {
    /// What the user called it.
    pub name: String,
    /// What it is.
    pub kind: TargetKind,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// What offsets and lengths are multiples of. Unit: bytes.
    pub sector_bytes: u32,
    /// Most requests that may be outstanding.
    pub depth_max: u32,
    /// Whether it can be trimmed.
    pub can_trim: bool,
    /// How requests are handed over, e.g. `io_uring`, `pread`, `simulated`.
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

/// Why a target cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A request that the target can never do; the caller's mistake.
    #[error("{name}: {op:?} of {bytes} bytes at byte {offset_bytes}: {rule}")]
    Request {
        /// The target.
        name: String,
        /// What was asked for.
        op: BlockOp,
        /// Where.
        offset_bytes: u64,
        /// How much.
        bytes: u64,
        /// What it must be.
        rule: String,
    },
    /// The target takes no more writes: a worn-out card.
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
        /// What the system or the card said.
        reason: String,
    },
}

/// Something with sectors that can be read, written and timed.
pub trait BlockTarget {
    /// What it is and can.
    fn shape(&self) -> &TargetShape;

    /// The target's time.
    fn now(&mut self) -> Instant;

    /// Hands a request over and returns at once, as far as the target can.
    ///
    /// Errors: a request outside the target or not of whole sectors; more outstanding than [`TargetShape::depth_max`].
    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError>;

    /// How many requests of so many bytes the target likes to have at hand beside the `depth` that are to be under way from now
    /// on: it begins them itself as others end, and their time begins then. 0 where that gains nothing, and everything that is
    /// handed over begins at once.
    ///
    /// Depth 0 puts an end to it: what has not begun never will, and the answer is how many that were.
    fn line_up(&mut self, _depth: u32, _request_bytes: u64) -> u32 {
        0
    }

    /// Waits for the next request that is done; of those outstanding, the one that is done first.
    ///
    /// Errors: nothing is outstanding; the target cannot go on.
    fn wait(&mut self) -> Result<BlockDone, TargetError>;

    /// Does nothing for a while; nothing is outstanding.
    ///
    /// Errors: the target cannot go on.
    fn idle(&mut self, time: Nanos) -> Result<(), TargetError>;

    /// How full and how used it is, where it knows that of itself; a real card does not tell.
    fn fill(&self) -> Option<TargetFill> {
        None
    }

    /// Requests of this kind go through the host's page cache from now on, or past it, as at the beginning; answers whether the
    /// target has one that they can go through. Where it takes requests of every kind, all of them change.
    fn through_page_cache(&mut self, _op: BlockOp, _yes: bool) -> bool {
        false
    }
}

/// A target in simulated time, which a host can be put above.
pub trait SimulatedTarget: BlockTarget {
    /// When a request that is handed over at `at` is done, and what went wrong with it alone.
    ///
    /// Shape: calls come in the order of `at`, and not between a submission and its completion.
    /// Errors: as [`BlockTarget::submit`].
    fn serve(&mut self, request: &BlockRequest, at: Instant) -> Result<(Instant, Option<String>), TargetError>;

    /// Background work while nothing is asked for, until `until`; answers when the target is ready again.
    ///
    /// Errors: the target cannot go on.
    fn rest(&mut self, from: Instant, until: Instant) -> Result<Instant, TargetError>;
}

impl TargetShape {
    /// Whether the target can do a request at all.
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
    fn requests_are_whole_sectors_inside() {
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
