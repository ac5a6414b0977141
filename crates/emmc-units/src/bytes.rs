use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes in one sector, the addressing unit of the standard and of the kernel's block layer.
pub const SECTOR_BYTES: u64 = 512;

/// A number of bytes.
///
/// Displayed exactly when a binary unit divides it (`7512 MiB`), else rounded to a tenth (`7.3 GiB`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A number of 512-byte sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Sectors(pub u64);

impl Bytes {
    /// One KiB, 1024 bytes.
    pub const KIB: Self = Self(1 << 10);
    /// One MiB, 1024 KiB.
    pub const MIB: Self = Self(1 << 20);
    /// One GiB, 1024 MiB.
    pub const GIB: Self = Self(1 << 30);

    /// The product, or `None` above 2^64 bytes.
    pub fn checked_mul(self, count: u64) -> Option<Self> {
        self.0.checked_mul(count).map(Self)
    }

    /// The sum, or `None` above 2^64 bytes.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference, or `None` when `other` is larger.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Whole sectors, or `None` when a part of a sector is left over.
    pub fn whole_sectors(self) -> Option<Sectors> {
        (self.0 % SECTOR_BYTES == 0).then_some(Sectors(self.0 / SECTOR_BYTES))
    }

    /// The binary unit, rounded to a tenth: `7.3 GiB`.
    pub fn rounded(self) -> String {
        bytesize::ByteSize::b(self.0).display().iec().to_string()
    }

    /// As a message states it: `64 MiB`, or `1.5 GiB (1610612736 bytes)` if no unit gives a short exact number.
    pub fn stated(self) -> String {
        let units = [(1u64 << 40, "TiB"), (Self::GIB.0, "GiB"), (Self::MIB.0, "MiB"), (Self::KIB.0, "KiB")];
        match units.into_iter().find(|(unit, _)| self.0 >= *unit) {
            Some((unit, name)) if self.0 % unit == 0 => format!("{} {name}", self.0 / unit),
            Some(_) => format!("{} ({} bytes)", self.rounded(), self.0),
            None => format!("{} B", self.0),
        }
    }

    /// The binary unit with two decimals, rounded down: the lower end of a range.
    pub fn rounded_down(self) -> String {
        self.hundredths(|bytes, unit| bytes * 100 / unit)
    }

    /// The binary unit with two decimals, rounded up: the upper end of a range.
    pub fn rounded_up(self) -> String {
        self.hundredths(|bytes, unit| (bytes * 100).div_ceil(unit))
    }

    fn hundredths(self, rounding: impl Fn(u128, u128) -> u128) -> String {
        let units = ["EiB", "PiB", "TiB", "GiB", "MiB", "KiB"];
        let fitting = units.iter().zip((1..=6).rev()).map(|(name, power)| (name, 1u64 << (10 * power)));
        match fitting.into_iter().find(|(_, unit)| self.0 >= *unit) {
            Some((name, unit)) => {
                let hundredths = rounding(self.0.into(), unit.into());
                format!("{}.{:02} {name}", hundredths / 100, hundredths % 100)
            }
            None => format!("{} B", self.0),
        }
    }
}

impl Sectors {
    /// The bytes in these sectors, or `None` above 2^64.
    pub fn bytes(self) -> Option<Bytes> {
        self.0.checked_mul(SECTOR_BYTES).map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An exact number with at most five digits reads better than a rounded one.
        for (unit, name) in [(Self::GIB, "GiB"), (Self::MIB, "MiB"), (Self::KIB, "KiB")] {
            if self.0 >= unit.0 && self.0 % unit.0 == 0 && self.0 / unit.0 < 100_000 {
                return f.pad(&format!("{} {name}", self.0 / unit.0));
            }
        }
        if self.0 < Self::KIB.0 { f.pad(&format!("{} B", self.0)) } else { f.pad(&self.rounded()) }
    }
}

impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} sectors", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_states_a_size_in_one_unit_and_exactly() {
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (64 << 20, "64 MiB"),
            (1 << 40, "1 TiB"),
            (1536 << 20, "1.5 GiB (1610612736 bytes)"),
            (7_818_182_656, "7.3 GiB (7818182656 bytes)"),
        ] {
            assert_eq!(Bytes(bytes).stated(), text);
        }
    }

    #[test]
    fn a_size_prints_in_the_largest_unit_that_divides_it() {
        for (bytes, text, rounded) in [
            (0, "0 B", "0 B"),
            (512, "512 B", "512 B"),
            (7512 << 20, "7512 MiB", "7.3 GiB"),
            (31_080_448 * 512, "15176 MiB", "14.8 GiB"),
            (3_850_371_072, "3672 MiB", "3.6 GiB"),
            (252 * 131_072, "32256 KiB", "31.5 MiB"),
            (1_000_000_000, "953.7 MiB", "953.7 MiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
            assert_eq!(Bytes(bytes).rounded(), rounded);
        }
    }

    #[test]
    fn a_printed_range_contains_all_its_values() {
        for (bytes, down, up) in [
            (0, "0 B", "0 B"),
            (1023, "1023 B", "1023 B"),
            (1024, "1.00 KiB", "1.00 KiB"),
            (1025, "1.00 KiB", "1.01 KiB"),
            (7_784_628_224, "7.25 GiB", "7.25 GiB"),
            (7_892_002_406, "7.34 GiB", "7.35 GiB"),
            ((1 << 30) - 1, "1023.99 MiB", "1024.00 MiB"),
            (u64::MAX, "15.99 EiB", "16.00 EiB"),
        ] {
            assert_eq!((Bytes(bytes).rounded_down().as_str(), Bytes(bytes).rounded_up().as_str()), (down, up));
        }
    }

    #[test]
    fn sectors_and_bytes_convert_both_ways_or_not_at_all() {
        assert_eq!(Sectors(15_384_576).bytes(), Some(Bytes(7512 << 20)));
        assert_eq!(Bytes(7512 << 20).whole_sectors(), Some(Sectors(15_384_576)));
        assert_eq!(Bytes(513).whole_sectors(), None);
        assert_eq!(Sectors(u64::MAX).bytes(), None);
    }
}
