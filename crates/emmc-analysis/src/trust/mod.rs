//! What says that a card must go: registers, the host's counters, the kernel's log, a probe, samples of years, and a
//! test with a file.
//!
//! Absent on purpose: reading or writing anything, and a date of death (`health` has the forecast).

mod log;
mod saved;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use emmc_port::{Activity, CardData};
use emmc_regs::CardKind;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::reg;
use emmc_regs::r1::R1;
use serde::Serialize;
use serde_json::Value;

use crate::bus::Shown;
use crate::evidence::Evidence;
use crate::finding::{self, Finding, Severity};
use crate::health::{HealthOptions, LinkErrorKind, health};
pub use log::{LogKind, LogLines, read_log};
pub use saved::{SCHEMA, SavedError, SavedTrust};

/// Failed sectors within this distance are one region. Unit: sectors.
const REGION_SECTORS: u64 = 64 << 11;
/// Fewer CRC errors may come from a boot or a hot plug. Assumed, as in `health`.
const MANY_CRC_ERRORS: u64 = 10;

/// What a probe has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbedFacts {
    /// Whether the stated capacity is there, and what was seen.
    pub capacity_is_there: Option<(bool, String)>,
    /// Whether discards have an effect, and what was seen.
    pub discards: Option<(bool, String)>,
}

/// What a stress of the bus has found: the result of `bus`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct StressedBus {
    /// What the clock in use has shown.
    pub shown: Shown,
    /// The result in a sentence.
    pub verdict: String,
}

/// What a test with a file has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileTest {
    /// The file.
    pub file: String,
    /// Blocks of 4 KiB that were written, synced, and read back from the card.
    pub blocks: u64,
    /// Of them, those that hold something else.
    pub wrong: u64,
    /// Of them, those that cannot be read.
    pub unreadable: u64,
    /// Of the wrong ones, those that hold another block of the file.
    pub elsewhere: u64,
    /// Whether the power was off in between: the file was written by an earlier run.
    pub is_later: bool,
}

/// Everything that is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Witnesses<'a> {
    /// Registers and the host's counters.
    pub card: Option<&'a CardData>,
    /// What this machine does with it.
    pub activity: Option<&'a Activity>,
    /// The kernel's log.
    pub log: Option<&'a str>,
    /// The card's names in the log.
    pub names: &'a [String],
    /// A probe.
    pub probed: Option<&'a ProbedFacts>,
    /// Lines of `monitor`, oldest first.
    pub samples: &'a [Value],
    /// A stress of the bus.
    pub bus: Option<&'a StressedBus>,
    /// A test with a file.
    pub test: Option<&'a FileTest>,
}

/// The verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trust {
    /// The card's CID, where the registers have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cid: Option<String>,
    /// The answer in one sentence.
    pub verdict: String,
    /// The worst severity among the findings.
    pub severity: Severity,
    /// What was looked at.
    pub witnesses: Vec<&'static str>,
    /// What speaks against the card, worst first.
    pub findings: Vec<Finding>,
    /// Lines of the kernel's log by kind.
    pub log: BTreeMap<LogKind, LogLines>,
    /// The test with a file.
    pub test: Option<FileTest>,
}

/// Judges a card by all witnesses.
pub fn trust(witnesses: &Witnesses<'_>) -> Trust {
    let log = witnesses.log.map(|log| read_log(log, witnesses.names)).unwrap_or_default();
    let mut findings = Vec::new();
    findings.extend(witnesses.card.into_iter().flat_map(registers));
    findings.extend(witnesses.card.into_iter().flat_map(link));
    findings.extend(read_only(witnesses, &log));
    findings.extend(of_log(&log));
    findings.extend(witnesses.probed.into_iter().flat_map(probed));
    findings.extend(witnesses.bus.and_then(stressed));
    findings.extend(growing(witnesses.samples));
    findings.extend(witnesses.test.and_then(test));
    finding::sort(&mut findings);
    let looked = [
        ("registers", witnesses.card.is_some()),
        ("the host's error counters", witnesses.card.is_some_and(|card| !card.host.err_stats.is_empty())),
        ("mounts", witnesses.activity.is_some()),
        ("the kernel's log", witnesses.log.is_some()),
        ("a probe", witnesses.probed.is_some()),
        ("a stress of the bus", witnesses.bus.is_some()),
        ("samples of monitor", !witnesses.samples.is_empty()),
        ("a test with a file", witnesses.test.is_some()),
    ];
    let severity = findings.first().map_or(Severity::Good, |finding| finding.severity);
    let first = findings.first().map(|finding| finding.what.clone()).unwrap_or_default();
    let verdict = match severity {
        Severity::Critical => format!("Replace the card: {first}"),
        Severity::Warning => format!("Do not rely on the card: {first}"),
        Severity::Notice => format!("The card works; watch it: {first}"),
        Severity::Unknown | Severity::Good => "Nothing speaks against the card".into(),
    };
    let cid = witnesses.card.and_then(|card| card.cid);
    Trust {
        cid: cid.map(|cid| cid.0.map(|byte| format!("{byte:02x}")).concat()),
        verdict,
        severity,
        witnesses: looked.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name).collect(),
        findings,
        log,
        test: witnesses.test.cloned(),
    }
}

fn registers(card: &CardData) -> Vec<Finding> {
    let mut all = Vec::new();
    if let (Some(kind), Some(bytes)) = (card.kind, card.csd) {
        let csd = Csd::new(kind, bytes);
        for (is_set, bit) in
            [(csd.perm_write_protect(), "PERM_WRITE_PROTECT"), (csd.tmp_write_protect(), "TMP_WRITE_PROTECT")]
        {
            if is_set {
                let what = format!("The card is write-protected as a whole by CSD.{bit}");
                let finding =
                    Finding::new(Severity::Critical, "trust-write-protected", what).evidence(format!("CSD.{bit} = 1"));
                all.push(match bit {
                    "TMP_WRITE_PROTECT" => {
                        finding.advice("a program can clear it (CMD27); cards that protect themselves set it again")
                    }
                    _ => finding.advice("it cannot be cleared: save the data; some cards set it at their end of life"),
                });
            }
        }
    }
    if let Some(status) = card.status {
        let kind = card.kind.unwrap_or(CardKind::Emmc);
        let errors: Vec<&str> = R1(status).errors(kind).map(|bit| bit.name).collect();
        if !errors.is_empty() {
            let what = format!("The card's status has error bits: {}", errors.join(", "));
            all.push(
                Finding::new(Severity::Warning, "trust-status", what)
                    .evidence(format!("card status {status:#010x} (R1 of CMD13)")),
            );
        }
    }
    let Some(csd) = &card.ext_csd else { return all };
    let fields = [(reg::DEVICE_LIFE_TIME_EST_TYP_A, "A"), (reg::DEVICE_LIFE_TIME_EST_TYP_B, "B")];
    for (field, kind) in fields {
        if let Some(raw) = csd.byte(field).filter(|raw| *raw >= 0x0b) {
            let what = format!("The life of its type {kind} cells is past its end");
            all.push(
                Finding::new(Severity::Critical, "trust-life", what)
                    .evidence(Evidence::value(field, raw))
                    .advice("plan the replacement now: from here on no figure is promised"),
            );
        }
    }
    match csd.byte(reg::PRE_EOL_INFO) {
        Some(3) => all.push(
            Finding::new(Severity::Critical, "trust-spare", "Its spare blocks are used up: 90 % and more are consumed")
                .evidence(Evidence::value(reg::PRE_EOL_INFO, 3))
                .advice("the next bad blocks make it read-only or lose data: replace it"),
        ),
        Some(2) => all.push(
            Finding::new(Severity::Warning, "trust-spare", "Its spare blocks run out: 80 % are consumed")
                .evidence(Evidence::value(reg::PRE_EOL_INFO, 2)),
        ),
        _ => {}
    }
    all
}

fn link(card: &CardData) -> Vec<Finding> {
    let health = health(card, &HealthOptions::default());
    let link = &health.host_link;
    let count = |kinds: &[LinkErrorKind]| link.count(kinds).unwrap_or(0);
    let mut all = Vec::new();
    let crc = count(&[LinkErrorKind::CommandCrc, LinkErrorKind::DataCrc]);
    let tuning = count(&[LinkErrorKind::Tuning]);
    if crc >= MANY_CRC_ERRORS || tuning > 0 {
        let what = format!("The bus damages data: {crc} CRC errors, {tuning} failed tunings since the boot");
        all.push(bus(Finding::new(Severity::Warning, "trust-bus", what).evidence("debugfs err_stats")));
    }
    all
}

fn stressed(found: &StressedBus) -> Option<Finding> {
    let what = "The bus damages data while the card is read";
    let finding = || Finding::new(Severity::Warning, "trust-bus", what).evidence(format!("bus: {}", found.verdict));
    (found.shown == Shown::Errors).then(|| bus(finding()))
}

/// How to find out whether card or board is at fault.
fn bus(finding: Finding) -> Finding {
    finding
        .advice("try a slower mode: `no-mmc-hs400` or `max-frequency` in the device tree; errors that then end are the board's")
        .source("Linux Documentation/devicetree/bindings/mmc/mmc-controller-common.yaml")
}

fn read_only(witnesses: &Witnesses<'_>, log: &BTreeMap<LogKind, LogLines>) -> Option<Finding> {
    let lines = log.get(&LogKind::ReadOnly);
    let is_now = witnesses.activity.and_then(|activity| activity.read_only) == Some(true);
    if !is_now && lines.is_none() {
        return None;
    }
    let what = "It, or a filesystem on it, became read-only after an error";
    let mut finding = Finding::new(Severity::Critical, "trust-read-only", what);
    if is_now {
        finding = finding.evidence("the disk is read-only, or a filesystem is after errors (sysfs, /proc)");
    }
    if let Some(lines) = lines {
        finding = finding.evidence(format!("the log: {}", lines.first));
    }
    Some(finding.advice("save the data now, read-only; a repair by fsck writes to a card that fails"))
}

fn of_log(log: &BTreeMap<LogKind, LogLines>) -> Vec<Finding> {
    let mut all = Vec::new();
    let said = |finding: Finding, lines: &LogLines| {
        finding.evidence(format!("{} lines in the log, the first: {}", lines.count, lines.first))
    };
    if let Some(lines) = log.get(&LogKind::WriteError) {
        let what = format!("Writes fail: {} errors", lines.count);
        all.push(said(Finding::new(Severity::Critical, "trust-writes-fail", what), lines));
    }
    if let Some(lines) = log.get(&LogKind::ReadError) {
        let (first, last) = (lines.sectors.iter().min(), lines.sectors.iter().max());
        let region = first.zip(last).filter(|(first, last)| **last - **first <= REGION_SECTORS);
        let finding = match region {
            Some((first, last)) => {
                let what = format!("One region cannot be read: sectors {first} to {last}");
                Finding::new(Severity::Critical, "trust-bad-region", what)
                    .advice("what was there is lost; the rest can be saved with ddrescue")
            }
            None => {
                let what = format!("Reads fail in many places: {} errors", lines.count);
                Finding::new(Severity::Critical, "trust-reads-fail", what)
            }
        };
        all.push(said(finding, lines));
    }
    if let Some(lines) = log.get(&LogKind::Busy) {
        let what = format!("The card stays busy beyond every limit: {} times", lines.count);
        all.push(said(Finding::new(Severity::Critical, "trust-stuck", what), lines));
    }
    if let Some(lines) = log.get(&LogKind::Timeout) {
        let what = format!("The card does not answer in time: {} times", lines.count);
        all.push(said(Finding::new(Severity::Warning, "trust-timeouts", what), lines));
    }
    let crc = [LogKind::Crc, LogKind::Tuning].iter().filter_map(|kind| log.get(kind));
    let count: u64 = crc.clone().map(|lines| lines.count).sum();
    if let Some(lines) = crc.clone().next() {
        let what = format!("The bus damages data: {count} lines of CRC errors and failed tunings");
        all.push(bus(said(Finding::new(Severity::Warning, "trust-bus", what), lines)));
    }
    all
}

fn probed(probed: &ProbedFacts) -> Vec<Finding> {
    let mut all = Vec::new();
    if let Some((false, seen)) = &probed.capacity_is_there {
        let what = "Its capacity is not there: data beyond what it really has is lost or overwrites other data";
        all.push(
            Finding::new(Severity::Critical, "trust-capacity", what)
                .evidence(seen)
                .advice("it is a fake or a damaged card: do not use it, not even in part"),
        );
    }
    if let Some((false, seen)) = &probed.discards {
        let what = "It accepts discards and ignores them: it becomes slow, and wears more";
        all.push(Finding::new(Severity::Warning, "trust-discards", what).evidence(seen));
    }
    all
}

/// Counts of bad blocks, reserve and errors that grew between the first and the last sample.
fn growing(samples: &[Value]) -> Vec<Finding> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let mut all = Vec::new();
    let time = |sample: &Value| sample["time"].as_str().unwrap_or("?").to_owned();
    let vendor = last["vendor"].as_object().into_iter().flatten();
    for (key, value) in vendor.filter(|(key, _)| key.starts_with("bad") && !key.contains("initial")) {
        let (then, now) = (first["vendor"][key].as_u64(), value.as_u64());
        if let Some((then, now)) = then.zip(now).filter(|(then, now)| now > then) {
            let what = format!("Its bad blocks grow: {key} from {then} to {now}");
            all.push(
                Finding::new(Severity::Warning, "trust-bad-blocks", what)
                    .evidence(format!("samples of {} and {}", time(first), time(last)))
                    .command("emmclab health --history FILE", "how fast, and how long the reserve lasts"),
            );
        }
    }
    if let Some((then, now)) =
        first["io_errors"].as_u64().zip(last["io_errors"].as_u64()).filter(|(then, now)| now > then)
    {
        let what = format!("Filesystems count more and more errors: from {then} to {now}");
        all.push(Finding::new(Severity::Warning, "trust-io-errors", what).evidence(format!(
            "samples of {} and {}",
            time(first),
            time(last)
        )));
    }
    all
}

fn test(test: &FileTest) -> Option<Finding> {
    let FileTest { file, blocks, wrong, unreadable, elsewhere, is_later } = test;
    if *unreadable > 0 {
        let what = format!("It cannot read what it has just stored: {unreadable} of {blocks} blocks");
        return Some(Finding::new(Severity::Critical, "trust-unreadable", what).evidence(file));
    }
    if *wrong == 0 {
        return None;
    }
    let (id, what) = if *elsewhere > 0 {
        ("trust-wraps", format!("It stores data in the wrong place: {elsewhere} of {blocks} blocks hold another block"))
    } else if *is_later {
        ("trust-lost-cache", format!("It loses data that it had reported as stored: {wrong} of {blocks} blocks"))
    } else {
        ("trust-drops-writes", format!("It silently drops writes: {wrong} of {blocks} blocks hold something else"))
    };
    Some(
        Finding::new(Severity::Critical, id, what)
            .evidence(format!("{file}: written, synced, and read from the card without the page cache"))
            .advice("nothing that it reports as written is safe: save what can still be read, and replace it"),
    )
}
