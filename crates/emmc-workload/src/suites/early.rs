//! Passes that end early in a search, which simulates a suite hundreds of times.

use emmc_port::BlockOp;

use crate::drive::order::Order;

/// Which passes end early, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyEnds {
    /// What a pass does before it ends. Unit: bytes.
    pub after_bytes: u64,
    /// Random writes of at least this size end too, beside all reads: those that bypass a card's log. Unit: bytes.
    pub random_writes_bytes: u64,
}

impl EarlyEnds {
    /// Whether a pass of these operations ends early.
    pub(crate) fn ends(&self, op: BlockOp, order: Order, record_bytes: u64) -> bool {
        op == BlockOp::Read || order == Order::Shuffled && record_bytes >= self.random_writes_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_large_random_writes_end_early() {
        let early = EarlyEnds { after_bytes: 1 << 20, random_writes_bytes: 32 << 10 };
        let ends = |op, order, kib: u64| early.ends(op, order, kib << 10);
        assert!(ends(BlockOp::Read, Order::Sequential, 1) && ends(BlockOp::Read, Order::Shuffled, 1));
        assert!(ends(BlockOp::Write, Order::Shuffled, 32));
        assert!(!ends(BlockOp::Write, Order::Shuffled, 16), "it stays in the log");
        assert!(!ends(BlockOp::Write, Order::Sequential, 1024), "the file has to be written");
    }
}
