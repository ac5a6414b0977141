//! Running sums of the host's and the flash's work.

use emmc_port::{BlockOp, CardCounters};

use crate::drive::measured::Measured;

/// Running sums; the difference of two covers the time between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Requests completed.
    pub(super) requests: u64,
    /// Bytes that the host wrote.
    pub(super) written_bytes: u64,
    /// Bytes that the host read.
    pub(super) read_bytes: u64,
    /// Bytes that the host trimmed.
    pub(super) trimmed_bytes: u64,
    /// The card's counters.
    pub(super) card: CardCounters,
}

impl Sums {
    /// With the card's counters of now.
    pub(super) fn with(self, card: CardCounters) -> Self {
        Self { card, ..self }
    }

    /// The host's part of what was measured.
    pub(super) fn of(measured: &Measured) -> Self {
        Self {
            requests: measured.requests + measured.latencies(BlockOp::Flush).count(),
            written_bytes: measured.written_bytes,
            read_bytes: measured.read_bytes,
            trimmed_bytes: measured.trimmed_bytes,
            card: CardCounters::default(),
        }
    }

    fn each(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        let (own, card) = (&self.card, &other.card);
        Self {
            requests: of(self.requests, other.requests),
            written_bytes: of(self.written_bytes, other.written_bytes),
            read_bytes: of(self.read_bytes, other.read_bytes),
            trimmed_bytes: of(self.trimmed_bytes, other.trimmed_bytes),
            card: CardCounters {
                programs: of(own.programs, card.programs),
                erases: of(own.erases, card.erases),
                copied_units: of(own.copied_units, card.copied_units),
                stalls: of(own.stalls, card.stalls),
            },
        }
    }

    /// The difference from `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        // A layer that rebuilds itself after a power cut resets its counters.
        self.each(earlier, u64::saturating_sub)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        self.each(other, |one, other| one + other)
    }

    /// Units' worth of data that the host wrote, the last one rounded up.
    pub(super) fn host_writes(&self, unit_bytes: u64) -> u64 {
        self.written_bytes.div_ceil(unit_bytes)
    }

    pub(super) fn write_amplification(&self, unit_bytes: u64) -> Option<f64> {
        let host_writes = self.host_writes(unit_bytes);
        (host_writes > 0).then(|| self.card.programs as f64 / host_writes as f64)
    }
}
