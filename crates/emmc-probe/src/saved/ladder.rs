//! Reads of growing size: a line through their times gives the cost of a command and the rate.
//!
//! The times are those of the program, so the cost of a command includes the host's own: one column never confirms
//! another.

use std::collections::BTreeMap;

use emmc_workload::Measurement;

use crate::result::{Evidence, Parameter, Value};
use crate::robust::{line, median};

const KIB: u64 = 1024;
const SIZES_MIN: usize = 4;
/// Rates of two columns that differ by less are the same.
const SAME: f64 = 0.1;
/// Times that are further from the line are on none.
const OFF: f64 = 0.1;

/// The parameters `command_overhead` and `read_rate`.
pub(super) fn read_cost(measurements: &[&Measurement]) -> [(&'static str, Parameter); 2] {
    let mut columns: BTreeMap<(&str, &str), BTreeMap<u64, f64>> = BTreeMap::new();
    for cell in measurements {
        let is_plain = matches!(cell.order.as_str(), "sequential" | "random" | "shuffled");
        let is_size = (4 * KIB..=512 * KIB).contains(&cell.block_bytes);
        if cell.op == "read" && is_plain && is_size && cell.queue_depth == 1 && cell.mb_per_s > 0.0 {
            let time = cell.block_bytes as f64 / cell.mb_per_s;
            columns.entry((&cell.column, &cell.order)).or_default().insert(cell.block_bytes, time);
        }
    }
    columns.retain(|_, times| times.len() >= SIZES_MIN);
    let mut found: Vec<(String, f64, f64)> = Vec::new();
    let mut off = Vec::new();
    for ((column, _), times) in &columns {
        let points: Vec<(f64, f64)> = times.iter().map(|(bytes, time)| (*bytes as f64, *time)).collect();
        let Some((slope, start)) = line(&points) else { continue };
        let apart = points.iter().map(|(bytes, time)| (time - start - slope * bytes).abs() / time);
        let is_line = slope > 0.0 && start > 0.0 && median(&apart.collect::<Vec<_>>()) < OFF;
        match is_line {
            true => found.push(((*column).to_owned(), start, 1.0 / slope)),
            false => off.push((*column).to_owned()),
        }
    }
    if found.is_empty() {
        let why = match off.is_empty() {
            true => "reads of four or more sizes at depth 1 show it: iozone or fio".to_owned(),
            false => format!("the times are on no line: {}", off.join(", ")),
        };
        return [("command_overhead", "us"), ("read_rate", "MB/s")]
            .map(|(name, unit)| (name, Parameter::unknown(why.clone(), unit, vec![])));
    }
    let tenths = |value: f64| (value * 10.0).round() / 10.0;
    let least = found.iter().map(|(_, start, _)| *start).fold(f64::INFINITY, f64::min);
    let starts = found.iter().map(|(column, start, _)| {
        let seen = format!("a line through the column {column} begins at {start:.1} us, the host's own time included");
        Evidence::new(&format!("column {column}"), seen, (*start == least).then(|| Value::Measured(tenths(least))))
    });
    let overhead = Parameter::of(Value::Measured(tenths(least)), "us", starts.collect());
    let rate = tenths(found.iter().map(|(_, _, rate)| *rate).fold(0.0, f64::max));
    let rates = found.iter().map(|(column, _, other)| {
        let agrees = (rate - other).abs() <= SAME * rate;
        let value = if agrees { rate } else { tenths(*other) };
        Evidence::new(&format!("column {column}"), format!("{other:.1} MB/s"), Some(Value::Measured(value)))
    });
    let rate = Parameter::of(Value::Measured(rate), "MB/s", rates.collect());
    [("command_overhead", overhead), ("read_rate", rate)]
}
