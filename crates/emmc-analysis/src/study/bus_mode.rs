//! The fastest bus mode offered, and the mode in use when the source was read.

use emmc_port::{CardData, Format, Origin};
use emmc_regs::ext_csd::{DeviceInfo, reg};

use crate::evidence::Evidence;

/// The speed modes of eMMC, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BusMode {
    Legacy,
    HighSpeed,
    Ddr52,
    Hs200,
    Hs400,
}

impl BusMode {
    /// The standard's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Legacy => "backward compatible",
            Self::HighSpeed => "High Speed",
            Self::Ddr52 => "DDR52",
            Self::Hs200 => "HS200",
            Self::Hs400 => "HS400",
        }
    }

    /// Throughput of eight lines at the mode's full clock.
    ///
    /// Unit: 10^6 bytes a second.
    pub(super) const fn mb_per_s(self) -> u32 {
        match self {
            Self::Legacy => 26,
            Self::HighSpeed => 52,
            Self::Ddr52 => 104,
            Self::Hs200 => 200,
            Self::Hs400 => 400,
        }
    }
}

/// The source of the mode in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaidBy {
    /// The kernel that drives the card: debugfs `ios`, or HS_TIMING read under it.
    Kernel,
    /// Another tool's text, such as U-Boot's.
    Text,
    /// HS_TIMING, as whoever read the register had set it.
    Register,
}

/// The mode in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InUse {
    pub(super) mode: BusMode,
    /// The fastest mode that the same value can mean: High Speed and DDR52 share a code, and differ in BUS_WIDTH, which
    /// cannot be read.
    pub(super) at_most: BusMode,
    pub(super) said_by: SaidBy,
    pub(super) evidence: Evidence,
}

/// The fastest mode that DEVICE_TYPE offers.
pub(super) fn fastest_offered(info: &DeviceInfo) -> Option<BusMode> {
    const MODES: [(u8, BusMode); 4] =
        [(0xc0, BusMode::Hs400), (0x30, BusMode::Hs200), (0x0c, BusMode::Ddr52), (0x03, BusMode::HighSpeed)];
    let device_type = info.device_type?;
    let fastest = MODES.iter().find(|(mask, _)| device_type & mask != 0);
    Some(fastest.map_or(BusMode::Legacy, |(_, mode)| *mode))
}

/// The mode in use according to the best source.
pub(super) fn in_use(card: &CardData, info: &DeviceInfo) -> Option<InUse> {
    let kernel = card.host.ios.get("timing spec").and_then(|text| {
        let evidence = format!("ios, timing spec: {}", text.trim()).into();
        let mode = named(text)?;
        Some(InUse { mode, at_most: mode, said_by: SaidBy::Kernel, evidence })
    });
    let text = || {
        let text = card.stated.bus_mode.as_ref()?;
        let evidence = format!("printed mode: {}", text.trim()).into();
        let mode = named(text)?;
        let logged = card.origins.iter().flat_map(Origin::forms).any(|form| *form == Format::KernelLog);
        let said_by = if logged { SaidBy::Kernel } else { SaidBy::Text };
        Some(InUse { mode, at_most: mode, said_by, evidence })
    };
    let register = || {
        let timing = info.hs_timing?;
        let modes = [BusMode::Legacy, BusMode::HighSpeed, BusMode::Hs200, BusMode::Hs400];
        let mode = *modes.get(usize::from(timing))?;
        let at_most = if mode == BusMode::HighSpeed { BusMode::Ddr52 } else { mode };
        let said_by = if read_under_linux(card) { SaidBy::Kernel } else { SaidBy::Register };
        let evidence = Evidence::of(reg::HS_TIMING, format!(" = {timing}"));
        Some(InUse { mode, at_most, said_by, evidence })
    };
    kernel.or_else(text).or_else(register)
}

/// Whether the registers were read by a tool that only runs under Linux, so that its kernel had set the mode.
fn read_under_linux(card: &CardData) -> bool {
    let form = card.origins.first().and_then(|origin| origin.forms().first());
    matches!(form, Some(Format::Live | Format::MmcUtilsExtCsd | Format::ChromiumOsExtCsd))
}

/// The mode that the kernel's or U-Boot's words name; SD modes have none here.
fn named(text: &str) -> Option<BusMode> {
    let text = text.to_ascii_lowercase();
    if text.contains("uhs") || text.contains("sd ") || text.contains("ultra") {
        return None;
    }
    [
        ("hs400", BusMode::Hs400),
        ("hs200", BusMode::Hs200),
        // Older kernels say "high speed DDR" and "DDR".
        ("ddr", BusMode::Ddr52),
        ("high-speed", BusMode::HighSpeed),
        ("high speed", BusMode::HighSpeed),
        ("legacy", BusMode::Legacy),
    ]
    .into_iter()
    .find(|(word, _)| text.contains(word))
    .map(|(_, mode)| mode)
}

/// Number of data lines in use: 1, 4 or 8, with the source text.
pub(super) fn lines_in_use(card: &CardData) -> Option<(u8, SaidBy, String)> {
    let kernel = card.host.ios.get("bus width").map(|text| (text, SaidBy::Kernel, "ios, bus width"));
    let printed = card.stated.bus_width.as_ref().map(|text| (text, SaidBy::Text, "printed width"));
    let (text, said_by, whence) = kernel.or(printed)?;
    // The kernel prints a code and, in brackets, the lines: "3 (8 bits)".
    let words = text.split_once('(').map_or(text.as_str(), |(_, inner)| inner);
    let digits: String = words.trim_start().chars().take_while(char::is_ascii_digit).collect();
    let lines = digits.parse().ok().filter(|lines| matches!(lines, 1 | 4 | 8))?;
    Some((lines, said_by, format!("{whence}: {}", text.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_kernel_and_u_boot_are_parsed() {
        for (text, expected) in [
            ("0 (legacy)", Some(BusMode::Legacy)),
            ("1 (mmc high-speed)", Some(BusMode::HighSpeed)),
            ("8 (mmc DDR52)", Some(BusMode::Ddr52)),
            ("9 (mmc HS200)", Some(BusMode::Hs200)),
            ("10 (mmc HS400 enhanced strobe)", Some(BusMode::Hs400)),
            ("2 (sd high-speed)", None),
            ("6 (sd uhs SDR104)", None),
            ("MMC High Speed (52MHz)", Some(BusMode::HighSpeed)),
            ("MMC legacy", Some(BusMode::Legacy)),
            ("HS400ES (200MHz)", Some(BusMode::Hs400)),
            ("SD High Speed (50MHz)", None),
            ("HS400 Enhanced strobe", Some(BusMode::Hs400)),
            ("high speed DDR", Some(BusMode::Ddr52)),
            ("ultra high speed SDR104", None),
            ("UHS-I speed SDR104", None),
            ("", None),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
    }

    #[test]
    fn widths_are_numbers_of_lines() {
        let lines = |text: &str| {
            let mut card = CardData::default();
            card.host.ios.insert("bus width".into(), text.into());
            lines_in_use(&card).map(|(lines, _, _)| lines)
        };
        assert_eq!(
            ["3 (8 bits)", "2 (4 bits)", "0 (1 bits)", "3", ""].map(lines),
            [Some(8), Some(4), Some(1), None, None]
        );
        let mut card = CardData::default();
        card.stated.bus_width = Some("8-bit DDR".into());
        assert_eq!(lines_in_use(&card), Some((8, SaidBy::Text, "printed width: 8-bit DDR".into())));
    }
}
