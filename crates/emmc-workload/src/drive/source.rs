//! Sources of requests: a pattern over the blocks of a range, or a list of offsets.

use emmc_port::{BlockOp, BlockRequest};
use emmc_units::{Nanos, Rng};

use super::TWO_TO_64;
use super::blocks_in_use::BlocksInUse;
use super::order::Positions;

/// A request before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) op: BlockOp,
    pub(crate) offset_bytes: u64,
    pub(crate) bytes: u64,
    /// A durable write.
    pub(crate) through: bool,
    /// The old content of a trimmed range may come back.
    pub(crate) discard: bool,
    /// When it is made, counted from the start; absent: as soon as there is space.
    pub(crate) due: Option<Nanos>,
}

impl Planned {
    /// The request, with a number.
    #[inline]
    pub(crate) fn request(&self, tag: u64) -> BlockRequest {
        let Self { op, offset_bytes, bytes, through, .. } = *self;
        BlockRequest { op, offset_bytes, bytes, through, tag }
    }
}

/// A source of requests.
pub(crate) trait Source {
    /// Whether its requests may have times, or may be flushes.
    const IS_RECORDED: bool;

    /// The next request, if there is one.
    fn next(&mut self) -> Option<Planned>;

    /// Whether another request follows.
    fn has_more(&self) -> bool;

    /// Where the next requests read, as far as that is known. Returns how many of `offsets` are set. Unit: bytes.
    fn reads_ahead(&self, _offsets: &mut [u64]) -> usize {
        0
    }

    /// How much of it is done, 0 to 1.
    fn done_share(&self) -> f64;
}

/// Part of a target, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Its start. Unit: bytes.
    pub(crate) from_bytes: u64,
    /// Its size. Unit: bytes.
    pub(crate) bytes: u64,
    /// Size of a request. Unit: bytes.
    pub(crate) block_bytes: u64,
}

impl Span {
    /// Whole blocks that fit in.
    pub(crate) fn blocks(&self) -> u64 {
        self.bytes / self.block_bytes
    }

    /// Offset and size of a block: smaller at the end of the range.
    #[inline]
    pub(crate) fn block(&self, block: u64) -> (u64, u64) {
        let within = block * self.block_bytes;
        (self.from_bytes + within, self.block_bytes.min(self.bytes - within))
    }
}

/// The positions of a pattern.
#[derive(Clone, Debug)]
pub(crate) enum Places<'a> {
    /// Blocks of the range in an order.
    Ordered(Positions),
    /// Random blocks, and trims of blocks in use.
    InUse(Box<BlocksInUse>),
    /// Offsets from the start of the target.
    Listed(std::slice::Iter<'a, u64>),
}

/// Requests of one size after a pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern<'a> {
    pub(crate) places: Places<'a>,
    pub(crate) span: Span,
    /// What requests that are not reads do.
    pub(crate) op: BlockOp,
    /// Share of reads, of 2^64.
    pub(crate) reads: u64,
    /// Writes are durable.
    pub(crate) through: bool,
    /// Trims are discards.
    pub(crate) discard: bool,
    /// For positions, and for the choice of reads if they have no own.
    pub(crate) rng: Rng,
    pub(crate) mix: Option<Rng>,
    /// Bytes still to do, and in all.
    pub(crate) left: u64,
    pub(crate) all: u64,
}

impl Pattern<'_> {
    #[inline]
    fn op(&mut self) -> BlockOp {
        let is_read = self.reads > 0 && self.mix.as_mut().unwrap_or(&mut self.rng).next_u64() < self.reads;
        if is_read { BlockOp::Read } else { self.op }
    }
}

/// A share as a threshold of random numbers.
pub(crate) fn threshold(share: f64) -> u64 {
    (share * TWO_TO_64) as u64
}

impl Source for Pattern<'_> {
    const IS_RECORDED: bool = false;

    #[inline(always)]
    fn next(&mut self) -> Option<Planned> {
        if self.left == 0 {
            return None;
        }
        let (op, (offset_bytes, bytes)) = match &mut self.places {
            Places::Ordered(positions) => {
                let block = positions.take(&mut self.rng);
                (self.op(), self.span.block(block))
            }
            Places::InUse(in_use) => {
                let (is_trim, block) = in_use.next(&mut self.rng);
                (if is_trim { BlockOp::Trim } else { self.op }, self.span.block(block))
            }
            Places::Listed(offsets) => {
                let offset = *offsets.next()?;
                (self.op(), (offset, self.span.block_bytes))
            }
        };
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        let through = self.through && op == BlockOp::Write;
        Some(Planned { op, offset_bytes, bytes, through, discard: self.discard, due: None })
    }

    #[inline]
    fn has_more(&self) -> bool {
        self.left > 0
    }

    /// Random reads only: others are near each other, or their numbers cost too much to draw twice.
    fn reads_ahead(&self, offsets: &mut [u64]) -> usize {
        let (Places::Ordered(Positions::Random(blocks)), BlockOp::Read, 0) = (&self.places, self.op, self.reads) else {
            return 0;
        };
        let mut rng = self.rng.clone();
        offsets.iter_mut().for_each(|offset| *offset = self.span.block(rng.below(*blocks)).0);
        offsets.len()
    }

    fn done_share(&self) -> f64 {
        if self.all == 0 { 1.0 } else { 1.0 - self.left as f64 / self.all as f64 }
    }
}
