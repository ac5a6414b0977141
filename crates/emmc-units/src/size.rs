use std::fmt;
use std::str::FromStr;

use crate::{Bytes, SECTOR_BYTES};

/// A size in the strict syntax for irreversible operations.
///
/// `7512MiB`, `1.5GiB`, `15384576s` (512-byte sectors), `50%` of the largest possible, or `max`. A bare number is
/// refused: U-Boot would read it as sectors and mmc-utils as KiB. Decimal units are refused too, because no flash
/// boundary is decimal, and so is a fraction that is no whole number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number of bytes.
    Exact(Bytes),
    /// This many percent of the largest possible size, 0 to 100.
    Percent(u8),
    /// The largest possible size.
    Max,
}

/// Why a size is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Empty text.
    #[error("size is empty; expected e.g. 7512MiB, 15384576s, 50% or max")]
    Empty,
    /// A number without a unit.
    #[error(
        "size {0:?} has no unit; expected e.g. {0}MiB, {0}s for 512-byte sectors, 50% or max (U-Boot would read sectors, mmc-utils KiB)"
    )]
    Bare(String),
    /// The unit is unknown.
    #[error("size {size:?} has unit {unit:?}; expected B, KiB, MiB, GiB, TiB, s or %")]
    Unit {
        /// The text as given.
        size: String,
        /// The part after the number.
        unit: String,
    },
    /// The part before the unit is not a number.
    #[error("size {0:?} does not start with a number")]
    Number(String),
    /// A fraction of a byte, a sector or a percent.
    #[error("size {0:?} is not a whole number of bytes, sectors or percent")]
    Fraction(String),
    /// More than 2^64 bytes, or more than 100 %.
    #[error("size {0:?} is too large")]
    TooLarge(String),
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let size = text.trim();
        if size.is_empty() {
            return Err(SizeError::Empty);
        }
        if size.eq_ignore_ascii_case("max") {
            return Ok(Self::Max);
        }
        let end = size.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(size.len());
        let (number, unit) = (&size[..end], size[end..].trim_start());
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return Err(SizeError::Number(text.into()));
        }
        let too_large = || SizeError::TooLarge(text.into());
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let fraction = fraction.trim_end_matches('0');
        let step = match unit {
            "" => return Err(SizeError::Bare(size.into())),
            "%" if !fraction.is_empty() => return Err(SizeError::Fraction(text.into())),
            "%" if whole <= 100 => return Ok(Self::Percent(whole as u8)),
            "%" => return Err(too_large()),
            "s" if !fraction.is_empty() => return Err(SizeError::Fraction(text.into())),
            "s" => SECTOR_BYTES,
            "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            _ => return Err(SizeError::Unit { size: text.into(), unit: unit.into() }),
        };
        let part = part_of(fraction, step).ok_or_else(|| SizeError::Fraction(text.into()))?;
        let bytes = whole.checked_mul(step).and_then(|bytes| bytes.checked_add(part));
        bytes.map(|bytes| Self::Exact(Bytes(bytes))).ok_or_else(too_large)
    }
}

/// The bytes of the digits behind the point; `None` if they are no whole number of bytes.
fn part_of(fraction: &str, step: u64) -> Option<u64> {
    // Sixteen places are more than anyone writes, and cannot overflow.
    let places = u32::try_from(fraction.len()).ok().filter(|places| *places <= 16)?;
    let digits: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let (bytes, scale) = (digits * u128::from(step), 10u128.pow(places));
    (bytes % scale == 0).then_some((bytes / scale) as u64)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(bytes) => write!(f, "{bytes}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Max => f.write_str("max"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_sizes_are_parsed_and_others_refused() {
        let exact = |bytes| Ok(Size::Exact(Bytes(bytes)));
        for (text, expected) in [
            ("7512MiB", exact(7512 << 20)),
            ("7512 MiB", exact(7512 << 20)),
            ("15384576s", exact(7512 << 20)),
            ("0s", exact(0)),
            ("1B", exact(1)),
            ("50%", Ok(Size::Percent(50))),
            ("max", Ok(Size::Max)),
            ("", Err(SizeError::Empty)),
            ("4096", Err(SizeError::Bare("4096".into()))),
            ("4096k", Err(SizeError::Unit { size: "4096k".into(), unit: "k".into() })),
            ("4MB", Err(SizeError::Unit { size: "4MB".into(), unit: "MB".into() })),
            ("-1s", Err(SizeError::Number("-1s".into()))),
            ("1.5GiB", exact(1536 << 20)),
            ("0.125 KiB", exact(128)),
            ("2.0s", exact(1024)),
            ("1.50%", Err(SizeError::Fraction("1.50%".into()))),
            ("1.5s", Err(SizeError::Fraction("1.5s".into()))),
            ("0.3GiB", Err(SizeError::Fraction("0.3GiB".into()))),
            ("1.5B", Err(SizeError::Fraction("1.5B".into()))),
            ("1.5", Err(SizeError::Bare("1.5".into()))),
            (".5GiB", Err(SizeError::Number(".5GiB".into()))),
            ("1.GiB", Err(SizeError::Number("1.GiB".into()))),
            ("1.2.3GiB", Err(SizeError::Number("1.2.3GiB".into()))),
            ("1.5GB", Err(SizeError::Unit { size: "1.5GB".into(), unit: "GB".into() })),
            ("101%", Err(SizeError::TooLarge("101%".into()))),
            ("99999999999TiB", Err(SizeError::TooLarge("99999999999TiB".into()))),
            ("99999999999999999999999s", Err(SizeError::TooLarge("99999999999999999999999s".into()))),
        ] {
            assert_eq!(text.parse::<Size>(), expected, "{text:?}");
        }
    }
}
