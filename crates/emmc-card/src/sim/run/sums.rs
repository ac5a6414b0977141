use crate::device::Device;

/// Running sums of host and flash work; the difference of two covers the time between them.
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
    /// Units programmed.
    pub(super) nand_programs: u64,
    /// Blocks erased.
    pub(super) erases: u64,
    /// Times that the host waited for a collection, a fold or a merge.
    pub(super) stalls: u64,
}

impl Sums {
    /// Adds the flash's counters.
    pub(super) fn with(mut self, device: &Device) -> Self {
        let counters = device.nand().counters();
        self.nand_programs = counters.unit_programs;
        self.erases = counters.erases;
        self.stalls = device.stats().foreground_stalls;
        self
    }

    fn each(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            requests: of(self.requests, other.requests),
            written_bytes: of(self.written_bytes, other.written_bytes),
            read_bytes: of(self.read_bytes, other.read_bytes),
            trimmed_bytes: of(self.trimmed_bytes, other.trimmed_bytes),
            nand_programs: of(self.nand_programs, other.nand_programs),
            erases: of(self.erases, other.erases),
            stalls: of(self.stalls, other.stalls),
        }
    }

    /// The difference from `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        // A layer that rebuilds itself after a power cut may reset its stall counter.
        self.each(earlier, u64::saturating_sub)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        self.each(other, |one, other| one + other)
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    /// Units' worth of data that the host wrote, the last one rounded up.
    pub(super) fn host_writes(&self, unit_bytes: u64) -> u64 {
        self.written_bytes.div_ceil(unit_bytes)
    }

    pub(super) fn write_amplification(&self, unit_bytes: u64) -> Option<f64> {
        let host_writes = self.host_writes(unit_bytes);
        (host_writes > 0).then(|| self.nand_programs as f64 / host_writes as f64)
    }
}
