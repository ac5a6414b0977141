//! Sizes as U-Boot prints them: in the largest binary unit, rounded to a tenth.
//!
//! Source: `print_size()` of U-Boot, lib/display_options.c.

use emmc_units::Bytes;

use crate::StatedSize;

const UNITS: [(&str, u32); 6] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("PiB", 50), ("EiB", 60)];

/// The sizes that print as `text`, such as `7.3 GiB`, `512 KiB` or `0 Bytes`; `None` when none does.
pub(super) fn parse(text: &str) -> Option<StatedSize> {
    let (number, unit) = text.split_once(' ')?;
    if matches!(unit, "Bytes" | "Byte" | "B") {
        let bytes = number.parse().ok().map(Bytes)?;
        return Some(StatedSize { text: text.into(), min: bytes, max: bytes });
    }
    let (_, shift) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let (whole, tenth) = match number.split_once('.') {
        Some((whole, tenth)) if tenth.len() == 1 => (whole, tenth.parse::<u64>().ok()?),
        Some(_) => return None,
        None => (number, 0),
    };
    let tenths = whole.parse::<u64>().ok().filter(|&whole| whole <= 1024)? * 10 + tenth;
    // The tenths are floor((10 size + unit / 2) / unit), and the unit is the largest that the size reaches.
    let unit_bytes = 1u128 << shift;
    let smallest = |tenths: u64| (u128::from(tenths) * unit_bytes).saturating_sub(unit_bytes / 2).div_ceil(10);
    let min = smallest(tenths).max(unit_bytes);
    let max = (smallest(tenths + 1) - 1).min(unit_bytes * 1024 - 1);
    let bytes = |size: u128| u64::try_from(size).ok().map(Bytes);
    if min > max { None } else { Some(StatedSize { text: text.into(), min: bytes(min)?, max: bytes(max)? }) }
}

/// The multiples of `step` that print so, if it is only one.
pub(super) fn only_multiple(size: &StatedSize, step: u64) -> Option<u64> {
    let last = size.max.0.checked_div(step)?;
    let first = size.min.0.div_ceil(step);
    (first == last).then_some(first)
}

/// Whether no multiple of `step` prints so.
pub(super) fn no_multiple(size: &StatedSize, step: u64) -> bool {
    size.max.0.checked_div(step).is_some_and(|last| size.min.0.div_ceil(step) > last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// U-Boot's rounding, for the other direction.
    fn printed(size: u64) -> String {
        let Some((unit, shift)) = UNITS.into_iter().rev().find(|(_, shift)| size >> shift != 0) else {
            return format!("{size} Bytes");
        };
        let rest = u128::from(size & ((1 << shift) - 1));
        let (mut whole, mut tenth) = (size >> shift, (10 * rest + (1 << (shift - 1))) >> shift);
        if tenth >= 10 {
            (whole, tenth) = (whole + 1, tenth - 10);
        }
        if tenth == 0 { format!("{whole} {unit}") } else { format!("{whole}.{tenth} {unit}") }
    }

    #[test]
    fn the_interval_has_exactly_the_sizes_with_this_print() {
        for size in [512, 1 << 10, 524_288, 7512 << 20, 15_176 << 20, 252 << 17, 3_850_371_072, (1 << 30) - 1, 1 << 40]
        {
            let stated = parse(&printed(size)).unwrap();
            assert!(stated.min.0 <= size && size <= stated.max.0, "{stated:?} {size}");
            for inside in [stated.min.0, stated.max.0, (stated.min.0 + stated.max.0) / 2] {
                assert_eq!(printed(inside), stated.text);
            }
            for outside in [stated.min.0 - 1, stated.max.0 + 1] {
                assert_ne!(printed(outside), stated.text, "{outside}");
            }
        }
    }

    #[test]
    fn published_sizes_have_one_multiple_or_none() {
        let only = |text: &str, step| only_multiple(&parse(text).unwrap(), step);
        assert_eq!(only("31.5 MiB", 1 << 17), Some(252));
        assert_eq!(only("4 MiB", 1 << 17), Some(32));
        assert_eq!(only("512 KiB", 1 << 17), Some(4));
        assert_eq!(only("0 Bytes", 1 << 17), Some(0));
        assert_eq!(only("7.3 GiB", 8 << 20), None);
        assert_eq!(only("4.2 MiB", 1 << 20), None);
        assert_eq!(only_multiple(&parse("4 MiB").unwrap(), 0), None);
        let none = |text: &str| no_multiple(&parse(text).unwrap(), 512 << 10);
        assert_eq!((none("3.1 MiB"), none("3 MiB"), none("7.3 GiB"), none("256 KiB")), (true, false, false, true));
    }

    #[test]
    fn text_that_u_boot_never_prints_gives_none() {
        for text in
            ["", "7.3", "7.3GiB", "7.31 GiB", "7,3 GiB", "x MiB", "2000 KiB", "0.5 MiB", "0 MiB", "16 EiB", "-1 Bytes"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
