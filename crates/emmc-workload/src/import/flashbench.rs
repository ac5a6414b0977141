//! flashbench: `--align`, `--open-au`, `--find-fat`.
//!
//! Source: outputs of version 62. It prints through buffers of eight bytes, which truncates units: `2.387G/`,
//! `-49389n`. What is left identifies the unit in most cases; a figure that fills the buffer without a unit may have
//! lost digits too and is not used. Its K, M and G are powers of 1000. The number of open units and their order are
//! visible only in its command line.

use super::rate::{Rate, size_bytes};
use super::{ImportError, Text, outcome, summed};
use crate::result::grid::Grid;
use crate::result::{Figure, Outcome, Pivot};

/// Characters that fit into flashbench's buffer.
const FITS: usize = 7;

/// Every run in the text: consecutive rows.
pub(super) fn scan(text: &Text<'_>) -> Result<Vec<(usize, Outcome)>, ImportError> {
    let mut found: Vec<(usize, Outcome)> = Vec::new();
    let mut number = 0;
    while number < text.lines.len() {
        let rows = text.lines[number..].iter().take_while(|line| is_align(line)).count();
        if rows > 0 {
            found.push((number, align(text, number, rows)?));
        }
        let rates = text.lines[number..].iter().take_while(|line| rates(line).is_some()).count();
        if rates > 1 || (rates == 1 && command(text, number).is_some()) {
            unreadable(text, number + rates)?;
            let index = found.iter().filter(|(_, outcome)| outcome.suite != "align").count();
            found.push((number, rate_table(text, number, rates, index)?));
        } else if rates == 0 && text.lines[number].split_whitespace().skip(1).all(|word| word.ends_with("/s")) {
            unreadable(text, number)?;
        }
        number += rows.max(rates).max(1);
    }
    Ok(found)
}

fn is_align(line: &str) -> bool {
    line.starts_with("align ") && line.contains("pre ") && line.contains("post ")
}

fn label(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 30 && b % (1 << 30) == 0 => format!("{}GiB", b >> 30),
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{}MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{}KiB", b >> 10),
        b => format!("{b}B"),
    }
}

fn align(text: &Text<'_>, first: usize, rows: usize) -> Result<Outcome, ImportError> {
    let mut found = outcome("align", "reads before, on and after the boundaries of powers of two");
    let columns = [("pre", "us"), ("on", "us"), ("post", "us"), ("diff", "us")];
    let block = command(text, first).and_then(told_block);
    let name = block.map_or("align, read".into(), |block| format!("align, read, {}", label(block)));
    let mut grid = Grid::new(name, "boundary", &columns, "as flashbench printed them");
    for (number, line) in text.lines.iter().enumerate().skip(first).take(rows) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected = "align BYTES pre TIME on TIME post TIME diff TIME";
        let ["align", boundary, "pre", pre, "on", on, "post", post, ref rest @ ..] = words[..] else {
            return Err(text.wrong(number, line, expected));
        };
        // A text may end in the middle of its last line.
        let is_last = text.lines[number + 1..].iter().all(|line| line.trim().is_empty());
        let diff = match *rest {
            ["diff", diff, ..] => Some(diff),
            [] if is_last => None,
            [part] if is_last && "diff".starts_with(part) => None,
            _ => return Err(text.wrong(number, line, expected)),
        };
        let boundary = boundary.parse::<u64>().map_err(|_| text.wrong(number, boundary, "a boundary in bytes"))?;
        let mut values = Vec::with_capacity(4);
        for (cell, (name, _)) in [pre, on, post].into_iter().chain(diff).zip(columns) {
            let time = micros(cell).ok_or_else(|| text.wrong(number, cell, "a time in ns, us, ms or s"))?;
            if let Some(why) = time.lost {
                found.remarks.push(format!("line {}: {name} {cell}: {why}", number + 1));
            }
            values.push(time.value);
        }
        if diff.is_none() {
            found.remarks.push(format!("line {}: the line is cut before diff", number + 1));
            values.push(None);
        }
        grid.lines.push(crate::result::grid::GridLine { row: label(boundary), values });
    }
    found.grids.push(grid);
    Ok(found)
}

/// The readable part of a figure.
struct Cut {
    value: Option<f64>,
    /// The truncated part.
    lost: Option<&'static str>,
}

/// A time in microseconds; nothing if it is not a time.
fn micros(cell: &str) -> Option<Cut> {
    let end = cell.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(cell.len());
    let value = cell[..end].parse::<f64>().ok().filter(|value| value.is_finite())?;
    let told = |scale: f64, lost| Some(Cut { value: Some(value * scale), lost });
    match &cell[end..] {
        "ns" => told(1e-3, None),
        "us" | "µs" | "μs" => told(1.0, None),
        "ms" => told(1e3, None),
        "s" => told(1e6, None),
        "n" => told(1e-3, Some("the unit was cut off: ns")),
        "u" | "µ" | "μ" | "\u{fffd}" | "\u{fffd}\u{fffd}" => told(1.0, Some("the unit was cut off: us")),
        "m" => told(1e3, Some("the unit was cut off: ms")),
        // Below a second flashbench prints ns for negative values; a full buffer may have lost digits too.
        "" if cell.len() >= FITS => {
            Some(Cut { value: None, lost: Some("the unit was cut off, and perhaps digits: not used") })
        }
        _ => None,
    }
}

/// Bytes a second; nothing if it is not a rate.
fn rate(cell: &str) -> Option<f64> {
    let end = cell.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(cell.len());
    let value = cell[..end].parse::<f64>().ok()?;
    let scale = match &cell[end..] {
        "B/s" | "B" => 1.0,
        "K/s" | "K/" | "K" => 1e3,
        "M/s" | "M/" | "M" => 1e6,
        "G/s" | "G/" | "G" => 1e9,
        _ => return None,
    };
    (value > 0.0).then_some(value * scale)
}

/// A row of rates, one of which is none.
///
/// Errors: as it says. A text may end in the middle of its last line.
fn unreadable(text: &Text<'_>, number: usize) -> Result<(), ImportError> {
    let Some(line) = text.lines.get(number) else { return Ok(()) };
    let mut words = line.split_whitespace();
    let is_block = words.next().is_some_and(|word| word.ends_with("iB") && size_bytes(word).is_some());
    let is_cut = text.lines[number + 1..].iter().all(|line| line.trim().is_empty()) && !line.trim_end().ends_with("/s");
    match words.find(|word| rate(word).is_none()) {
        Some(word) if is_block && !is_cut => Err(text.wrong(number, word, "a rate above 0, such as 7.41M/s")),
        _ => Ok(()),
    }
}

/// The block and the rates of a row of `--open-au` or `--find-fat`.
fn rates(line: &str) -> Option<(u64, Vec<f64>)> {
    let mut words = line.split_whitespace();
    let block = words.next().filter(|word| word.ends_with("iB") || word.ends_with('B'))?;
    let block = size_bytes(block).filter(|block| *block > 0)?;
    let rates = words.map(rate).collect::<Option<Vec<_>>>()?;
    (!rates.is_empty()).then_some((block, rates))
}

/// The command line above, if the text has it.
fn command<'a>(text: &Text<'a>, number: usize) -> Option<&'a str> {
    let above = text.lines[..number].iter().rev().take(4);
    above.copied().find(|line| line.contains("flashbench"))
}

/// The number after an option, as `-O --open-au-nr=5` or `--open-au-nr 5`; nothing without the option.
///
/// Errors: a word that is no number of units.
fn told_count(command: &str) -> Result<Option<u16>, &str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let told = words.iter().enumerate().find_map(|(index, word)| {
        let rest = ["--open-au-nr=", "-0"].iter().find_map(|option| word.strip_prefix(option));
        let rest = rest.filter(|rest| !rest.is_empty());
        let next = (*word == "--open-au-nr" || *word == "-0").then(|| words.get(index + 1).copied()).flatten();
        rest.or(next)
    });
    let Some(word) = told else { return Ok(None) };
    word.parse().ok().filter(|count| *count > 0).map(Some).ok_or(word)
}

/// The value of `--blocksize=1024`.
fn told_block(command: &str) -> Option<u64> {
    let words = command.split_whitespace();
    words.into_iter().find_map(|word| word.strip_prefix("--blocksize=")?.parse().ok())
}

fn rate_table(text: &Text<'_>, first: usize, rows: usize, index: usize) -> Result<Outcome, ImportError> {
    let parsed = || text.lines[first..first + rows].iter().filter_map(|line| rates(line));
    let command = command(text, first);
    let random = command.is_some_and(|command| command.contains("--random") || command.contains(" -r"));
    let way = if random { "random" } else { "linear" };
    let is_fat = parsed().any(|(_, rates)| rates.len() > 1);
    let suite = if is_fat { "find-fat" } else { "open-au" };
    let table = if is_fat { format!("find-fat, {way}") } else { format!("open-au, {way}") };
    let mut found = outcome(suite, "writes of halving size to allocation units");
    let units = match command.map_or(Ok(None), told_count) {
        Ok(units) => units,
        Err(word) => {
            let number = text.lines[..first].iter().rposition(|line| line.contains("flashbench")).unwrap_or(first);
            return Err(text.wrong(number, &format!("--open-au-nr {word}"), "a number of open units, 1 to 65535"));
        }
    };
    if command.is_none() {
        found.remarks.push(format!(
            "line {}: flashbench's command is not above: the number of open units and their order are not known",
            first + 1
        ));
    }
    for (block, rates) in parsed() {
        for (unit, bytes_per_s) in rates.into_iter().enumerate() {
            let column = match (is_fat, units) {
                (true, _) => format!("AU {unit}"),
                (false, Some(1)) => "1 AU".into(),
                (false, Some(units)) => format!("{units} AUs"),
                (false, None) => format!("run {}", index + 1),
            };
            let order = if random { "random" } else { "strided" };
            let (table, row, column) = (table.as_str(), label(block), column.as_str());
            let rate =
                Rate { table, row, column, op: "write", order, block_bytes: block, depth: 1, bytes: None, bytes_per_s };
            found.measurements.extend(rate.measurement());
        }
    }
    if let Some(units) = units {
        found.figures.push(Figure::new("units written in turn", f64::from(units), "", "given to flashbench"));
    }
    found.tables.push(Pivot {
        table,
        rows: "block".into(),
        unit: "MB/s".into(),
        caption: "10^6 bytes a second, as flashbench printed them".into(),
    });
    Ok(summed(found))
}
