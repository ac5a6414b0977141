//! Conclusions from results that other tools, or earlier runs, have saved.
//!
//! The readers of `emmc-workload` give tables and rates; the rules here are those of the probers, as far as such
//! figures allow. What a run did not measure is "cannot tell" with the run that would show it. Absent on
//! purpose: reading files, and figures that a tool did not print.

mod align;
mod ladder;
mod open_units;
mod rates;
#[cfg(test)]
mod tests;

use emmc_workload::import::{ImportError, SavedResult};
use emmc_workload::{Measurement, Outcome};

use crate::advice::advice;
use crate::result::{Evidence, Findings, Parameter, Value};

/// The largest size of a write that flashbench is believed. Unit: bytes.
const WRITE_MAX: u64 = 1 << 40;

/// What saved results say about the card that they were measured on; all of them must be of one card.
///
/// Errors: a write to a unit of more than 1 TiB.
pub fn conclude(results: &[SavedResult]) -> Result<Findings, ImportError> {
    results.iter().try_for_each(no_huge_writes)?;
    let outcomes: Vec<&Outcome> = results.iter().flat_map(|result| &result.outcomes).collect();
    let measurements: Vec<&Measurement> = outcomes.iter().flat_map(|outcome| &outcome.measurements).collect();
    let levels = align::levels(outcomes.iter().flat_map(|outcome| &outcome.grids));
    let runs = open_units::runs(&measurements);
    let [linear, random] = [false, true].map(|random| open_units::limit(&runs, random));
    let mut findings = Findings::default();
    let mut add = |name: &str, parameter| findings.parameters.insert(name.to_owned(), parameter);
    add("page", align::page(levels.as_ref()));
    add("write_unit", rates::write_unit(&runs, &measurements));
    add("allocation_unit", allocation_unit(levels.as_ref(), &linear));
    add("open_units", linear.parameter("linear"));
    add("open_units_random", random.parameter("random"));
    add("mapping_class", open_units::mapping(&runs));
    add("fat_region", rates::fat_region(&measurements));
    for (name, parameter) in ladder::read_cost(&measurements) {
        add(name, parameter);
    }
    for name in ["write_cache", "discard"] {
        let unit = if name == "write_cache" { "bytes" } else { "" };
        add(name, Parameter::unknown("saved results do not show it: probe the card itself", unit, vec![]));
    }
    findings.remarks = outcomes.iter().flat_map(|outcome| outcome.remarks.clone()).collect();
    findings.advice = advice(&findings);
    Ok(findings)
}

/// The rules double and multiply the sizes of writes; boundaries of reads are only compared.
fn no_huge_writes(result: &SavedResult) -> Result<(), ImportError> {
    let cells = result.outcomes.iter().flat_map(|outcome| &outcome.measurements);
    let mut writes = cells.filter(|cell| cell.table.starts_with("open-au") || cell.table.starts_with("find-fat"));
    match writes.find(|cell| labelled(&cell.row).is_some_and(|bytes| bytes > WRITE_MAX)) {
        None => Ok(()),
        Some(cell) => Err(ImportError::Unknown {
            name: result.name.clone(),
            reason: format!("{}: a write of {} is larger than any unit of a card", cell.table, cell.row),
            expected: "at most 1024GiB".into(),
        }),
    }
}

/// Reads across boundaries, and what streams of writes beyond the open units cost.
fn allocation_unit(levels: Option<&align::Levels>, limit: &open_units::Limit) -> Parameter {
    let mut evidence: Vec<Evidence> = levels.map(align::Levels::unit).into_iter().collect();
    evidence.extend(limit.unit());
    let mut values: Vec<&Value> = evidence.iter().filter_map(|witness| witness.value.as_ref()).collect();
    values.dedup();
    match values[..] {
        [value] => Parameter::of(value.clone(), "bytes", evidence),
        [] => {
            let seen = evidence.iter().map(|witness| format!("{}: {}", witness.witness, witness.seen));
            let why = match evidence.is_empty() {
                true => "flashbench -a, or -O with one stream more than the card has open units, shows it".into(),
                false => seen.collect::<Vec<_>>().join("; "),
            };
            Parameter::unknown(why, "bytes", evidence)
        }
        _ => Parameter::unknown("reads and streams disagree", "bytes", evidence),
    }
}

/// The value of a label such as `4MiB`, as flashbench prints it; the largest number if it is larger. Unit: bytes.
fn labelled(label: &str) -> Option<u64> {
    let end = label.find(|c: char| !c.is_ascii_digit())?;
    let shift = match &label[end..] {
        "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    (end > 0).then(|| label[..end].parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1 << shift))
}

/// `1 unit`, `2 units`.
fn number(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// A size in the largest unit that fits it.
fn size(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value.fract() == 0.0 || unit == 0 { 0 } else { 1 };
    format!("{value:.digits$} {}", UNITS[unit])
}
