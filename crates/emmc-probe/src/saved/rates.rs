//! Rates by size: the least useful write, and units that are made for small writes.

use std::collections::BTreeMap;

use emmc_workload::Measurement;

use crate::result::{Evidence, Parameter, Value};
use crate::robust::median;
use crate::saved::open_units::Run;
use crate::saved::{labelled, size};
use crate::steps::Steps;

/// Sizes beyond this are larger than what a card writes at once. Unit: bytes.
const LARGEST: u64 = 128 << 10;
/// A unit whose small writes are this many times faster than those of the others.
const FASTER: f64 = 1.5;
const SIZES_MIN: usize = 3;

/// Sequential writes by size, smallest first, each with its witness.
fn ladders(runs: &[Run], measurements: &[&Measurement]) -> Vec<(String, Vec<(u64, f64)>)> {
    let mut all: Vec<(String, Vec<(u64, f64)>)> = Vec::new();
    if let Some(run) = runs.iter().find(|run| !run.random && run.units == 1) {
        all.push(("one stream of writes".into(), run.rates.iter().map(|(block, rate)| (*block, *rate)).collect()));
    }
    let mut columns: BTreeMap<&str, BTreeMap<u64, f64>> = BTreeMap::new();
    for cell in measurements {
        let is_one = cell.op == "write" && cell.order == "sequential" && cell.queue_depth == 1;
        if is_one && labelled(&cell.row).is_none() && cell.mb_per_s > 0.0 {
            columns.entry(&cell.column).or_default().insert(cell.block_bytes, cell.mb_per_s);
        }
    }
    all.extend(columns.into_iter().map(|(column, rates)| (format!("column {column}"), rates.into_iter().collect())));
    for (_, rates) in &mut all {
        rates.retain(|(block, _)| *block <= LARGEST && block.is_power_of_two());
    }
    all.retain(|(_, rates)| rates.len() >= SIZES_MIN);
    all
}

/// The size whose half has less than two thirds of its rate.
pub(super) fn write_unit(runs: &[Run], measurements: &[&Measurement]) -> Parameter {
    let ladders = ladders(runs, measurements);
    let mut evidence = Vec::new();
    // Why a ladder has no value.
    let mut reasons = Vec::new();
    for (witness, rates) in &ladders {
        let steps = Steps { rates: rates.clone(), ..Steps::default() };
        let least = rates.first().map_or(0, |(block, _)| *block);
        // Without a drop the unit may be smaller than what was tried.
        let useful = steps.useful_write();
        let has_half = |bytes: &u64| rates.iter().any(|(block, _)| *block == bytes / 2);
        let value = useful.filter(|bytes| *bytes > least && has_half(bytes));
        reasons.push(match useful {
            _ if steps.is_disturbed() => "smaller writes are faster than larger ones: disturbed".to_owned(),
            None => "the rates rise over many sizes".to_owned(),
            Some(bytes) if bytes > least && !has_half(&bytes) => {
                format!("the rate drops below {}, and half of that was not measured", size(bytes as f64))
            }
            Some(_) => format!("no clear drop down to {}, the smallest size", size(least as f64)),
        });
        let shown: Vec<String> =
            rates.iter().map(|(block, rate)| format!("{}: {rate:.2}", size(*block as f64))).collect();
        let seen = format!("sequential writes in MB/s: {}", shown.join(", "));
        evidence.push(Evidence::new(witness, seen, value.map(Value::Whole)));
    }
    let mut values: Vec<Value> = evidence.iter().filter_map(|witness| witness.value.clone()).collect();
    values.dedup();
    reasons.dedup();
    match (&values[..], &reasons[..]) {
        ([value], _) => Parameter::of(value.clone(), "bytes", evidence),
        ([], []) => {
            let why = "sequential writes of growing size show it: flashbench -O --open-au-nr=1, iozone or fio";
            Parameter::unknown(why, "bytes", evidence)
        }
        ([], _) => Parameter::unknown(reasons.join("; "), "bytes", evidence),
        _ => Parameter::unknown("the columns disagree", "bytes", evidence),
    }
}

/// Units at the start whose small writes are faster than those of the others.
pub(super) fn fat_region(measurements: &[&Measurement]) -> Parameter {
    let mut rows: BTreeMap<u64, BTreeMap<u64, f64>> = BTreeMap::new();
    for cell in measurements.iter().filter(|cell| cell.table.starts_with("find-fat")) {
        let unit = cell.column.strip_prefix("AU ").and_then(|unit| unit.parse().ok());
        if let (Some(unit), Some(block)) = (unit, labelled(&cell.row)) {
            rows.entry(block).or_default().insert(unit, cell.mb_per_s);
        }
    }
    let Some((&unit, _)) = rows.last_key_value() else {
        return Parameter::unknown("flashbench -f shows it", "", vec![]);
    };
    let small: Vec<&BTreeMap<u64, f64>> = rows.values().take(SIZES_MIN).collect();
    let units = small.iter().map(|row| row.len()).min().unwrap_or(0) as u64;
    if small.len() < SIZES_MIN || units < 4 {
        return Parameter::unknown("too few sizes or units", "", vec![]);
    }
    // The upper half of the units is what the first ones are compared with.
    let usual = |row: &BTreeMap<u64, f64>| median(&row.range(units / 2..).map(|(_, rate)| *rate).collect::<Vec<_>>());
    let is_faster = |unit: &u64| small.iter().all(|row| row.get(unit).is_some_and(|rate| *rate > FASTER * usual(row)));
    let fast = (0..units / 2).take_while(is_faster).count() as u64;
    let of = |index: u64| {
        let ratios: Vec<f64> = small.iter().filter_map(|row| Some(row.get(&index)? / usual(row))).collect();
        format!("{:.2}", median(&ratios))
    };
    let shown: Vec<String> = (0..units).map(of).collect();
    let seen = format!("rates of small writes against the later units, by unit: {}", shown.join(", "));
    let value = match fast {
        0 => Value::Kind("none".into()),
        fast => Value::Kind(format!("the first {}", size((fast * unit) as f64))),
    };
    Parameter::of(value.clone(), "", vec![Evidence::new("units filled alone", seen, Some(value))])
}
