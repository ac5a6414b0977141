use emmc_units::{Bytes, Instant, Nanos, SECTOR_BYTES};

/// Operations of the host on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardOp {
    /// Read.
    Read,
    /// Write; the data may stay in the card's cache.
    Write,
    /// Write with FUA: durable when it completes (a reliable write that bypasses the cache).
    WriteThrough,
    /// Flush the cache.
    Flush,
}

/// One request to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardRequest {
    /// The operation.
    pub op: CardOp,
    /// Start. Unit: sectors of 512 bytes; 0 for a flush.
    pub lba: u64,
    /// Length. Unit: sectors of 512 bytes; 0 for a flush.
    pub sectors: u64,
    /// Submission time; never before an earlier request has completed.
    pub now: Instant,
}

/// A card with constant times per size: a published hardware time as a card.
///
/// Linear between a page and a chunk, and beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantCard {
    /// What the chunk is.
    pub chunk: Bytes,
    /// A chunk's time.
    pub chunk_time: Nanos,
    /// The time of 4 KiB.
    pub page_time: Nanos,
    /// Additional time of a flush and of a write that bypasses the cache: one flash program.
    pub program: Nanos,
}

impl ConstantCard {
    /// 4 KiB, the other end of the line.
    const PAGE: Bytes = Bytes(4 << 10);

    /// The completion time of a request.
    pub fn serve(&self, request: CardRequest) -> Instant {
        let transfer = self.transfer(request.sectors.saturating_mul(SECTOR_BYTES));
        request.now
            + match request.op {
                CardOp::Read | CardOp::Write => transfer,
                CardOp::WriteThrough => transfer + self.program,
                CardOp::Flush => self.program,
            }
    }

    fn transfer(&self, bytes: u64) -> Nanos {
        let (page, width) = (Self::PAGE.0 as f64, self.chunk.0 as f64 - Self::PAGE.0 as f64);
        if width <= 0.0 {
            return Nanos((self.chunk_time.0 as f64 * bytes as f64 / self.chunk.0.max(1) as f64) as u64);
        }
        let slope = (self.chunk_time.0 as f64 - self.page_time.0 as f64) / width;
        Nanos((self.page_time.0 as f64 + slope * (bytes as f64 - page)).max(0.0).round() as u64)
    }
}
