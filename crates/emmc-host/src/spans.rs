use emmc_units::{Bytes, Nanos};
use serde::Serialize;

/// The three stages of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// From the system call to the transfer's start: file system, block layer, driver. On a core.
    pub pre: Nanos,
    /// The card's time.
    pub hw: Nanos,
    /// From the end of the transfer to the return to the caller: interrupt, completion, wake-up, copy. On a core.
    pub post: Nanos,
}

impl Spans {
    /// Whole microseconds, as published tables have them.
    pub const fn from_micros(pre: u64, hw: u64, post: u64) -> Self {
        Self { pre: Nanos::from_micros(pre), hw: Nanos::from_micros(hw), post: Nanos::from_micros(post) }
    }

    /// The sum of all three: the time of a request that has the host for itself.
    pub fn total(self) -> Nanos {
        self.pre + self.hw + self.post
    }

    /// Processor time of a request.
    pub fn software(self) -> Nanos {
        self.pre + self.post
    }

    /// The software share of a request's time, 0 to 1; 0 if the total is zero.
    pub fn overhead_share(self) -> f64 {
        if self.total() == Nanos::ZERO { 0.0 } else { self.software().0 as f64 / self.total().0 as f64 }
    }
}

/// A speed in both units that are called megabyte.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Speed {
    /// Unit: 10^6 bytes per second.
    pub mb_s: f64,
    /// Unit: 2^20 bytes per second.
    pub mib_s: f64,
}

impl Speed {
    /// `bytes` in `ns` nanoseconds, which may be a fraction; zero if no time passes.
    pub fn of(bytes: Bytes, ns: f64) -> Self {
        let per_second = if ns > 0.0 { bytes.0 as f64 * 1e9 / ns } else { 0.0 };
        Self { mb_s: per_second / 1e6, mib_s: per_second / f64::from(1 << 20) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mb_and_mib_are_distinguished() {
        let speed = Speed::of(Bytes(128 << 10), 2_100_000.0);
        assert!((speed.mib_s - 0.125 / 2.1e-3).abs() < 1e-9, "{speed:?}");
        assert!((speed.mb_s - 0.131_072 / 2.1e-3).abs() < 1e-9, "{speed:?}");
        assert_eq!(Speed::of(Bytes(512), 0.0), Speed { mb_s: 0.0, mib_s: 0.0 });
    }

    #[test]
    fn the_share_of_software_is_computed() {
        assert!((Spans::from_micros(635, 1414, 51).overhead_share() - 686.0 / 2100.0).abs() < 1e-12);
        assert_eq!(Spans::from_micros(0, 0, 0).overhead_share(), 0.0);
    }
}
