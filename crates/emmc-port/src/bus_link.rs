//! The host controller's side of a card's bus, as the kernel runs it.

use std::collections::BTreeMap;

use crate::Host;

/// The bus in use.
///
/// Source: Linux `drivers/mmc/core/debugfs.c`, `mmc_ios_show`.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusInUse {
    /// The mode in the kernel's words: `mmc HS200`.
    pub mode: String,
    /// Data lines: 1, 4 or 8.
    pub lines: u8,
    /// The clock that the controller gives. Unit: Hz.
    pub clock_hz: u64,
    /// Clock x lines x edges. Unit: 10^6 bytes a second.
    pub mb_per_s_max: f64,
}

impl Host {
    /// The bus in use; nothing where `ios` does not say it.
    pub fn bus(&self) -> Option<BusInUse> {
        let inner = |name: &str| {
            let text = self.ios.get(name)?;
            let inner = text.split_once('(').map_or(text.as_str(), |(_, rest)| rest.trim_end().trim_end_matches(')'));
            Some(inner.to_owned())
        };
        let number = |text: &str| text.split_whitespace().next()?.parse::<u64>().ok();
        let clock_hz = self.ios.get("actual clock").or_else(|| self.ios.get("clock")).and_then(|text| number(text))?;
        let mode = inner("timing spec")?;
        let lines = inner("bus width").and_then(|text| number(&text))?;
        let lines = u8::try_from(lines).ok().filter(|lines| matches!(lines, 1 | 4 | 8))?;
        let lower = mode.to_ascii_lowercase();
        let edges = if ["ddr", "hs400"].iter().any(|word| lower.contains(word)) { 2.0 } else { 1.0 };
        let mb_per_s_max = clock_hz as f64 * f64::from(lines) / 8.0 * edges / 1e6;
        Some(BusInUse { mode, lines, clock_hz, mb_per_s_max })
    }
}

/// What happened while a card was read at one clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BusRound {
    /// The clock that was asked for; nothing for the one that was found. Unit: Hz.
    pub asked_hz: Option<u64>,
    /// The bus at the begin and at the end: after some errors the kernel sets it again.
    pub bus: [Option<BusInUse>; 2],
    /// Unit: seconds.
    pub seconds: f64,
    /// Requests.
    pub reads: u64,
    /// Unit: bytes.
    pub bytes: u64,
    /// Requests that failed for good.
    pub failed: u64,
    /// Pairs of requests that read something else from the same place.
    pub differing: u64,
    /// Blocks of 4 KiB in which all bytes are the same.
    pub uniform_blocks: u64,
    /// What the driver counted meanwhile, by its names; nothing if it does not count.
    pub counted: Option<BTreeMap<String, u64>>,
    /// What the kernel logged meanwhile; nothing if it cannot be read.
    pub log: Option<String>,
}

/// The host controller of a card in use.
pub trait BusLink {
    /// The bus in use, and the errors that the driver has counted.
    ///
    /// Errors: a sentence of what cannot be read, and why.
    fn host(&mut self) -> Result<Host, String>;

    /// Sets the clock until the kernel sets it again. Unit: Hz.
    ///
    /// Errors: a sentence; outside of what the controller can do, not permitted.
    fn set_clock(&mut self, hz: u64) -> Result<(), String>;

    /// What the kernel has logged since the last call; nothing if the log cannot be read.
    fn new_log(&mut self) -> Option<String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(ios: &[(&str, &str)]) -> Option<BusInUse> {
        let ios = ios.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect();
        Host { ios, ..Host::default() }.bus()
    }

    #[test]
    fn the_bus_is_parsed_from_ios() {
        let hs400 = [
            ("clock", "200000000 Hz"),
            ("actual clock", "198000000 Hz"),
            ("timing spec", "10 (mmc HS400 enhanced strobe)"),
            ("bus width", "3 (8 bits)"),
        ];
        let found = bus(&hs400).unwrap();
        assert_eq!((found.mode.as_str(), found.lines, found.clock_hz), ("mmc HS400 enhanced strobe", 8, 198_000_000));
        assert!((found.mb_per_s_max - 396.0).abs() < 1e-9);
        assert!(
            (bus(&[("clock", "50000000 Hz"), ("timing spec", "2 (sd high-speed)"), ("bus width", "2 (4 bits)")])
                .unwrap()
                .mb_per_s_max
                - 25.0)
                .abs()
                < 1e-9
        );
        assert_eq!(bus(&hs400[..3]), None);
        assert_eq!(bus(&[("bus width", "7 (3 bits)"), ("clock", "x"), ("timing spec", "")]), None);
    }
}
