//! bonnie++ 1.03 and 2.00: its table, and the line of comma-separated values at its end.
//!
//! Source: outputs of both versions; field order of formats 1.03 and 1.98 from their manual page. `+++++` means that a
//! phase was too short to measure: no number. Rates are in KiB a second (2.00 appends a letter to large ones). Block
//! phases move 8 KiB at a time unless a chunk size is given. bonnie++ goes through the page cache: reads of a file
//! smaller than memory do not measure the device.

use super::rate::{Rate, size_bytes};
use super::{ImportError, Text, outcome, summed};
use crate::result::{Figure, Outcome, Pivot};

const TABLE: &str = "bonnie";
/// Source: the manual page. Unit: bytes.
const CHUNK_BYTES: u64 = 8 << 10;
const TOO_FAST: &str = "+++++: too short for bonnie++ to measure";

/// What a phase measures.
#[derive(Clone, Copy)]
enum Phase {
    /// By character: name.
    Characters(&'static str),
    /// In blocks: name, operation, order.
    Blocks(&'static str, &'static str, &'static str),
    /// Operations a second: name.
    Operations(&'static str),
}

/// In the order of both forms: phases on one file, then phases on many files.
const FILE: [Phase; 6] = [
    Phase::Characters("per-character output"),
    Phase::Blocks("block output", "write", "sequential, buffered"),
    Phase::Blocks("rewrite", "rewrite", "sequential, buffered"),
    Phase::Characters("per-character input"),
    Phase::Blocks("block input", "read", "sequential, buffered"),
    Phase::Operations("random seeks"),
];
const FILES: [Phase; 6] = [
    Phase::Operations("sequential create"),
    Phase::Operations("sequential stat"),
    Phase::Operations("sequential delete"),
    Phase::Operations("random create"),
    Phase::Operations("random stat"),
    Phase::Operations("random delete"),
];

/// A run in progress.
struct Run<'a> {
    text: &'a Text<'a>,
    found: Outcome,
    machine: String,
    bytes: Option<u64>,
    chunk: u64,
}

/// Every run in the text; a CSV line only if no table above it has the same figures.
pub(super) fn scan(text: &Text<'_>) -> Result<Vec<(usize, Outcome)>, ImportError> {
    let mut runs: Vec<(usize, Outcome)> = Vec::new();
    for (number, line) in text.lines.iter().enumerate() {
        if line.starts_with("Version ") && line.contains("Sequential Output") {
            runs.push((number, table(text, number)?));
        }
    }
    if runs.is_empty() {
        for (number, line) in text.lines.iter().enumerate() {
            let fields: Vec<&str> = line.trim().split(',').collect();
            let is_103 = fields.len() == 27 && fields[1].ends_with(['M', 'G', 'k']);
            if is_103 {
                runs.push((number, csv(text, number, &fields, [0, 1], 2, 15)?));
            } else if fields.len() >= 46 && fields[0] == "1.98" && line.contains(",2.") {
                runs.push((number, csv(text, number, &fields, [2, 5], 9, 26)?));
            }
        }
    }
    Ok(runs)
}

fn empty<'a>(text: &'a Text<'a>, machine: &str, size: &str) -> Run<'a> {
    let mut found = outcome(TABLE, "bonnie++: a file written and read through the page cache, and many files");
    found.tables.push(Pivot {
        table: TABLE.into(),
        rows: "machine".into(),
        unit: "KiB/s".into(),
        caption: "KiB a second, as bonnie++ printed them".into(),
    });
    let (size, chunk) = size.split_once(':').map_or((size, None), |(size, chunk)| (size, size_bytes(chunk)));
    let chunk = chunk.filter(|chunk| *chunk > 0).unwrap_or(CHUNK_BYTES);
    Run { text, found, machine: machine.into(), bytes: size_bytes(size), chunk }
}

impl Run<'_> {
    /// Takes a phase's figure from a line; an empty one was skipped.
    fn take(&mut self, line: usize, phase: Phase, cell: &str) -> Result<(), ImportError> {
        let (name, unit) = match phase {
            Phase::Characters(name) => (name, "KiB/s"),
            Phase::Blocks(name, ..) => (name, "KiB/s"),
            Phase::Operations(name) => (name, "/s"),
        };
        if cell.is_empty() {
            return Ok(());
        }
        if cell.starts_with("++") {
            self.found.figures.push(Figure::new(name, None, unit, TOO_FAST));
            return Ok(());
        }
        let value = value(cell).ok_or_else(|| self.text.wrong(line, cell, "a rate of bonnie++ or +++++"))?;
        let Phase::Blocks(column, op, order) = phase else {
            let note = if unit == "/s" { "operations a second" } else { "by putc and getc: the processor's speed" };
            self.found.figures.push(Figure::new(name, value, unit, note));
            return Ok(());
        };
        let rate = Rate {
            table: TABLE,
            row: self.machine.clone(),
            column,
            op,
            order,
            block_bytes: self.chunk,
            depth: 1,
            bytes: self.bytes,
            bytes_per_s: value * 1024.0,
        };
        self.found.measurements.extend(rate.measurement());
        Ok(())
    }

    fn finish(self, line: usize) -> Result<Outcome, ImportError> {
        if self.found.measurements.is_empty() && self.found.figures.is_empty() {
            return Err(self.text.wrong(line, self.text.lines[line], "figures of bonnie++'s phases below"));
        }
        Ok(summed(self.found))
    }
}

/// A figure; 2.00 writes large ones as `12.5m`: thousands of KiB.
fn value(cell: &str) -> Option<f64> {
    let (digits, scale) = match cell.as_bytes().last()? {
        b'k' => (&cell[..cell.len() - 1], 1.0),
        b'm' => (&cell[..cell.len() - 1], 1024.0),
        b'g' => (&cell[..cell.len() - 1], 1_048_576.0),
        _ => (cell, 1.0),
    };
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits.parse::<f64>().ok().filter(|value| is_plain && value.is_finite()).map(|value| value * scale)
}

/// The cells of a row of figures. Each rate ends in the 25th column or ten, twenty... further, followed by its share of
/// the processor; a rate of six digits shifts the rest of the row.
fn cells(line: &str) -> [String; 6] {
    let characters: Vec<char> = line.chars().collect();
    let mut shift = 0;
    std::array::from_fn(|index| {
        let (from, to) = (19 + index * 10 + shift, 25 + index * 10 + shift);
        let blank = characters.get(from..to.min(characters.len())).unwrap_or_default();
        let Some(begin) = blank.iter().position(|c| !c.is_whitespace()) else { return String::new() };
        let cell: String = characters[from + begin..].iter().take_while(|c| !c.is_whitespace()).collect();
        shift += (from + begin + cell.chars().count()).saturating_sub(to);
        cell
    })
}

fn table(text: &Text<'_>, heading: usize) -> Result<Outcome, ImportError> {
    // Two lines of headings, then the first row; 2.00 puts the machine of the second table into its headings.
    let at = heading + 3;
    let row = text.lines.get(at).ok_or_else(|| text.wrong(heading, text.lines[heading], "bonnie++'s table, whole"))?;
    let left: String = row.chars().take(20).collect();
    let mut words = left.split_whitespace();
    let (machine, size) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut run = empty(text, machine, size);
    if run.bytes.is_none() {
        return Err(text.wrong(at, row, "the machine's name, the file's size and six rates"));
    }
    for (phase, cell) in FILE.into_iter().zip(cells(row)) {
        run.take(at, phase, &cell)?;
    }
    let files =
        text.lines.iter().enumerate().skip(at).take(7).find(|(_, line)| line.trim_start().starts_with("files "));
    if let Some((number, _)) = files {
        let at = number + 1;
        let row = text.lines.get(at).ok_or_else(|| text.wrong(number, text.lines[number], "a row below it"))?;
        for (phase, cell) in FILES.into_iter().zip(cells(row)) {
            run.take(at, phase, &cell)?;
        }
    }
    run.finish(heading)
}

/// A line of values: the columns of machine and size, and where the rates of both tables begin; each is followed by a
/// share of the processor.
fn csv(
    text: &Text<'_>,
    number: usize,
    fields: &[&str],
    [machine, size]: [usize; 2],
    file: usize,
    files: usize,
) -> Result<Outcome, ImportError> {
    let mut run = empty(text, fields[machine], fields[size]);
    for (begin, phases) in [(file, FILE), (files, FILES)] {
        for (index, phase) in phases.into_iter().enumerate() {
            run.take(number, phase, fields.get(begin + 2 * index).copied().unwrap_or_default().trim())?;
        }
    }
    run.finish(number)
}
