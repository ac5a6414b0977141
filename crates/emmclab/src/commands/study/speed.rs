//! The card's speed in `study`: saved results of `bench`, or a measurement on request.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use emmc_analysis::measured::measured;
use emmc_analysis::study::Measured;
use emmc_port::CardData;
use emmc_regs::cid::Cid;
use emmc_workload::import::{RESULT_BYTES_MAX, bench_result};
use emmc_workload::{BenchResult, Doubt};

use super::subject::Subject;
use crate::cli::StudyArgs;
use crate::input;

/// The suite that measures the speed of a card and finds its limits.
const SPEED: &str = "speed";

/// The speed of the card, and its other measurements.
#[derive(Default)]
pub(super) struct Benches {
    pub(super) speed: Option<BenchResult>,
    pub(super) others: Vec<BenchResult>,
}

impl Benches {
    /// Their summary: a line on the speed, and findings.
    pub(super) fn measured(&self) -> Measured {
        measured(self.speed.iter().chain(&self.others))
    }
}

/// From saved results, else measured: always on a copy of a virtual card, on request on a live card.
pub(super) fn benches(args: &StudyArgs, subject: &Subject) -> anyhow::Result<Benches> {
    let mut benches = Benches::default();
    for path in &args.bench {
        let result = read(path, &subject.card)?;
        if result.outcome.suite != SPEED {
            benches.others.push(result);
        } else if benches.speed.replace(result).is_some() {
            bail!(
                "{}: is a second result of bench --suite {SPEED}; use `emmclab compare` to compare two",
                path.display()
            );
        }
    }
    if args.measure {
        ensure!(benches.speed.is_none(), "--measure: a result of bench --suite {SPEED} is given with --bench");
        benches.speed = Some(measured_now(args, &subject.name)?);
    } else if benches.speed.is_none() {
        benches.speed = virtual_card(&subject.name)?;
    }
    Ok(benches)
}

fn measured_now(args: &StudyArgs, source: &str) -> anyhow::Result<BenchResult> {
    if let Some(result) = virtual_card(source)? {
        return Ok(result);
    }
    ensure!(args.more.tree.sysroot.is_none(), "--measure reads a live card; --sysroot reads a copy of its data");
    match emmc_linux::card_node(source) {
        Some(node) => crate::commands::bench::speed_of_device(&node),
        None => bail!("--measure reads a live card; {source:?} is a saved source (--bench adds a saved result)"),
    }
}

#[cfg(feature = "sim")]
fn virtual_card(name: &str) -> anyhow::Result<Option<BenchResult>> {
    let profile = name.strip_prefix("sim:");
    profile.map(|profile| crate::commands::bench::speed_of_virtual(name, profile)).transpose()
}

#[cfg(not(feature = "sim"))]
fn virtual_card(_name: &str) -> anyhow::Result<Option<BenchResult>> {
    Ok(None)
}

fn read(path: &Path, card: &CardData) -> anyhow::Result<BenchResult> {
    let name = path.display().to_string();
    let text = input::read(path, RESULT_BYTES_MAX as u64)?;
    let mut result = bench_result(&name, &text)?;
    same_card(&name, &mut result, card)?;
    Ok(result)
}

/// Refuses a result of a card with another CID, so that a report never mixes two cards. A missing CID becomes a doubt
/// of the result.
fn same_card(name: &str, result: &mut BenchResult, card: &CardData) -> anyhow::Result<()> {
    let measured = result.context.card.as_ref().and_then(|facts| facts.cid.clone());
    let (Some(measured), Some(studied)) = (&measured, card.cid) else {
        let missing = if measured.is_none() { format!("{name} has no CID") } else { "the source has no CID".into() };
        result.doubts.push(Doubt {
            code: "other_card".into(),
            what: "it may have been measured on a different card".into(),
            evidence: missing,
        });
        return Ok(());
    };
    ensure_same(&format!("{name}: context.card.cid"), &format!("{name}: measured on"), measured, studied)
}

/// Refuses a result whose CID is not that of the studied card. `at` is the place of the CID, `done` what the result is.
pub(super) fn ensure_same(at: &str, done: &str, of_result: &str, studied: Cid) -> anyhow::Result<()> {
    let parsed = Cid::parse_hex(of_result).with_context(|| at.to_owned())?;
    // The last byte is a checksum that some sources leave out.
    let is_same = parsed.0[..15] == studied.0[..15];
    let studied = studied.0.map(|byte| format!("{byte:02x}")).concat();
    ensure!(is_same, "{done} a card with CID {of_result}; the studied card has {studied}");
    Ok(())
}
