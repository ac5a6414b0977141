use emmc_units::{Bytes, Instant, Nanos, SECTOR_BYTES};

/// What the host asks of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardOp {
    /// Read.
    Read,
    /// Write; the card's cache may keep it.
    Write,
    /// Write that is in flash when it is done (FUA: a reliable write past the cache).
    WriteThrough,
    /// Bring the cache to flash.
    Flush,
}

/// One request to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardRequest {
    /// What is asked for.
    pub op: CardOp,
    /// Where. Unit: sectors of 512 bytes; 0 for a flush.
    pub lba: u64,
    /// How much. Unit: sectors of 512 bytes; 0 for a flush.
    pub sectors: u64,
    /// When it is handed over; never before an earlier request was done.
    pub now: Instant,
}

/// A card that takes the same time for the same size: a published hardware time, made a card.
///
/// Between a page and a chunk the time is a straight line; beyond it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantCard {
    /// What the chunk is.
    pub chunk: Bytes,
    /// A chunk's time.
    pub chunk_time: Nanos,
    /// The time of 4 KiB.
    pub page_time: Nanos,
    /// What a flush, and a write past the cache, take on top: one program of the flash.
    pub program: Nanos,
}

impl ConstantCard {
    /// 4 KiB, the other end of the line.
    const PAGE: Bytes = Bytes(4 << 10);

    /// When the request is done.
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
