use std::fmt;
use std::str::FromStr;

use crate::{Bytes, SECTOR_BYTES};

/// A size in the strict syntax for irreversible operations.
///
/// `7512MiB`, `15384576s` (512-byte sectors), `50%` of the largest possible, or `max`. A bare number is refused: U-Boot
/// would read it as sectors and mmc-utils as KiB. Decimal units are refused too, because no flash boundary is decimal.
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
    /// The part before the unit is not a whole number.
    #[error("size {0:?} does not start with a whole number")]
    Number(String),
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
        let digits = size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len());
        let (number, unit) = (&size[..digits], size[digits..].trim_start());
        if number.is_empty() {
            return Err(SizeError::Number(text.into()));
        }
        let number: u64 = number.parse().map_err(|_| SizeError::TooLarge(text.into()))?;
        let step = match unit {
            "" => return Err(SizeError::Bare(size.into())),
            "%" if number <= 100 => return Ok(Self::Percent(number as u8)),
            "%" => return Err(SizeError::TooLarge(text.into())),
            "s" => SECTOR_BYTES,
            "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            _ => return Err(SizeError::Unit { size: text.into(), unit: unit.into() }),
        };
        number.checked_mul(step).map(|bytes| Self::Exact(Bytes(bytes))).ok_or_else(|| SizeError::TooLarge(text.into()))
    }
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
            ("1.5GiB", Err(SizeError::Unit { size: "1.5GiB".into(), unit: ".5GiB".into() })),
            ("101%", Err(SizeError::TooLarge("101%".into()))),
            ("99999999999TiB", Err(SizeError::TooLarge("99999999999TiB".into()))),
            ("99999999999999999999999s", Err(SizeError::TooLarge("99999999999999999999999s".into()))),
        ] {
            assert_eq!(text.parse::<Size>(), expected, "{text:?}");
        }
    }
}
