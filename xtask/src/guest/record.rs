//! The record of a run on one clock.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::guest::machine::Show;
use crate::guest::trial::{ClockKind, Options};

/// The names of a card's record, by its number from 1: its counts, and its requests.
pub(crate) fn names(card: u32) -> [String; 2] {
    let end = if card == 1 { String::new() } else { format!("-{card}") };
    [format!("summary{end}.json"), format!("requests{end}")]
}

/// The record of a run on one clock: prints what identifies it, and keeps it beside the guest's own files.
pub(crate) fn report(folder: &Path, options: &Options) -> anyhow::Result<String> {
    let mut digest = report_of(folder, &names(1), options)?;
    if options.second.is_some() {
        digest = format!("{digest} {}", report_of(folder, &names(2), options)?);
    }
    Ok(digest)
}

/// The same of one card.
fn report_of(folder: &Path, names: &[String; 2], options: &Options) -> anyhow::Result<String> {
    let text = fs::read_to_string(folder.join(&names[0])).context("the record of the card in the machine")?;
    let summary: serde_json::Value = serde_json::from_str(&text).context("the record of the card in the machine")?;
    let word = |name: &str| summary[name].to_string();
    let digest = summary["digest"].as_str().context("the record of the card has no digest")?;
    if options.show != Show::Nothing {
        println!(
            "guest: {} ns of the machine, {} register reads, {} writes, {} interrupts, {} requests, events at most {} ns \
             late, digest {digest}",
            word("last_access_ns"),
            word("reads"),
            word("writes"),
            word("interrupts"),
            word("requests"),
            word("late_ns")
        );
    }
    check_interrupts(&folder.join(&names[1]))?;
    // The processor's clock has steps of one instruction.
    let step_ns = if let ClockKind::Virtual { shift } = options.clock { 1 << shift } else { 1 };
    let late_ns = summary["late_ns"].as_u64().context("the record of the card has no late_ns")?;
    ensure!(late_ns < step_ns, "an event came {late_ns} ns late, expected less than one instruction, {step_ns} ns");
    ensure!(summary["failed"].is_null(), "the card's folder: {}", word("failed"));
    if let Some(out) = &options.out {
        fs::create_dir_all(out)?;
        for name in names {
            fs::copy(folder.join(name), out.join(name)).with_context(|| name.clone())?;
        }
    }
    Ok(digest.into())
}

/// Every interrupt that reported a request rose at the nanosecond at which the card ended it.
fn check_interrupts(requests: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(requests).context("the requests of the card in the machine")?;
    let mut reported = 0;
    for line in text.lines() {
        let request: serde_json::Value = serde_json::from_str(line).context("the requests of the card")?;
        if !request["interrupt_ns"].is_null() {
            reported += 1;
            ensure!(request["interrupt_ns"] == request["done_ns"], "the interrupt did not come with the end: {line}");
        }
    }
    ensure!(reported > 0, "no interrupt reported a request");
    Ok(())
}
