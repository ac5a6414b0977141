//! The write volume until the blocks' rated cycles are used up.
//!
//! Absent on purpose: a guess at write amplification. It depends on the workload and the controller by a factor of 100,
//! so the host's write volume is given only if the user gives the factor.

use emmc_units::Bytes;
use serde::Serialize;

use super::HealthError;

/// A larger write amplification is an input error: writing 512 bytes at a time into erase blocks of 4 MiB reaches 8192.
const WRITE_AMPLIFICATION_MAX: f64 = 10_000.0;

/// The write volume that a part's blocks endure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Endurance {
    /// Size of an erase block.
    pub block_bytes: Bytes,
    /// Erase blocks.
    pub blocks: u64,
    /// Erase cycles that each block is rated for.
    pub cycles: u64,
    /// Bytes written to flash until every block has reached its rated cycles, with perfect wear levelling.
    pub raw_bytes: Bytes,
    /// Bytes written to flash per byte written by the host, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<f64>,
    /// What the host may write at that write amplification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_bytes: Option<Bytes>,
}

/// The raw write volume of `blocks` erase blocks of size `block`, each good for `cycles` erasures.
///
/// Errors: a factor of 0, or more than 2^64 bytes.
pub fn endurance(block: Bytes, blocks: u64, cycles: u64) -> Result<Endurance, HealthError> {
    for (what, value) in [("block size", block.0), ("number of blocks", blocks), ("erase cycles", cycles)] {
        if value == 0 {
            return Err(HealthError::EnduranceZero { what });
        }
    }
    let raw = block.checked_mul(blocks).and_then(|capacity| capacity.checked_mul(cycles));
    let raw_bytes = raw.ok_or(HealthError::EnduranceTooLarge { block_bytes: block.0, blocks, cycles })?;
    Ok(Endurance { block_bytes: block, blocks, cycles, raw_bytes, write_amplification: None, host_bytes: None })
}

impl Endurance {
    /// Adds what the host may write when every byte of it costs `factor` bytes of flash writes.
    ///
    /// Errors: a factor that is not a number, below 1 (possible only with compression), or above 10 000.
    pub fn with_write_amplification(mut self, factor: f64) -> Result<Self, HealthError> {
        if !(1.0..=WRITE_AMPLIFICATION_MAX).contains(&factor) {
            return Err(HealthError::WriteAmplification { found: factor });
        }
        self.write_amplification = Some(factor);
        // A factor of 1 must not lose the last bits to floating point.
        self.host_bytes =
            Some(if factor == 1.0 { self.raw_bytes } else { Bytes((self.raw_bytes.0 as f64 / factor) as u64) });
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_vendors_example_is_exact() {
        let endurance = endurance(Bytes(4 << 20), 1024, 3000).unwrap();
        assert_eq!(endurance.raw_bytes, Bytes(12_884_901_888_000));
        assert_eq!(endurance.raw_bytes.to_string(), "12000 GiB");
        assert_eq!(endurance.host_bytes, None);
    }

    #[test]
    fn write_amplification_divides_the_volume() {
        let raw = endurance(Bytes(4 << 20), 1024, 3000).unwrap();
        let host = |factor| raw.clone().with_write_amplification(factor).map(|known| known.host_bytes);
        assert_eq!(host(1.0), Ok(Some(Bytes(12_884_901_888_000))));
        assert_eq!(host(4.0), Ok(Some(Bytes(3_221_225_472_000))));
        assert_eq!(host(10_000.0), Ok(Some(Bytes(1_288_490_188))));
        for factor in [0.0, -1.0, 0.99, 10_000.1, f64::NAN, f64::INFINITY] {
            assert!(matches!(host(factor), Err(HealthError::WriteAmplification { .. })), "{factor}");
        }
        let message = host(1e308).map_err(|error| error.to_string());
        assert_eq!(message, Err("write amplification is 1e308; expected 1 to 10000".into()));
    }

    #[test]
    fn zero_and_overflow_are_refused() {
        let message =
            |block, blocks, cycles| endurance(Bytes(block), blocks, cycles).map_err(|error| error.to_string());
        assert_eq!(message(0, 1, 1), Err("block size is 0; expected at least 1".into()));
        assert_eq!(message(1, 1, 0), Err("erase cycles is 0; expected at least 1".into()));
        assert_eq!(
            message(u64::MAX, 2, 1),
            Err("18446744073709551615 bytes x 2 blocks x 1 cycles is more than 2^64 bytes".into())
        );
        assert_eq!(endurance(Bytes(1), 1, u64::MAX).map(|most| most.raw_bytes), Ok(Bytes(u64::MAX)));
    }
}
