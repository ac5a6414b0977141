//! A card's bus under stress: whether the clock in use is free of errors, which lower one is, and how to pin it.
//!
//! Absent on purpose: reading the card and setting clocks (`emmc_probe::bus`), and bus modes: Linux selects one when it
//! finds the card, so another one needs a new boot with the lines that [`Pin`] has.

mod pin;

use emmc_port::{BusInUse, BusRound, Host};
use serde::{Deserialize, Serialize};

use crate::health::{counted, link_errors};
use crate::trust::{LogKind, read_log};
pub use pin::{Pin, PinPlace};

/// Read data with fewer blocks than this that are not of one byte only tests little. Unit: percent.
const CONTENT_PERCENT: f64 = 10.0;
/// -ln(0.05): as many events are expected where none is seen once in twenty times.
///
/// Source: the Poisson distribution; "rule of three".
const NONE_SEEN: f64 = 2.995_732_273_553_991;

/// What a round has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// No error, and errors would have been counted.
    Clean,
    /// Errors.
    Errors,
    /// No error that was seen, and nobody counts those that the kernel repeats.
    CannotTell,
}

/// The card, read at one clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Round {
    /// The clock that was asked for; nothing for the one in use. Unit: Hz.
    pub asked_hz: Option<u64>,
    /// The clock that the controller gave. Unit: Hz.
    pub clock_hz: Option<u64>,
    /// The clock at the end, where the kernel has set another one. Unit: Hz.
    pub changed_to_hz: Option<u64>,
    /// Unit: seconds.
    pub seconds: f64,
    /// Requests.
    pub reads: u64,
    /// Unit: bytes.
    pub bytes: u64,
    /// Errors that the driver counted, by its names; nothing if it does not count.
    pub counted: Option<std::collections::BTreeMap<String, u64>>,
    /// Lines of errors in the kernel's log; nothing if it cannot be read.
    pub log_lines: Option<u64>,
    /// Requests that failed for good.
    pub failed: u64,
    /// Pairs of requests that read something else from the same place.
    pub differing: u64,
    /// The result.
    pub shown: Shown,
    /// The same in words.
    pub errors: String,
    /// Without an error: with 95 % confidence there is at most one in this many requests.
    pub one_error_in_at_least: Option<u64>,
}

/// The clock without errors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CleanClock {
    /// Unit: Hz.
    pub clock_hz: u64,
    /// What the bus can carry at it. Unit: 10^6 bytes a second.
    pub mb_per_s_max: f64,
}

/// The result of a stress.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusReport {
    /// The disk.
    pub disk: String,
    /// The bus that was found.
    pub bus: Option<BusInUse>,
    /// What the clock in use has shown.
    pub shown: Shown,
    /// The result in a sentence.
    pub verdict: String,
    /// The fastest clock of those tried that shows no error.
    pub clean: Option<CleanClock>,
    /// Lines that make Linux use another clock or mode, where the one in use shows errors.
    pub pins: Vec<Pin>,
    /// Share of the blocks that were read in which all bytes are the same. Unit: percent.
    pub uniform_percent: f64,
    /// What limits the result.
    pub notes: Vec<String>,
    /// Each clock, in the order of the test.
    pub rounds: Vec<Round>,
}

/// Whether a round shows errors. `names`: of the card and its host in the log.
pub fn shows_errors(round: &BusRound, names: &[String]) -> bool {
    judge(round, names).shown == Shown::Errors
}

/// Judges rounds; the first one is at the clock in use. `since_boot` is what the driver had counted before.
pub fn bus_report(
    disk: &str,
    rounds: &[BusRound],
    names: &[String],
    since_boot: &Host,
    unset: Option<String>,
) -> BusReport {
    let bus = rounds.first().and_then(|round| round.bus[0].clone());
    let judged: Vec<Round> = rounds.iter().map(|round| judge(round, names)).collect();
    let shown = judged.first().map_or(Shown::CannotTell, |round| round.shown);
    let clean = judged.iter().zip(rounds).find(|(round, _)| round.shown == Shown::Clean);
    let clean = clean
        .and_then(|(_, round)| round.bus[0].as_ref())
        .map(|bus| CleanClock { clock_hz: bus.clock_hz, mb_per_s_max: bus.mb_per_s_max });
    let blocks: u64 = rounds.iter().map(|round| round.bytes / 2 / 4096).sum();
    let uniform: u64 = rounds.iter().map(|round| round.uniform_blocks).sum();
    let uniform_percent = if blocks == 0 { 0.0 } else { 100.0 * uniform as f64 / blocks as f64 };
    let mut notes = Vec::new();
    if shown != Shown::Errors && 100.0 - uniform_percent < CONTENT_PERCENT {
        notes.push(format!(
            "{uniform_percent:.0} % of what was read are blocks of one byte: they test the data lines little; fill the \
             card, or read one that is in use"
        ));
    }
    if let Some(moved) = judged.iter().find_map(|round| round.changed_to_hz.zip(round.clock_hz)) {
        let (to, from) = (mhz(moved.0), mhz(moved.1));
        notes.push(format!("the kernel changed the clock from {from} to {to} during a test, as after errors"));
    }
    if judged.iter().any(|round| round.differing > 0) {
        notes.push("data that differs is damage only if nobody has written meanwhile".into());
    }
    let before: Vec<String> = link_errors(&since_boot.err_stats).iter().map(counted).collect();
    if !before.is_empty() {
        notes.push(format!("before the test the driver had counted since the boot: {}", before.join(", ")));
    }
    notes.extend(unset);
    let pins = match (shown, &bus) {
        (Shown::Errors, Some(bus)) => pin::pins(bus, clean.as_ref()),
        _ => Vec::new(),
    };
    let verdict = verdict(judged.first(), bus.as_ref(), clean.as_ref(), judged.len());
    BusReport { disk: disk.into(), bus, shown, verdict, clean, pins, uniform_percent, notes, rounds: judged }
}

fn judge(round: &BusRound, names: &[String]) -> Round {
    let errors = round.counted.as_ref().map(link_errors);
    let lines = round.log.as_ref().map(|log| {
        // A filesystem's words are not about the bus.
        let of_bus = |kind: &LogKind| !matches!(kind, LogKind::ReadOnly | LogKind::WriteError | LogKind::ReadError);
        read_log(log, names).iter().filter(|(kind, _)| of_bus(kind)).map(|(_, lines)| lines.count).sum::<u64>()
    });
    let mut words: Vec<String> = errors.iter().flatten().map(counted).collect();
    let mut add = |count: u64, one: &str, many: &str| match count {
        0 => {}
        1 => words.push(format!("1 {one}")),
        _ => words.push(format!("{count} {many}")),
    };
    add(round.failed, "failed read", "failed reads");
    add(round.differing, "pair of reads that differs", "pairs of reads that differ");
    if errors.as_ref().is_none_or(Vec::is_empty) {
        add(lines.unwrap_or(0), "line of bus errors in the kernel's log", "lines of bus errors in the kernel's log");
    }
    let shown = match (words.is_empty(), &errors) {
        (false, _) => Shown::Errors,
        (true, Some(_)) => Shown::Clean,
        (true, None) => Shown::CannotTell,
    };
    let clock = |at: usize| round.bus[at].as_ref().map(|bus| bus.clock_hz);
    Round {
        asked_hz: round.asked_hz,
        clock_hz: clock(0),
        changed_to_hz: clock(1).filter(|hz| Some(*hz) != clock(0)),
        seconds: round.seconds,
        reads: round.reads,
        bytes: round.bytes,
        counted: round.counted.clone(),
        log_lines: lines,
        failed: round.failed,
        differing: round.differing,
        shown,
        errors: if words.is_empty() { "none".into() } else { words.join(", ") },
        one_error_in_at_least: (shown == Shown::Clean).then(|| (round.reads as f64 / NONE_SEEN) as u64),
    }
}

fn verdict(first: Option<&Round>, bus: Option<&BusInUse>, clean: Option<&CleanClock>, rounds: usize) -> String {
    let Some(first) = first else { return "Nothing was read".into() };
    let at = match bus {
        Some(bus) => format!("at {} ({}, {} lines)", mhz(bus.clock_hz), bus.mode, bus.lines),
        None => "at a clock that is not known".into(),
    };
    match first.shown {
        Shown::Clean => {
            let bound = first.one_error_in_at_least.unwrap_or(0);
            format!(
                "The bus is clean {at}: no error in {} reads; with 95 % confidence at most one in {bound}",
                first.reads
            )
        }
        Shown::CannotTell => format!(
            "Cannot tell: {} reads {at} succeeded, but nobody counts the errors that the kernel repeats (err_stats, \
             Linux 6.0 and later)",
            first.reads
        ),
        Shown::Errors => {
            let rest = match clean {
                Some(clean) => {
                    let mhz = mhz(clean.clock_hz);
                    format!("clean at {mhz} (at most {:.0} MB/s)", clean.mb_per_s_max)
                }
                None if rounds > 1 => "no lower clock that was tried is clean".into(),
                None => "lower clocks were not tried (--lower)".into(),
            };
            format!("The bus has errors {at}: {} in {} reads; {rest}", first.errors, first.reads)
        }
    }
}

/// `200 MHz`, `33.3 MHz`.
pub fn mhz(hz: u64) -> String {
    let text = format!("{:.1}", hz as f64 / 1e6);
    format!("{} MHz", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests;
