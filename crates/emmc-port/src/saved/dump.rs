//! Bytes after addresses: `xxd`, `hexdump -C`, `od -t x1`, U-Boot's `md.b` and `mmc reg read extcsd all`.
//!
//! Addresses may be hexadecimal, octal or decimal: the radix is the one in which they count the bytes of the rows.
//! Absent on purpose: the kind of the bytes (`register_hex`).

use super::text::{Line, Text};
use crate::SourceError;

/// Bytes in a row at most: `hexdump` and `xxd` print 16, U-Boot up to 64.
const ROW_BYTES_MAX: usize = 64;

/// Bytes of one dump at most: the largest saved reply.
const DUMP_BYTES_MAX: u64 = 4096;

/// Addresses from here on are of memory, not offsets into a register.
const MEMORY_ADDRESS_MIN: u64 = 512;

/// Bytes of one dump in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dump {
    /// The line of the first row.
    pub(super) line: u64,
    /// The line of the last row.
    pub(super) last_line: u64,
    /// How the addresses are written: 8, 10 or 16.
    pub(super) radix: u32,
    /// Whether a colon follows them.
    pub(super) colon: bool,
    /// The offset of the first byte; 0 if the addresses are of memory.
    pub(super) start: usize,
    /// The bytes from there on; `None` where rows are missing.
    pub(super) bytes: Vec<Option<u8>>,
    /// The same with the bytes of each word reversed, if the byte order is unknown.
    pub(super) swapped: Option<Vec<Option<u8>>>,
    /// Lines with bytes.
    pub(super) rows: usize,
}

#[derive(Clone, Debug)]
struct Row<'t> {
    line: u64,
    address: &'t str,
    colon: bool,
    /// Digits in each group.
    group: usize,
    bytes: Vec<u8>,
    /// The end of the line, as long as the bytes are many: the column of letters, if there is one.
    letters: &'t str,
    /// A star follows: rows up to the next address equal this one.
    repeated: bool,
}

/// The dumps in a text, each a run of rows whose addresses count their bytes.
///
/// Errors: a column of rows that misses or repeats some, or a dump that is too large for any register or reply.
pub(super) fn dumps(text: &Text) -> Result<Vec<Dump>, SourceError> {
    let mut dumps = Vec::new();
    let mut run: Vec<Row> = Vec::new();
    for line in text.lines() {
        if let Some(row) = row(line) {
            run.push(row);
        } else if let Some(end) = end_address(&run, line) {
            run.push(end);
        } else if let ("*", Some(last)) = (line.text.trim(), run.last_mut()) {
            last.repeated = true;
        } else if !matches!(line.text.trim(), "" | ".." | "..." | "[...]") {
            dumps.extend(finish(text, &run)?);
            run.clear();
        }
    }
    dumps.extend(finish(text, &run)?);
    Ok(dumps)
}

fn row(line: Line) -> Option<Row> {
    let text = line.text.trim_start();
    let end = text.find(|letter: char| !letter.is_ascii_hexdigit())?;
    let (address, rest) = text.split_at_checked(end)?;
    let colon = rest.starts_with(':');
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    if !(3..=16).contains(&address.len()) || !(colon || address.len() >= 6) || !rest.starts_with([' ', '\t']) {
        return None;
    }
    let (group, bytes) = groups(rest, !colon && rest.contains('|'))?;
    let column = text.strip_suffix('|').unwrap_or(text);
    let letters = column.len().checked_sub(bytes.len()).and_then(|start| column.get(start..)).unwrap_or_default();
    Some(Row { line: line.number, address, colon, group, bytes, letters, repeated: false })
}

/// The groups of digits up to the column of letters, which two blanks set apart; `hexdump -C` parts its row too.
fn groups(rest: &str, parted: bool) -> Option<(usize, Vec<u8>)> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut group = 0;
    let mut left = rest.trim_start();
    while !left.is_empty() {
        let end = left.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(left.len());
        let (digits, after) = left.split_at_checked(end)?;
        group = if group == 0 { digits.len() } else { group };
        // The last group of xxd may be short; anything else that differs belongs to the column of letters.
        let fits = digits.len() == group || (group > 2 && digits.len() < group);
        if !fits || digits.is_empty() || digits.len() % 2 != 0 || bytes.len() + digits.len() / 2 > ROW_BYTES_MAX {
            break;
        }
        let pairs = digits.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
        bytes.extend(pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()));
        left = after.trim_start_matches([' ', '\t']);
        let blanks = after.len() - left.len();
        if blanks == 0 || (blanks > 1 && !(parted && bytes.len() == 8)) {
            break;
        }
    }
    (matches!(group, 2 | 4 | 8 | 16) && !bytes.is_empty()).then_some((group, bytes))
}

/// The address after the last byte, the last line of hexdump and od.
fn end_address<'t>(run: &[Row<'t>], line: Line<'t>) -> Option<Row<'t>> {
    let (last, address) = (run.last()?, line.text.trim());
    let same_form = last.address.len() == address.len() && !last.colon && !last.bytes.is_empty();
    let row = Row { line: line.number, address, bytes: Vec::new(), ..last.clone() };
    (same_form && address.bytes().all(|letter| letter.is_ascii_hexdigit())).then_some(Row { repeated: false, ..row })
}

fn finish(text: &Text, run: &[Row]) -> Result<Option<Dump>, SourceError> {
    let [first, .., last] = run else { return Ok(None) };
    let Some(radix) = [16, 10, 8].into_iter().find(|&radix| misfit(run, radix).is_none()) else {
        // Few rows may be anything; a whole column is a dump that was cut or edited, in the radix that fits most rows.
        let radix = [16, 10, 8].into_iter().min_by_key(|&radix| misfits(run, radix).count()).unwrap_or(16);
        return match misfit(run, radix) {
            // Words without addresses, of which the first has as many digits as the others.
            Some(_) if !first.colon && first.address.len() == first.group => Ok(None),
            Some((before, after)) if run.len() > 3 => {
                let name = match radix {
                    8 => "octal",
                    10 => "decimal",
                    _ => "hexadecimal",
                };
                let count = before.bytes.len();
                let expected = format!("the {name} address {count} bytes after {}", before.address);
                Err(text.malformed(after.line, expected, after.address))
            }
            _ => Ok(None),
        };
    };
    let address = |row: &Row| u64::from_str_radix(row.address, radix).unwrap_or_default();
    let base = address(first);
    let offset = |row: &Row| address(row).saturating_sub(base);
    let size = offset(last).saturating_add(last.bytes.len() as u64);
    if size > DUMP_BYTES_MAX {
        let expected = format!("a dump of at most {DUMP_BYTES_MAX} bytes");
        return Err(text.malformed(first.line, expected, format!("{size} bytes")));
    }
    let assemble = |order: fn(&Row) -> Vec<u8>| {
        let mut bytes = Vec::with_capacity(size as usize);
        for (row, next) in run.iter().zip(run.iter().skip(1).map(Some).chain([None])) {
            let printed = order(row);
            bytes.extend(printed.iter().copied().map(Some));
            let end = next.map_or(bytes.len(), |next| offset(next) as usize);
            if row.repeated {
                let missing = end.saturating_sub(bytes.len());
                bytes.extend(printed.iter().copied().cycle().take(missing).map(Some));
            }
            bytes.resize(end, None);
        }
        bytes
    };
    let (bytes, swapped) = match order(run, base) {
        Order::Printed => (assemble(as_printed), None),
        Order::Words => (assemble(as_words), None),
        Order::RatherPrinted => (assemble(as_printed), Some(assemble(as_words))),
        Order::RatherWords => (assemble(as_words), Some(assemble(as_printed))),
    };
    let start = if base < MEMORY_ADDRESS_MIN { base as usize } else { 0 };
    let (line, last_line) = (first.line, last.line);
    Ok(Some(Dump { line, last_line, radix, colon: first.colon, start, bytes, swapped, rows: run.len() }))
}

/// The first neighbours of which the second does not begin where the first ends.
fn misfit<'r, 't>(run: &'r [Row<'t>], radix: u32) -> Option<(&'r Row<'t>, &'r Row<'t>)> {
    misfits(run, radix).next()
}

/// All such neighbours.
fn misfits<'r, 't>(run: &'r [Row<'t>], radix: u32) -> impl Iterator<Item = (&'r Row<'t>, &'r Row<'t>)> {
    let address = move |row: &Row| u64::from_str_radix(row.address, radix).ok();
    run.iter().zip(run.iter().skip(1)).filter(move |(before, after)| {
        let step = address(after).zip(address(before)).and_then(|(after, before)| after.checked_sub(before));
        let bytes = before.bytes.len() as u64;
        // Rows that a star or dots stand for leave a gap of whole rows.
        let gap = |step: u64| bytes > 0 && step > 0 && step % bytes == 0 && after.line > before.line + 1;
        !step.is_some_and(|step| step == bytes || gap(step))
    })
}

/// How the bytes lie in the printed words.
enum Order {
    /// The first byte is printed first.
    Printed,
    /// The words are little-endian numbers.
    Words,
    /// The form of the most common tool; the rows do not prove it.
    RatherPrinted,
    /// Likewise.
    RatherWords,
}

/// The byte order of a dump, from the column of letters, which is always in memory order.
///
/// `xxd` groups bytes without reordering, `xxd -e`, `md.w`, `md.l`, `hexdump` and `od -x` print little-endian numbers.
fn order(run: &[Row], base: u64) -> Order {
    if run.iter().all(|row| row.group <= 2) {
        return Order::Printed;
    }
    let fits =
        |order: fn(&Row) -> Vec<u8>| run.iter().all(|row| row.bytes.is_empty() || spells(&order(row), row.letters));
    let by_bytes = run.first().is_some_and(|row| row.colon) && base < MEMORY_ADDRESS_MIN;
    match (fits(as_printed), fits(as_words)) {
        (true, false) => Order::Printed,
        (false, true) => Order::Words,
        _ if by_bytes => Order::RatherPrinted,
        _ => Order::RatherWords,
    }
}

/// Whether a column of letters shows these bytes, with dots for what cannot be printed.
fn spells(bytes: &[u8], letters: &str) -> bool {
    let shown = |byte: u8| if matches!(byte, b' '..=b'~') { byte } else { b'.' };
    bytes.iter().map(|&byte| shown(byte)).eq(letters.bytes())
}

fn as_printed(row: &Row) -> Vec<u8> {
    row.bytes.clone()
}

fn as_words(row: &Row) -> Vec<u8> {
    reversed_words(&row.bytes, row.group / 2)
}

/// The bytes with those of each word reversed.
pub(super) fn reversed_words(bytes: &[u8], word: usize) -> Vec<u8> {
    bytes.chunks(word.max(1)).flat_map(|word| word.iter().rev().copied()).collect()
}

#[cfg(test)]
mod tests;
