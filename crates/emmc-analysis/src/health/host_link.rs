//! The link between host and card: errors that the host controller's driver counted.
//!
//! Source: Linux drivers/mmc/core/debugfs.c, `err_stats`. Absent on purpose: a rate. The kernel counts errors since
//! boot but not commands, so one CRC error in ten commands looks the same as one in a million.

use std::collections::BTreeMap;

use emmc_port::CardData;
use serde::Serialize;

use crate::finding::Severity;

/// From this count on, CRC errors are not incidental.
///
/// Assumed: a good link has none, and a boot or a hot plug may cause a few.
const MANY_CRC_ERRORS: u64 = 10;

/// What one counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinkErrorKind {
    /// A command or its response arrived damaged.
    CommandCrc,
    /// A data block arrived damaged.
    DataCrc,
    /// A command got no response.
    CommandTimeout,
    /// Data did not arrive, or the card stayed busy too long.
    DataTimeout,
    /// A whole request was aborted.
    RequestTimeout,
    /// The sampling point could not be tuned.
    Tuning,
    /// A command that the controller sends by itself failed.
    AutoCommand,
    /// The command queue found an error in a card's response.
    CommandQueue,
    /// The controller itself failed: DMA, encryption, interrupts.
    Controller,
    /// An unknown counter.
    Other,
}

/// One counter that is not zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkError {
    /// What it counts.
    pub kind: LinkErrorKind,
    /// Its name in the kernel.
    pub name: String,
    /// Errors since boot, or since the counters were cleared.
    pub count: u64,
    /// How much it matters.
    pub severity: Severity,
    /// What it means.
    pub meaning: &'static str,
}

/// The state of the link between host and card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostLink {
    /// How much it matters; unknown where the source has no counters.
    pub severity: Severity,
    /// The result in one sentence.
    pub text: String,
    /// Counters that are not zero, most severe first.
    pub errors: Vec<LinkError>,
}

impl HostLink {
    /// The sum of all counters of some kinds, or `None` where the source has no counters.
    pub fn count(&self, kinds: &[LinkErrorKind]) -> Option<u64> {
        let counted = self.errors.iter().filter(|error| kinds.contains(&error.kind));
        (self.severity != Severity::Unknown).then(|| counted.fold(0, |sum, error| error.count.saturating_add(sum)))
    }
}

/// Judges the host controller's counters.
pub(super) fn host_link(card: &CardData) -> HostLink {
    let counters = &card.host.err_stats;
    if counters.is_empty() {
        let text = "no error counters in this source (debugfs err_stats, Linux 6.0 and later)".into();
        return HostLink { severity: Severity::Unknown, text, errors: Vec::new() };
    }
    let errors = link_errors(counters);
    let severity = errors.first().map_or(Severity::Good, |error| error.severity);
    HostLink { severity, text: text(severity, &errors), errors }
}

/// The counters that are not zero, most severe first.
pub(crate) fn link_errors(counters: &BTreeMap<String, u64>) -> Vec<LinkError> {
    let mut errors: Vec<LinkError> =
        counters.iter().filter(|(_, count)| **count > 0).map(|(name, count)| link_error(name, *count)).collect();
    errors.sort_by_key(|error| error.severity);
    errors
}

fn text(severity: Severity, errors: &[LinkError]) -> String {
    let counts: Vec<String> = errors.iter().filter(|error| error.severity == severity).map(counted).collect();
    match severity {
        Severity::Good if errors.is_empty() => "no error counted since boot".into(),
        Severity::Good => format!("only errors that probing a card causes: {}", counts.join(", ")),
        _ => format!("{} since boot, of an unknown number of commands", counts.join(", ")),
    }
}

/// `2 data CRC errors`; a counter that is not known keeps its name.
pub(crate) fn counted(error: &LinkError) -> String {
    let name = error.name.trim();
    match WORDS.iter().find(|(label, _)| label.eq_ignore_ascii_case(name)) {
        Some((_, words)) if error.count == 1 => format!("1 {words}"),
        Some((_, words)) => format!("{} {words}s", error.count),
        None => format!("{} x {name}", error.count),
    }
}

/// The kernel's labels, and what one event of each is in words.
///
/// Source: Linux include/linux/mmc/host.h, `enum mmc_err_stat`, and drivers/mmc/core/debugfs.c.
const WORDS: [(&str, &str); 15] = [
    ("Command Timeout Occurred", "command timeout"),
    ("Command CRC Errors Occurred", "command CRC error"),
    ("Data Timeout Occurred", "data timeout"),
    ("Data CRC Errors Occurred", "data CRC error"),
    ("Auto-Cmd Error Occurred", "auto-command error"),
    ("ADMA Error Occurred", "ADMA error"),
    ("Tuning Error Occurred", "tuning error"),
    ("CMDQ RED Errors", "command queue response error"),
    ("CMDQ GCE Errors", "command queue crypto error"),
    ("CMDQ ICCE Errors", "command queue crypto configuration error"),
    ("Request Timedout", "request timeout"),
    ("CMDQ Request Timedout", "command queue request timeout"),
    ("ICE Config Errors", "inline crypto configuration error"),
    ("Controller Timedout errors", "controller timeout"),
    ("Unexpected IRQ errors", "unexpected interrupt"),
];

fn link_error(name: &str, count: u64) -> LinkError {
    use LinkErrorKind::*;
    let kind = kind(name);
    let (severity, meaning) = match kind {
        CommandCrc | DataCrc if count >= MANY_CRC_ERRORS => {
            (Severity::Warning, "transfers are often corrupted on the bus")
        }
        CommandCrc | DataCrc => (Severity::Notice, "transfers were corrupted on the bus a few times"),
        CommandTimeout => (Severity::Good, "commands without a response; probing for other card types causes some"),
        DataTimeout => (Severity::Warning, "the card did not send data in time or stayed busy too long"),
        RequestTimeout => (Severity::Warning, "the driver gave up waiting for the controller"),
        Tuning => (Severity::Notice, "tuning of the sampling point failed at least once"),
        AutoCommand => (Severity::Notice, "a command that the controller adds by itself failed"),
        CommandQueue => (Severity::Warning, "the command queue had to recover"),
        Controller => (Severity::Warning, "the host controller itself failed"),
        Other => (Severity::Notice, "an error of unknown type"),
    };
    LinkError { kind, name: name.into(), count, severity, meaning }
}

fn kind(name: &str) -> LinkErrorKind {
    use LinkErrorKind::*;
    // The order matters: "CMDQ Request Timedout" is a request, "Auto-Cmd Error" no command error.
    const WORDS: [(&str, LinkErrorKind); 12] = [
        ("auto-cmd", AutoCommand),
        ("command crc", CommandCrc),
        ("data crc", DataCrc),
        ("command timeout", CommandTimeout),
        ("data timeout", DataTimeout),
        ("controller timed", Controller),
        ("request timed", RequestTimeout),
        ("tuning", Tuning),
        ("cmdq", CommandQueue),
        ("adma", Controller),
        ("ice config", Controller),
        ("unexpected irq", Controller),
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().find(|(word, _)| name.contains(word)).map_or(Other, |(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(counters: &[(&str, u64)]) -> CardData {
        let mut card = CardData::default();
        card.host.err_stats = counters.iter().map(|(name, count)| ((*name).to_string(), *count)).collect();
        card
    }

    #[test]
    fn every_counter_of_the_kernel_is_classified() {
        use LinkErrorKind::*;
        for (name, expected) in [
            ("Command Timeout Occurred", CommandTimeout),
            ("Command CRC Errors Occurred", CommandCrc),
            ("Data Timeout Occurred", DataTimeout),
            ("Data CRC Errors Occurred", DataCrc),
            ("Auto-Cmd Error Occurred", AutoCommand),
            ("ADMA Error Occurred", Controller),
            ("Tuning Error Occurred", Tuning),
            ("CMDQ RED Errors", CommandQueue),
            ("CMDQ GCE Errors", CommandQueue),
            ("CMDQ ICCE Errors", CommandQueue),
            ("Request Timedout", RequestTimeout),
            ("CMDQ Request Timedout", RequestTimeout),
            ("ICE Config Errors", Controller),
            ("Controller Timedout errors", Controller),
            ("Unexpected IRQ errors", Controller),
            ("Something new", Other),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn absent_counters_are_unknown_and_zero_counters_are_good() {
        assert_eq!(host_link(&card(&[])).severity, Severity::Unknown);
        assert_eq!(host_link(&card(&[])).count(&[LinkErrorKind::DataCrc]), None);
        let link = host_link(&card(&[("Data CRC Errors Occurred", 0), ("Command Timeout Occurred", 0)]));
        assert_eq!((link.severity, link.errors.len()), (Severity::Good, 0));
        assert_eq!(link.count(&[LinkErrorKind::DataCrc]), Some(0));
    }

    #[test]
    fn counters_are_said_in_words() {
        let text = |name: &str, count| host_link(&card(&[(name, count)])).text;
        let says = |text: String, words: &str| assert!(text.starts_with(words), "{text}");
        says(text("Data CRC Errors Occurred", 2), "2 data CRC errors since boot,");
        says(text("Data Timeout Occurred", 1), "1 data timeout since boot,");
        says(text("CMDQ Request Timedout", 3), "3 command queue request timeouts since boot,");
        says(text("Something new", 3), "3 x Something new since boot,");
    }

    #[test]
    fn transfer_errors_outweigh_probing_errors() {
        let link = host_link(&card(&[("Command Timeout Occurred", 14)]));
        assert_eq!(link.severity, Severity::Good);
        assert!(link.text.contains("14 command timeouts"), "{}", link.text);
        let link = host_link(&card(&[("Command Timeout Occurred", 14), ("Data CRC Errors Occurred", 3)]));
        assert_eq!(link.severity, Severity::Notice);
        let link = host_link(&card(&[("Command CRC Errors Occurred", 3), ("Data CRC Errors Occurred", u64::MAX)]));
        assert_eq!(link.severity, Severity::Warning);
        assert_eq!(link.errors[0].kind, LinkErrorKind::DataCrc);
        assert_eq!(link.count(&[LinkErrorKind::DataCrc, LinkErrorKind::CommandCrc]), Some(u64::MAX));
        assert!(link.text.contains("unknown number of commands"), "{}", link.text);
    }
}
