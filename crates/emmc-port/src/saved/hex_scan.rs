//! Finds the hexadecimal digits in a text: after labels, alone on lines, after addresses.

use super::dump::{self, Dump};
use super::labels::{self, Labelled, Register};
use super::text::{Line, Text};
use crate::SourceError;

/// Digits of one block at most: the largest saved reply.
const BLOCK_DIGITS_MAX: usize = 8192;

/// Digits from which a line is taken for a register among other text.
const LINE_DIGITS_MIN: usize = 16;

/// Lines of bare digits that follow one another.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The first line.
    pub(super) line: u64,
    /// The digits of each line, of the first [`BLOCK_DIGITS_MAX`].
    pub(super) rows: Vec<String>,
    /// All digits.
    pub(super) digits: usize,
    /// Digits in each word, when every line has several of one width.
    pub(super) word_digits: Option<usize>,
    /// The register whose file the previous line reads.
    pub(super) asked: Option<Register>,
    /// Whether a star follows, for rows that were left out.
    pub(super) starred: bool,
}

/// Everything hexadecimal in a text.
#[derive(Debug)]
pub(super) struct Scan {
    /// Lines that name their register.
    pub(super) labelled: Vec<(u64, Labelled)>,
    /// Lines of digits.
    pub(super) blocks: Vec<Block>,
    /// Dumps with addresses.
    pub(super) dumps: Vec<Dump>,
    /// Whether the text is little else, so that digits which are no register are worth an error.
    pub(super) alone: bool,
}

/// Looks through a text once.
///
/// Errors: a dump whose addresses do not fit its rows.
pub(super) fn scan(text: &Text) -> Result<Scan, SourceError> {
    let dumps = dump::dumps(text)?;
    let mut scan = Scan { labelled: Vec::new(), blocks: Vec::new(), dumps, alone: false };
    let mut before = Before::Other;
    let (mut hexadecimal, mut others) = (0usize, 0usize);
    // Without a colon, a dump's rows would pass for bare digits.
    let mut rows = scan.dumps.iter().map(|dump| dump.line..=dump.last_line).collect::<Vec<_>>().into_iter().peekable();
    for line in text.lines().filter(|line| !line.text.trim().is_empty()) {
        while rows.next_if(|rows| *rows.end() < line.number).is_some() {}
        if rows.peek().is_some_and(|rows| rows.contains(&line.number)) {
            before = Before::Other;
            continue;
        }
        let first = hexadecimal == 0 && others == 0;
        let expected = first || matches!(before, Before::Digits | Before::Asked(_));
        let digits = labels::digits(line.text.trim_matches([' ', '\t', '"', '{', '}']));
        if let Some(digits) = digits.filter(|digits| expected || digits.len() >= LINE_DIGITS_MIN) {
            hexadecimal += 1;
            take_digits(&mut scan.blocks, line, digits, before);
            before = Before::Digits;
            continue;
        }
        if let (Before::Digits, "*", Some(block)) = (before, line.text.trim(), scan.blocks.last_mut()) {
            block.starred = true;
        }
        before = labels::asked_for(line).map_or(Before::Other, Before::Asked);
        match labels::labelled(line) {
            Some(labelled) => {
                hexadecimal += 1;
                scan.labelled.push((line.number, labelled));
            }
            None => others += 1,
        }
    }
    let rows: usize = scan.dumps.iter().map(|dump| dump.rows).sum();
    scan.alone = hexadecimal + rows >= others;
    Ok(scan)
}

/// What the line before was.
#[derive(Clone, Copy)]
enum Before {
    /// Bare digits, to which more may belong.
    Digits,
    /// A command that prints a register.
    Asked(Register),
    /// Anything else.
    Other,
}

fn take_digits(blocks: &mut Vec<Block>, line: Line, digits: String, before: Before) {
    let word_digits = word_digits(line.text);
    let begun = Block { line: line.number, word_digits, ..Block::default() };
    match before {
        Before::Digits => {}
        Before::Asked(register) => blocks.push(Block { asked: Some(register), ..begun }),
        _ => blocks.push(begun),
    }
    if let Some(block) = blocks.last_mut() {
        block.word_digits = block.word_digits.filter(|_| block.word_digits == word_digits);
        block.digits = block.digits.saturating_add(digits.len());
        if block.digits <= BLOCK_DIGITS_MAX {
            block.rows.push(digits);
        }
    }
}

/// Digits in each of several words of one width, as `od -An -tx2` prints them.
fn word_digits(line: &str) -> Option<usize> {
    let words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    let mut words = words.map(|word| word.strip_prefix("0x").unwrap_or(word).len());
    let first = words.next().filter(|digits| matches!(digits, 4 | 8 | 16))?;
    let second = words.next()?;
    (second == first && words.all(|digits| digits == first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_labels_are_found() {
        let log = "# cat /sys/block/mmcblk0/device/cid\n1501\n\n# cid: 15010038\n/sys/block/mmcblk0/device/type:MMC\nadd\n\
                   00112233445566778899\naabb\n";
        let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
        let scan = scan(&text).unwrap();
        let blocks: Vec<_> = scan.blocks.iter().map(|block| (block.line, block.digits, block.asked)).collect();
        assert_eq!(blocks, [(2, 4, Some(Register::Cid)), (7, 24, None)]);
        assert_eq!(scan.labelled, [(4, Labelled::Whole(Register::Cid, "15010038".into()))]);
        assert!(scan.alone);
    }

    #[test]
    fn words_are_not_hex_digits() {
        let found = |log: &str| {
            let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
            let scan = scan(&text).unwrap();
            (scan.blocks.len(), scan.alone)
        };
        assert_eq!(found("12\n"), (1, true));
        assert_eq!(found(&format!("# x\n# y\n{}\n", "00".repeat(512))), (1, false));
        assert_eq!(found("hello\nadded\nfacade\n"), (0, false));
        assert_eq!(found("0000000 0000 0001\n0000004 0002 0003\n0000008\n"), (0, true));
    }

    #[test]
    fn a_long_block_is_counted_and_dropped() {
        let log = "00112233445566778899\n".repeat(1000);
        let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
        let scan = scan(&text).unwrap();
        assert_eq!((scan.blocks[0].digits, scan.blocks[0].rows.len()), (20_000, 409));
    }
}
